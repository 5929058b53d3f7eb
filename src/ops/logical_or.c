/* y = a or b */
#include "ops/dialect.h"

QN_SCALAR float logical_or_f(float a, float b)
{
    return (a != 0.0f || b != 0.0f) ? 1.0f : 0.0f;
}

QN_SCALAR qn_long logical_or_i(qn_long a, qn_long b)
{
    return a != 0 || b != 0;
}
QN_MAP2(logical_or)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus logical_or_infer(QnInfer *c)
{
    if (c->in[0]->dtype != QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE,
                       "logical_or: needs bool operands, not %s; compare with zero first",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_infer_map(c, &qn_op_logical_or);
}

static double logical_or_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] != 0 || x[1] != 0;
}

static int64_t logical_or_ref_int(const int64_t *x)
{
    return logical_or_i(x[0], x[1]);
}

static const QnSample logical_or_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 2, { 4, 7 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } },
      .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 2, { 3, 1 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 0, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } },
      .n_in = 2 },
};

QN_API QnValue *qn_logical_or(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_logical_or, NULL, a, b);
}

static const QnOnnxMap logical_or_onnx[] = { { .name = "Or", .since = 7 } };

const QnOp qn_op_logical_or = {
    .name = "logical_or",
    .version = 1,
    .doc = "a or b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = logical_or_infer,
    .map = &(const QnMapInfo){ .ref = logical_or_ref, .ref_int = logical_or_ref_int, .flops = 1 },
    .device = QN_TEXT(logical_or),
    QN_ONNX(logical_or_onnx),
    QN_SAMPLES(logical_or_samples),
};
#endif

/* y = either a or b, not both */
#include "ops/dialect.h"

QN_SCALAR float logical_xor_f(float a, float b)
{
    return ((a != 0.0f) != (b != 0.0f)) ? 1.0f : 0.0f;
}

QN_SCALAR qn_long logical_xor_i(qn_long a, qn_long b)
{
    return (a != 0) != (b != 0);
}
QN_MAP2(logical_xor)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus logical_xor_infer(QnInfer *c)
{
    if (c->in[0]->dtype != QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE,
                       "logical_xor: needs bool operands, not %s; compare with zero first",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_infer_map(c, &qn_op_logical_xor);
}

static double logical_xor_ref(const double *x, const double *param)
{
    (void)param;
    return (x[0] != 0) != (x[1] != 0);
}

static int64_t logical_xor_ref_int(const int64_t *x)
{
    return logical_xor_i(x[0], x[1]);
}

static const QnSample logical_xor_samples[] = {
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

QN_API QnValue *qn_logical_xor(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_logical_xor, NULL, a, b);
}

static const QnOnnxMap logical_xor_onnx[] = { { .name = "Xor", .since = 7 } };

const QnOp qn_op_logical_xor = {
    .name = "logical_xor",
    .version = 1,
    .doc = "either a or b, not both",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = logical_xor_infer,
    .map = &(const QnMapInfo){ .ref = logical_xor_ref, .ref_int = logical_xor_ref_int, .flops = 1 },
    .device = QN_TEXT(logical_xor),
    QN_ONNX(logical_xor_onnx),
    QN_SAMPLES(logical_xor_samples),
};
#endif

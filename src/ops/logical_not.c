/* y = not x */
#include "ops/dialect.h"

QN_SCALAR float logical_not_f(float x)
{
    return x != 0.0f ? 0.0f : 1.0f;
}

QN_SCALAR qn_long logical_not_i(qn_long x)
{
    return x == 0;
}
QN_MAP1(logical_not)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus logical_not_infer(QnInfer *c)
{
    if (c->in[0]->dtype != QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE,
                       "logical_not: needs bool operands, not %s; compare with zero first",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_infer_map(c, &qn_op_logical_not);
}

static double logical_not_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] == 0;
}

static int64_t logical_not_ref_int(const int64_t *x)
{
    return logical_not_i(x[0]);
}

static const QnSample logical_not_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } }, .n_in = 1 },
};

QN_API QnValue *qn_logical_not(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_logical_not, NULL, x);
}

static const QnOnnxMap logical_not_onnx[] = { { .name = "Not", .since = 1 } };

const QnOp qn_op_logical_not = {
    .name = "logical_not",
    .version = 1,
    .doc = "not x",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = logical_not_infer,
    .map = &(const QnMapInfo){ .ref = logical_not_ref, .ref_int = logical_not_ref_int, .flops = 1 },
    .device = QN_TEXT(logical_not),
    QN_ONNX(logical_not_onnx),
    QN_SAMPLES(logical_not_samples),
};
#endif

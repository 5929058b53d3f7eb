/* y = the least integer >= x */
#include "ops/dialect.h"

QN_SCALAR float ceil_f(float x)
{
    return qn_ceilf(x);
}
QN_MAP1(ceil)

#ifdef QN_HOST
#include "ops/onnx.h"

static double ceil_ref(const double *x, const double *param)
{
    (void)param;
    return ceil(x[0]);
}

static const QnSample ceil_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_ceil(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_ceil, NULL, x);
}

static const QnOnnxMap ceil_onnx[] = { { .name = "Ceil", .since = 1 } };

const QnOp qn_op_ceil = {
    .name = "ceil",
    .version = 1,
    .doc = "least integer from x on",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    .map = &(const QnMapInfo){ .ref = ceil_ref, .flops = 1 },
    .device = QN_TEXT(ceil),
    QN_ONNX(ceil_onnx),
    QN_SAMPLES(ceil_samples),
};
#endif

/* y = x / 6 + 1/2, cut to 0..1 */
#include "ops/dialect.h"

QN_SCALAR float hardsigmoid_f(float x)
{
    float y = x * 0.166666667f + 0.5f;
    return y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
}
QN_MAP1(hardsigmoid)

#ifdef QN_HOST
#include "ops/onnx.h"

static double hardsigmoid_ref(const double *x, const double *param)
{
    (void)param;
    double y = x[0] / 6 + 0.5;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

/* by the output, so that x need not be kept */
static void hardsigmoid_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    QnValue *above = qn_greater(g, y, qn_scalar_like(g, y, 0)),
            *below = qn_less(g, y, qn_scalar_like(g, y, 1));
    QnValue *slope = qn_mul_scalar(g, dy[0], 1.0 / 6);
    dx[0] = qn_where(g, qn_logical_and(g, above, below), slope, qn_scalar_like(g, dy[0], 0));
}

static const QnSample hardsigmoid_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 3 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 3 } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_hardsigmoid(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_hardsigmoid, NULL, x);
}

static QnStatus hardsigmoid_import(QnOnnxNode *n)
{
    double alpha = qn_onnx_float(n, "alpha", 0.2), beta = qn_onnx_float(n, "beta", 0.5);
    QnValue *x = qn_onnx_in(n, 0);
    if (fabs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5)
        return qn_onnx_out0(n, qn_hardsigmoid(n->g, x));
    x = qn_add_scalar(n->g, qn_mul(n->g, x, qn_scalar_like(n->g, x, alpha)), beta);
    return qn_onnx_out0(n, qn_clip(n->g, x, 0, 1));
}

static const QnOnnxMap hardsigmoid_onnx[] = {
    { .name = "HardSigmoid", .since = 1, .import = hardsigmoid_import },
};

const QnOp qn_op_hardsigmoid = {
    .name = "hardsigmoid",
    .version = 1,
    .doc = "x / 6 + 1/2 within 0..1",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = hardsigmoid_grad,
    .map = &(const QnMapInfo){ .ref = hardsigmoid_ref, .flops = 4 },
    .device = QN_TEXT(hardsigmoid),
    QN_ONNX(hardsigmoid_onnx),
    QN_SAMPLES(hardsigmoid_samples),
};
#endif

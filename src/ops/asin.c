/* y = arcsin x, in radians */
#include "ops/dialect.h"

QN_SCALAR float asin_f(float x)
{
    return qn_asinf(x);
}
QN_MAP1(asin)

#ifdef QN_HOST
#include "ops/onnx.h"

static double asin_ref(const double *x, const double *param)
{
    (void)param;
    return asin(x[0]);
}

/* dx = dy / sqrt(1 - x^2) */
static void asin_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *rest = qn_add_scalar(g, qn_neg(g, qn_square(g, n->in[0])), 1);
    dx[0] = qn_mul(g, dy[0], qn_rsqrt(g, rest));
}

static const QnSample asin_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -0.9, .hi = 0.9 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -0.9, .hi = 0.9 },
};

QN_API QnValue *qn_asin(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_asin, NULL, x);
}

static const QnOnnxMap asin_onnx[] = { { .name = "Asin", .since = 7 } };

const QnOp qn_op_asin = {
    .name = "asin",
    .version = 1,
    .doc = "inverse sine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = asin_grad,
    .map = &(const QnMapInfo){ .ref = asin_ref, .flops = 20 },
    .device = QN_TEXT(asin),
    QN_ONNX(asin_onnx),
    QN_SAMPLES(asin_samples),
};
#endif

/* y = ln(x + sqrt(x^2 + 1)) */
#include "ops/dialect.h"

QN_SCALAR float asinh_f(float x)
{
    return qn_asinhf(x);
}
QN_MAP1(asinh)

#ifdef QN_HOST
#include "ops/onnx.h"

static double asinh_ref(const double *x, const double *param)
{
    (void)param;
    return asinh(x[0]);
}

/* dx = dy / sqrt(x^2 + 1) */
static void asinh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_rsqrt(g, qn_add_scalar(g, qn_square(g, n->in[0]), 1)));
}

static const QnSample asinh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_asinh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_asinh, NULL, x);
}

static const QnOnnxMap asinh_onnx[] = { { .name = "Asinh", .since = 9 } };

const QnOp qn_op_asinh = {
    .name = "asinh",
    .version = 1,
    .doc = "inverse hyperbolic sine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = asinh_grad,
    .map = &(const QnMapInfo){ .ref = asinh_ref, .flops = 25 },
    .device = QN_TEXT(asinh),
    QN_ONNX(asinh_onnx),
    QN_SAMPLES(asinh_samples),
};
#endif

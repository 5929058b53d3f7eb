/* Gradient of gelu_tanh: dx = dy ((1 + t) / 2 + x (1 - t^2) u' / 2), t = tanh u,
 * u = c (x + 0.044715 x^3), c = sqrt(2 / pi). One map, as libraries have it behind a product. */
#include "ops/dialect.h"

/* (1 + t) / 2 by the exponential, where it is small and so keeps its digits. Beyond +-20 it is 0 or
 * 1; the powers of a huge x would be infinite. One comparison a statement: the compiler makes
 * vectors of those. */
QN_SCALAR float gelu_tanh_grad_f(float dy, float x)
{
    x = x > 20.0f ? 20.0f : x;
    x = x < -20.0f ? -20.0f : x;
    float x2 = x * x, u2 = 1.595769122f * (x + 0.044715f * x2 * x);
    float z = qn_exp_belowf(-qn_absf(u2)), small = z / (1.0f + z), large = 1.0f - small;
    float s = x < 0.0f ? small : large, du = 0.797884561f + 0.107032214f * x2;
    return dy * (s + 2.0f * x * small * large * du);
}
QN_MAP2(gelu_tanh_grad)

#ifdef QN_HOST
#define GELU_GRAD_C (M_SQRT1_2 * M_2_SQRTPI) /* sqrt(2 / pi) */
#define GELU_GRAD_K 0.044715

static double gelu_tanh_grad_ref(const double *x, const double *param)
{
    double v = x[1] > 100 ? 100 : x[1] < -100 ? -100 : x[1];
    double s = 1 / (1 + exp(-2 * GELU_GRAD_C * (v + GELU_GRAD_K * v * v * v)));
    double du = GELU_GRAD_C * (1 + 3 * GELU_GRAD_K * v * v);
    (void)param;
    return x[0] * (s + 2 * v * s * (1 - s) * du);
}

/* by x: dy s (u' + x (u'' / 2 - t u'^2)), s = 1 - t^2, which is 0 beyond +-20 */
static void gelu_tanh_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = qn_clip(g, n->in[1], -20, 20), *x2 = qn_square(g, x);
    const double c = GELU_GRAD_C, k = GELU_GRAD_K;
    QnValue *u = qn_mul(g, x, qn_add_scalar(g, qn_mul_scalar(g, x2, c * k), c));
    QnValue *du = qn_add_scalar(g, qn_mul_scalar(g, x2, 3 * c * k), c), *t = qn_tanh(g, u);
    QnValue *s = qn_sub(g, qn_scalar_like(g, t, 1), qn_square(g, t));
    QnValue *bend = qn_sub(g, qn_mul_scalar(g, x, 3 * c * k), qn_mul(g, t, qn_square(g, du)));
    QnValue *slope = qn_mul(g, s, qn_add(g, du, qn_mul(g, x, bend)));
    dx[0] = qn_sum_to(g, qn_gelu_tanh_grad(g, dy[0], n->in[1]), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_mul(g, qn_mul(g, dy[0], n->in[0]), slope), &x->type.shape);
}

static const QnSample gelu_tanh_grad_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 } }, { 1, { 130 } } }, .n_in = 2, .lo = -10, .hi = 10 },
};

/* dy and x of one shape. */
QN_API QnValue *qn_gelu_tanh_grad(QnGraph *g, QnValue *dy, QnValue *x)
{
    return qn_emit2(g, &qn_op_gelu_tanh_grad, NULL, dy, x);
}

const QnOp qn_op_gelu_tanh_grad = {
    .name = "gelu_tanh_grad",
    .version = 1,
    .doc = "gradient of gelu_tanh by dy and x",
    .n_in = 2,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = gelu_tanh_grad_grad,
    .map = &(const QnMapInfo){ .ref = gelu_tanh_grad_ref, .flops = 34 },
    .device = QN_TEXT(gelu_tanh_grad),
    QN_SAMPLES(gelu_tanh_grad_samples),
};
#endif

/* y = 1 / sqrt x */
#include "ops/dialect.h"

QN_SCALAR float rsqrt_f(float x)
{
    return 1.0f / qn_sqrtf(x);
}
QN_MAP1(rsqrt)

#ifdef QN_HOST

static double rsqrt_ref(const double *x, const double *param)
{
    (void)param;
    return 1 / sqrt(x[0]);
}

/* dx = -dy y^3 / 2 */
static void rsqrt_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *y3 = qn_mul(g, y, qn_mul(g, y, y));
    dx[0] = qn_mul(g, dy[0], qn_mul_scalar(g, y3, -0.5));
}

static const QnSample rsqrt_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = 0.1, .hi = 5 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = 0.5, .hi = 1000 },
};

QN_API QnValue *qn_rsqrt(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_rsqrt, NULL, x);
}

const QnOp qn_op_rsqrt = {
    .name = "rsqrt",
    .version = 1,
    .doc = "1 / sqrt x",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = rsqrt_grad,
    .map = &(const QnMapInfo){ .ref = rsqrt_ref, .flops = 8 },
    .device = QN_TEXT(rsqrt),
    QN_SAMPLES(rsqrt_samples),
};
#endif

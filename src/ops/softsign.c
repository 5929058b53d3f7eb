/* y = x / (1 + |x|) */
#include "ops/dialect.h"

QN_SCALAR float softsign_f(float x)
{
    return x / (1.0f + qn_absf(x));
}
QN_MAP1(softsign)

#ifdef QN_HOST
#include "ops/onnx.h"

static double softsign_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] / (1 + fabs(x[0]));
}

/* dx = dy (1 - |y|)^2 */
static void softsign_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *rest = qn_sub(g, qn_scalar_like(g, y, 1), qn_abs(g, y));
    dx[0] = qn_mul(g, dy[0], qn_square(g, rest));
}

static const QnSample softsign_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -4, .hi = 4 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -50, .hi = 50 },
};

QN_API QnValue *qn_softsign(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_softsign, NULL, x);
}

static const QnOnnxMap softsign_onnx[] = { { .name = "Softsign", .since = 1 } };

const QnOp qn_op_softsign = {
    .name = "softsign",
    .version = 1,
    .doc = "x / (1 + |x|)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = softsign_grad,
    .map = &(const QnMapInfo){ .ref = softsign_ref, .flops = 6 },
    .device = QN_TEXT(softsign),
    QN_ONNX(softsign_onnx),
    QN_SAMPLES(softsign_samples),
};
#endif

/* y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x */
#include "ops/dialect.h"

QN_SCALAR float erf_f(float x)
{
    return qn_erff(x);
}
QN_MAP1(erf)

#ifdef QN_HOST
#include "ops/onnx.h"

static double erf_ref(const double *x, const double *param)
{
    (void)param;
    return erf(x[0]);
}

/* dx = dy 2 / sqrt(pi) e^(-x^2) */
static void erf_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *e = qn_exp(g, qn_neg(g, qn_square(g, n->in[0])));
    dx[0] = qn_mul(g, dy[0], qn_mul_scalar(g, e, M_2_SQRTPI));
}

static const QnSample erf_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -5, .hi = 5 },
};

QN_API QnValue *qn_erf(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_erf, NULL, x);
}

static const QnOnnxMap erf_onnx[] = { { .name = "Erf", .since = 9 } };

const QnOp qn_op_erf = {
    .name = "erf",
    .version = 1,
    .doc = "error function",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = erf_grad,
    .map = &(const QnMapInfo){ .ref = erf_ref, .flops = 22 },
    .device = QN_TEXT(erf),
    QN_ONNX(erf_onnx),
    QN_SAMPLES(erf_samples),
};
#endif

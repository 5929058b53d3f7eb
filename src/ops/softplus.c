/* y = ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|) */
#include "ops/dialect.h"

QN_SCALAR float softplus_f(float x)
{
    return qn_maxf(x, 0.0f) + qn_log1pf(qn_expf(-qn_absf(x)));
}
QN_MAP1(softplus)

#ifdef QN_HOST
#include "ops/onnx.h"

static double softplus_ref(const double *x, const double *param)
{
    (void)param;
    return fmax(x[0], 0) + log1p(exp(-fabs(x[0])));
}

/* dx = dy sigmoid(x) = dy (1 - e^-y) */
static void softplus_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_neg(g, qn_mul(g, dy[0], qn_expm1(g, qn_neg(g, &n->out[0]))));
}

static const QnSample softplus_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -4, .hi = 4 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -60, .hi = 60 },
};

QN_API QnValue *qn_softplus(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_softplus, NULL, x);
}

static const QnOnnxMap softplus_onnx[] = { { .name = "Softplus", .since = 1 } };

const QnOp qn_op_softplus = {
    .name = "softplus",
    .version = 1,
    .doc = "ln(1 + e^x)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = softplus_grad,
    .map = &(const QnMapInfo){ .ref = softplus_ref, .flops = 26 },
    .device = QN_TEXT(softplus),
    QN_ONNX(softplus_onnx),
    QN_SAMPLES(softplus_samples),
};
#endif

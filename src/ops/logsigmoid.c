/* y = ln(1 / (1 + e^-x)) = min(x, 0) - ln(1 + e^-|x|) */
#include "ops/dialect.h"

QN_SCALAR float logsigmoid_f(float x)
{
    return qn_minf(x, 0.0f) - qn_log1pf(qn_expf(-qn_absf(x)));
}
QN_MAP1(logsigmoid)

#ifdef QN_HOST

static double logsigmoid_ref(const double *x, const double *param)
{
    (void)param;
    return fmin(x[0], 0) - log1p(exp(-fabs(x[0])));
}

/* dx = dy (1 - sigmoid(x)) = dy (1 - e^y) */
static void logsigmoid_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_neg(g, qn_mul(g, dy[0], qn_expm1(g, &n->out[0])));
}

static const QnSample logsigmoid_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -4, .hi = 4 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -60, .hi = 60 },
};

QN_API QnValue *qn_logsigmoid(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_logsigmoid, NULL, x);
}

const QnOp qn_op_logsigmoid = {
    .name = "logsigmoid",
    .version = 1,
    .doc = "ln sigmoid(x)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = logsigmoid_grad,
    .map = &(const QnMapInfo){ .ref = logsigmoid_ref, .flops = 26 },
    .device = QN_TEXT(logsigmoid),
    QN_SAMPLES(logsigmoid_samples),
};
#endif

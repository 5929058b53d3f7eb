/* y = ln(1 + x), exact for small x */
#include "ops/dialect.h"

QN_SCALAR float log1p_f(float x)
{
    return qn_log1pf(x);
}
QN_MAP1(log1p)

#ifdef QN_HOST

static double log1p_ref(const double *x, const double *param)
{
    (void)param;
    return log1p(x[0]);
}

static void log1p_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_div(g, dy[0], qn_add_scalar(g, n->in[0], 1));
}

static const QnSample log1p_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -0.01, .hi = 0.01 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -0.9, .hi = 50 },
};

QN_API QnValue *qn_log1p(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_log1p, NULL, x);
}

const QnOp qn_op_log1p = {
    .name = "log1p",
    .version = 1,
    .doc = "ln(1 + x)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = log1p_grad,
    .map = &(const QnMapInfo){ .ref = log1p_ref, .flops = 14 },
    .device = QN_TEXT(log1p),
    QN_SAMPLES(log1p_samples),
};
#endif

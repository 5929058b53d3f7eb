/* y = e^x - 1, exact for small x */
#include "ops/dialect.h"

QN_SCALAR float expm1_f(float x)
{
    return qn_expm1f(x);
}
QN_MAP1(expm1)

#ifdef QN_HOST

static double expm1_ref(const double *x, const double *param)
{
    (void)param;
    return expm1(x[0]);
}

static void expm1_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_add_scalar(g, &n->out[0], 1));
}

static const QnSample expm1_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -0.01, .hi = 0.01 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -6, .hi = 6 },
};

QN_API QnValue *qn_expm1(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_expm1, NULL, x);
}

const QnOp qn_op_expm1 = {
    .name = "expm1",
    .version = 1,
    .doc = "e^x - 1",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = expm1_grad,
    .map = &(const QnMapInfo){ .ref = expm1_ref, .flops = 14 },
    .device = QN_TEXT(expm1),
    QN_SAMPLES(expm1_samples),
};
#endif

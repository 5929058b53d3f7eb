/* y = x / 6 + 1/2, cut to 0..1 */
#include "ops/dialect.h"

QN_SCALAR float hardsigmoid_f(float x)
{
    float y = x * 0.166666667f + 0.5f;
    return y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
}
QN_MAP1(hardsigmoid)

#ifdef QN_HOST

static double hardsigmoid_ref(const double *x, const double *param)
{
    (void)param;
    double y = x[0] / 6 + 0.5;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

/* by the output, so that x need not be kept */
static void hardsigmoid_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    QnValue *above = qn_greater(g, y, qn_scalar_like(g, y, 0)),
            *below = qn_less(g, y, qn_scalar_like(g, y, 1));
    QnValue *slope = qn_mul_scalar(g, dy[0], 1.0 / 6);
    dx[0] = qn_where(g, qn_logical_and(g, above, below), slope, qn_scalar_like(g, dy[0], 0));
}

static const QnSample hardsigmoid_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 3 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 3 } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_hardsigmoid(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_hardsigmoid, NULL, x);
}

const QnOp qn_op_hardsigmoid = {
    .name = "hardsigmoid",
    .version = 1,
    .doc = "x / 6 + 1/2 within 0..1",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = hardsigmoid_grad,
    .map = &(const QnMapInfo){ .ref = hardsigmoid_ref, .flops = 4 },
    .device = QN_TEXT(hardsigmoid),
    QN_SAMPLES(hardsigmoid_samples),
};
#endif

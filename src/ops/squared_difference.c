/* y = (a - b)^2, with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float squared_difference_f(float a, float b)
{
    return (a - b) * (a - b);
}

QN_SCALAR qn_long squared_difference_i(qn_long a, qn_long b)
{
    qn_ulong d = (qn_ulong)a - (qn_ulong)b;
    return (qn_long)(d * d); /* wraps, as hardware does */
}
QN_MAP2(squared_difference)

#ifdef QN_HOST

static double squared_difference_ref(const double *x, const double *param)
{
    (void)param;
    return (x[0] - x[1]) * (x[0] - x[1]);
}

static int64_t squared_difference_ref_int(const int64_t *x)
{
    return squared_difference_i(x[0], x[1]);
}

static void squared_difference_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *d = qn_mul(g, dy[0], qn_mul_scalar(g, qn_sub(g, n->in[0], n->in[1]), 2));
    dx[0] = qn_sum_to(g, d, &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_neg(g, d), &n->in[1]->type.shape);
}

static const QnSample squared_difference_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0 } }, .n_in = 2 },
};

QN_API QnValue *qn_squared_difference(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_squared_difference, NULL, a, b);
}

const QnOp qn_op_squared_difference = {
    .name = "squared_difference",
    .version = 1,
    .doc = "(a - b)^2",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT,
    .grad = squared_difference_grad,
    .map = &(const QnMapInfo){ .ref = squared_difference_ref,
                               .ref_int = squared_difference_ref_int,
                               .flops = 2 },
    .device = QN_TEXT(squared_difference),
    QN_SAMPLES(squared_difference_samples),
};
#endif

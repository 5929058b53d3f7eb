/* y = the angle in radians of the point with abscissa b and ordinate a */
#include "ops/dialect.h"

QN_SCALAR float atan2_f(float a, float b)
{
    return qn_atan2f(a, b);
}
QN_MAP2(atan2)

#ifdef QN_HOST

static double atan2_ref(const double *x, const double *param)
{
    (void)param;
    return atan2(x[0], x[1]);
}

/* da = dy b / (a^2 + b^2), db = -dy a / (a^2 + b^2) */
static void atan2_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *a = n->in[0], *b = n->in[1];
    QnValue *s = qn_div(g, dy[0], qn_add(g, qn_square(g, a), qn_square(g, b)));
    dx[0] = qn_sum_to(g, qn_mul(g, s, b), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_neg(g, qn_mul(g, s, a)), &n->in[1]->type.shape);
}

static const QnSample atan2_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.2 }, { 2, { 4, 7 }, .keep_off = 0.2 } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .keep_off = 0.2 }, { 2, { 3, 1 }, .keep_off = 0.2 } }, .n_in = 2 },
    { .in = { { 1, { 130 }, .keep_off = 0.2 }, { 0, .keep_off = 0.2 } }, .n_in = 2 },
};

QN_API QnValue *qn_atan2(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_atan2, NULL, a, b);
}

const QnOp qn_op_atan2 = {
    .name = "atan2",
    .version = 1,
    .doc = "angle of the point (b, a)",
    .n_in = 2,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = atan2_grad,
    .map = &(const QnMapInfo){ .ref = atan2_ref, .flops = 30 },
    .device = QN_TEXT(atan2),
    QN_SAMPLES(atan2_samples),
};
#endif

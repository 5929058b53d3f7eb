/* y = a + t (b - a): from a to b as t goes from 0 to 1; with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float lerp_f(float a, float b, float t)
{
    return a + t * (b - a);
}
QN_MAP3(lerp)

#ifdef QN_HOST

static double lerp_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] + x[2] * (x[1] - x[0]);
}

static void lerp_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *a = n->in[0], *b = n->in[1], *t = n->in[2], *db = qn_mul(g, dy[0], t);
    dx[0] = qn_sum_to(g, qn_sub(g, dy[0], db), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, db, &n->in[1]->type.shape);
    dx[2] = qn_sum_to(g, qn_mul(g, dy[0], qn_sub(g, b, a)), &n->in[2]->type.shape);
}

static const QnSample lerp_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } }, { 2, { 4, 7 }, .lo = 0, .hi = 1 } }, .n_in = 3 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } }, { 0, .lo = 0, .hi = 1 } }, .n_in = 3 },
    { .in = { { 1, { 130 } }, { 1, { 130 } }, { 1, { 130 }, .lo = -1, .hi = 2 } }, .n_in = 3 },
};

QN_API QnValue *qn_lerp(QnGraph *g, QnValue *a, QnValue *b, QnValue *t)
{
    return qn_emit3(g, &qn_op_lerp, NULL, a, b, t);
}

const QnOp qn_op_lerp = {
    .name = "lerp",
    .version = 1,
    .doc = "a + t (b - a)",
    .n_in = 3,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = lerp_grad,
    .map = &(const QnMapInfo){ .ref = lerp_ref, .flops = 3 },
    .device = QN_TEXT(lerp),
    QN_SAMPLES(lerp_samples),
};
#endif

/* y = a - b trunc(a / b): the remainder with the sign of a. Integers: 0 where b is 0. */
#include "ops/dialect.h"

QN_SCALAR float fmod_f(float a, float b)
{
    return qn_fmodf(a, b);
}

QN_SCALAR qn_long fmod_i(qn_long a, qn_long b)
{
    if (b == 0 || b == -1)
        return 0;
    return a % b;
}

QN_SCALAR qn_ulong fmod_u(qn_ulong a, qn_ulong b)
{
    return b == 0 ? 0 : a % b;
}
QN_MAP2(fmod)

#ifdef QN_HOST

static double fmod_ref(const double *x, const double *param)
{
    (void)param;
    return fmod(x[0], x[1]);
}

static uint64_t fmod_ref_uint(const uint64_t *x)
{
    return fmod_u(x[0], x[1]);
}

static int64_t fmod_ref_int(const int64_t *x)
{
    return fmod_i(x[0], x[1]);
}

/* db = -dy trunc(a / b) */
static void fmod_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *b = n->in[1], *q = qn_trunc(g, qn_div(g, n->in[0], b));
    dx[0] = qn_sum_to(g, dy[0], &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_neg(g, qn_mul(g, dy[0], q)), &n->in[1]->type.shape);
}

static const QnSample fmod_samples[] = {
    { .in = { { 2, { 4, 7 }, .lo = -5, .hi = 5 }, { 2, { 4, 7 }, .lo = 0.5, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .lo = -5, .hi = 5 }, { 2, { 3, 1 }, .lo = 0.5, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .lo = -5, .hi = 5 }, { 0, .lo = 0.5, .hi = 2 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -9, .hi = 9 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -3, .hi = 3 } },
      .n_in = 2 },
};

QN_API QnValue *qn_fmod(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_fmod, NULL, a, b);
}

const QnOp qn_op_fmod = {
    .name = "fmod",
    .version = 1,
    .doc = "remainder with the sign of a",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = fmod_grad,
    .map =
        &(const QnMapInfo){
            .ref = fmod_ref, .ref_int = fmod_ref_int, .ref_uint = fmod_ref_uint, .flops = 10 },
    .device = QN_TEXT(fmod),
    QN_SAMPLES(fmod_samples),
};
#endif

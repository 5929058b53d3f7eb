/* y = x^2 */
#include "ops/dialect.h"

QN_SCALAR float square_f(float x)
{
    return x * x;
}

QN_SCALAR qn_long square_i(qn_long x)
{
    return (qn_long)((qn_ulong)x * (qn_ulong)x); /* wraps, as hardware does */
}
QN_MAP1(square)

#ifdef QN_HOST

static double square_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] * x[0];
}

static int64_t square_ref_int(const int64_t *x)
{
    return square_i(x[0]);
}

static void square_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_mul_scalar(g, n->in[0], 2));
}

static const QnSample square_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_square(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_square, NULL, x);
}

const QnOp qn_op_square = {
    .name = "square",
    .version = 1,
    .doc = "x * x",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = square_grad,
    .map = &(const QnMapInfo){ .ref = square_ref, .ref_int = square_ref_int, .flops = 1 },
    .device = QN_TEXT(square),
    QN_SAMPLES(square_samples),
};
#endif

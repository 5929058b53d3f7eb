/* y = min(max(x, 0), 6) */
#include "ops/dialect.h"

QN_SCALAR float relu6_f(float x)
{
    return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
}

QN_SCALAR qn_long relu6_i(qn_long x)
{
    return x < 0 ? 0 : x > 6 ? 6 : x;
}

QN_SCALAR qn_ulong relu6_u(qn_ulong x)
{
    return x > 6 ? 6 : x;
}
QN_MAP1(relu6)

#ifdef QN_HOST

static double relu6_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] < 0 ? 0 : x[0] > 6 ? 6 : x[0];
}

static uint64_t relu6_ref_uint(const uint64_t *x)
{
    return relu6_u(x[0]);
}

static int64_t relu6_ref_int(const int64_t *x)
{
    return relu6_i(x[0]);
}

/* by the output, so that x need not be kept */
static void relu6_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    QnValue *above = qn_greater(g, y, qn_scalar_like(g, y, 0)),
            *below = qn_less(g, y, qn_scalar_like(g, y, 6));
    dx[0] = qn_where(g, qn_logical_and(g, above, below), dy[0], qn_scalar_like(g, dy[0], 0));
}

static const QnSample relu6_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 6 } }, .n_in = 1, .lo = -2, .hi = 8 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 6 } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_relu6(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_relu6, NULL, x);
}

const QnOp qn_op_relu6 = {
    .name = "relu6",
    .version = 1,
    .doc = "min(max(x, 0), 6)",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = relu6_grad,
    .map =
        &(const QnMapInfo){
            .ref = relu6_ref, .ref_int = relu6_ref_int, .ref_uint = relu6_ref_uint, .flops = 2 },
    .device = QN_TEXT(relu6),
    QN_SAMPLES(relu6_samples),
};
#endif

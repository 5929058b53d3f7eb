/* SELU: y = scale x for x > 0, scale alpha (e^x - 1) otherwise. Klambauer et al. 2017. */
#include "ops/dialect.h"

QN_SCALAR float selu_f(float x)
{
    return 1.05070098f * (x > 0.0f ? x : 1.67326324f * qn_expm1f(x));
}
QN_MAP1(selu)

#ifdef QN_HOST

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717

static double selu_ref(const double *x, const double *param)
{
    (void)param;
    return SELU_SCALE * (x[0] > 0 ? x[0] : SELU_ALPHA * expm1(x[0]));
}

/* below zero dx = dy (y + scale alpha) */
static void selu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *on = qn_greater(g, y, qn_scalar_like(g, y, 0));
    QnValue *up = qn_mul_scalar(g, dy[0], SELU_SCALE);
    dx[0] = qn_where(g, on, up, qn_mul(g, dy[0], qn_add_scalar(g, y, SELU_SCALE * SELU_ALPHA)));
}

static const QnSample selu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_selu(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_selu, NULL, x);
}

const QnOp qn_op_selu = {
    .name = "selu",
    .version = 1,
    .doc = "scale (x > 0 ? x : alpha (e^x - 1))",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = selu_grad,
    .map = &(const QnMapInfo){ .ref = selu_ref, .flops = 17 },
    .device = QN_TEXT(selu),
    QN_SAMPLES(selu_samples),
};
#endif

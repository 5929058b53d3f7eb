/* y = x (x / 6 + 1/2 cut to 0..1). Howard et al. 2019. */
#include "ops/dialect.h"

QN_SCALAR float hardswish_f(float x)
{
    float y = x * (x * 0.166666667f + 0.5f);
    return x <= -3.0f ? 0.0f : x >= 3.0f ? x : y;
}
QN_MAP1(hardswish)

#ifdef QN_HOST
#include "ops/onnx.h"

static double hardswish_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] <= -3 ? 0 : x[0] >= 3 ? x[0] : x[0] * (x[0] / 6 + 0.5);
}

/* slope 0 up to -3, x / 3 + 1/2 up to 3, then 1 */
static void hardswish_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0];
    QnValue *inner = qn_less(g, qn_abs(g, x), qn_scalar_like(g, x, 3));
    QnValue *on = qn_greater(g, x, qn_scalar_like(g, x, 0));
    QnValue *outside = qn_where(g, on, dy[0], qn_scalar_like(g, dy[0], 0));
    QnValue *slope = qn_add_scalar(g, qn_mul_scalar(g, x, 1.0 / 3), 0.5);
    dx[0] = qn_where(g, inner, qn_mul(g, dy[0], slope), outside);
}

static const QnSample hardswish_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 3 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 3 } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_hardswish(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_hardswish, NULL, x);
}

static const QnOnnxMap hardswish_onnx[] = { { .name = "HardSwish", .since = 14 } };

const QnOp qn_op_hardswish = {
    .name = "hardswish",
    .version = 1,
    .doc = "x times hardsigmoid(x)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = hardswish_grad,
    .map = &(const QnMapInfo){ .ref = hardswish_ref, .flops = 5 },
    .device = QN_TEXT(hardswish),
    QN_ONNX(hardswish_onnx),
    QN_SAMPLES(hardswish_samples),
};
#endif

/* y = ln((1 + x) / (1 - x)) / 2, |x| < 1 */
#include "ops/dialect.h"

QN_SCALAR float atanh_f(float x)
{
    return qn_atanhf(x);
}
QN_MAP1(atanh)

#ifdef QN_HOST
#include "ops/onnx.h"

static double atanh_ref(const double *x, const double *param)
{
    (void)param;
    return atanh(x[0]);
}

/* dx = dy / (1 - x^2) */
static void atanh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_div(g, dy[0], qn_add_scalar(g, qn_neg(g, qn_square(g, n->in[0])), 1));
}

static const QnSample atanh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -0.5, .hi = 0.5 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -0.9, .hi = 0.9 },
};

QN_API QnValue *qn_atanh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_atanh, NULL, x);
}

static const QnOnnxMap atanh_onnx[] = { { .name = "Atanh", .since = 9 } };

const QnOp qn_op_atanh = {
    .name = "atanh",
    .version = 1,
    .doc = "inverse hyperbolic tangent",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = atanh_grad,
    .map = &(const QnMapInfo){ .ref = atanh_ref, .flops = 25 },
    .device = QN_TEXT(atanh),
    QN_ONNX(atanh_onnx),
    QN_SAMPLES(atanh_samples),
};
#endif

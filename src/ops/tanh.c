/* y = (e^x - e^-x) / (e^x + e^-x) */
#include "ops/dialect.h"

QN_SCALAR float tanh_f(float x)
{
    return qn_tanhf(x);
}
QN_MAP1(tanh)

#ifdef QN_HOST
#include "ops/onnx.h"

static double tanh_ref(const double *x, const double *param)
{
    (void)param;
    return tanh(x[0]);
}

/* dx = dy (1 - y^2) */
static void tanh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    dx[0] = qn_sub(g, dy[0], qn_mul(g, dy[0], qn_mul(g, y, y)));
}

static const QnSample tanh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_tanh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_tanh, NULL, x);
}

static const QnOnnxMap tanh_onnx[] = { { .name = "Tanh", .since = 1 } };

const QnOp qn_op_tanh = {
    .name = "tanh",
    .version = 1,
    .doc = "hyperbolic tangent",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = tanh_grad,
    .map = &(const QnMapInfo){ .ref = tanh_ref, .flops = 16 },
    .device = QN_TEXT(tanh),
    QN_ONNX(tanh_onnx),
    QN_SAMPLES(tanh_samples),
};
#endif

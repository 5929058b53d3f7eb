/* y = 1 / (1 + exp(-x)) */
#include "ops/dialect.h"

QN_SCALAR float sigmoid_f(float x)
{
    return 1.0f / (1.0f + qn_expf(-x));
}
QN_MAP1(sigmoid)

#ifdef QN_HOST
#include "ops/onnx.h"

static double sigmoid_ref(const double *x, const double *param)
{
    (void)param;
    return 1 / (1 + exp(-x[0]));
}

/* dx = dy * (y - y^2) */
static void sigmoid_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    dx[0] = qn_mul(g, dy[0], qn_sub(g, y, qn_mul(g, y, y)));
}

static const QnSample sigmoid_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -6, .hi = 6 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -90, .hi = 90 },
};

QN_API QnValue *qn_sigmoid(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_sigmoid, NULL, x);
}

static const QnOnnxMap sigmoid_onnx[] = { { .name = "Sigmoid", .since = 1 } };

const QnOp qn_op_sigmoid = {
    .name = "sigmoid",
    .version = 1,
    .doc = "1 / (1 + exp(-x))",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = sigmoid_grad,
    .map = &(const QnMapInfo){ .ref = sigmoid_ref, .flops = 12 },
    .device = QN_TEXT(sigmoid),
    QN_ONNX(sigmoid_onnx),
    QN_SAMPLES(sigmoid_samples),
};
#endif

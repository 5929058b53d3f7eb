/* y = sin x, x in radians */
#include "ops/dialect.h"

QN_SCALAR float sin_f(float x)
{
    return qn_sinf(x);
}
QN_MAP1(sin)

#ifdef QN_HOST
#include "ops/onnx.h"

static double sin_ref(const double *x, const double *param)
{
    (void)param;
    return sin(x[0]);
}

static void sin_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_cos(g, n->in[0]));
}

static const QnSample sin_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_sin(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_sin, NULL, x);
}

static const QnOnnxMap sin_onnx[] = { { .name = "Sin", .since = 7 } };

const QnOp qn_op_sin = {
    .name = "sin",
    .version = 1,
    .doc = "sine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = sin_grad,
    .map = &(const QnMapInfo){ .ref = sin_ref, .flops = 15 },
    .device = QN_TEXT(sin),
    QN_ONNX(sin_onnx),
    QN_SAMPLES(sin_samples),
};
#endif

/* y = sqrt x */
#include "ops/dialect.h"

QN_SCALAR float sqrt_f(float x)
{
    return qn_sqrtf(x);
}
QN_MAP1(sqrt)

#ifdef QN_HOST
#include "ops/onnx.h"

static double sqrt_ref(const double *x, const double *param)
{
    (void)param;
    return sqrt(x[0]);
}

/* dx = dy / (2 y) */
static void sqrt_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_div(g, qn_mul_scalar(g, dy[0], 0.5), &n->out[0]);
}

static const QnSample sqrt_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = 0.1, .hi = 5 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = 0.5, .hi = 1000 },
};

QN_API QnValue *qn_sqrt(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_sqrt, NULL, x);
}

static const QnOnnxMap sqrt_onnx[] = { { .name = "Sqrt", .since = 1 } };

const QnOp qn_op_sqrt = {
    .name = "sqrt",
    .version = 1,
    .doc = "square root",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = sqrt_grad,
    .map = &(const QnMapInfo){ .ref = sqrt_ref, .flops = 4 },
    .device = QN_TEXT(sqrt),
    QN_ONNX(sqrt_onnx),
    QN_SAMPLES(sqrt_samples),
};
#endif

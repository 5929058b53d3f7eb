/* y = 1 / x */
#include "ops/dialect.h"

QN_SCALAR float reciprocal_f(float x)
{
    return 1.0f / x;
}
QN_MAP1(reciprocal)

#ifdef QN_HOST
#include "ops/onnx.h"

static double reciprocal_ref(const double *x, const double *param)
{
    (void)param;
    return 1 / x[0];
}

/* dx = -dy y^2 */
static void reciprocal_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    dx[0] = qn_neg(g, qn_mul(g, dy[0], qn_mul(g, y, y)));
}

static const QnSample reciprocal_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = 0.2, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.5 } }, .n_in = 1, .lo = -50, .hi = 50 },
};

QN_API QnValue *qn_reciprocal(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_reciprocal, NULL, x);
}

static const QnOnnxMap reciprocal_onnx[] = { { .name = "Reciprocal", .since = 1 } };

const QnOp qn_op_reciprocal = {
    .name = "reciprocal",
    .version = 1,
    .doc = "1 / x",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = reciprocal_grad,
    .map = &(const QnMapInfo){ .ref = reciprocal_ref, .flops = 4 },
    .device = QN_TEXT(reciprocal),
    QN_ONNX(reciprocal_onnx),
    QN_SAMPLES(reciprocal_samples),
};
#endif

/* y = cos x, x in radians */
#include "ops/dialect.h"

QN_SCALAR float cos_f(float x)
{
    return qn_cosf(x);
}
QN_MAP1(cos)

#ifdef QN_HOST
#include "ops/onnx.h"

static double cos_ref(const double *x, const double *param)
{
    (void)param;
    return cos(x[0]);
}

static void cos_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_neg(g, qn_mul(g, dy[0], qn_sin(g, n->in[0])));
}

static const QnSample cos_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_cos(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_cos, NULL, x);
}

static const QnOnnxMap cos_onnx[] = { { .name = "Cos", .since = 7 } };

const QnOp qn_op_cos = {
    .name = "cos",
    .version = 1,
    .doc = "cosine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = cos_grad,
    .map = &(const QnMapInfo){ .ref = cos_ref, .flops = 15 },
    .device = QN_TEXT(cos),
    QN_ONNX(cos_onnx),
    QN_SAMPLES(cos_samples),
};
#endif

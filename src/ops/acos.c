/* y = arccos x, in radians */
#include "ops/dialect.h"

QN_SCALAR float acos_f(float x)
{
    return qn_acosf(x);
}
QN_MAP1(acos)

#ifdef QN_HOST
#include "ops/onnx.h"

static double acos_ref(const double *x, const double *param)
{
    (void)param;
    return acos(x[0]);
}

/* dx = -dy / sqrt(1 - x^2) */
static void acos_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *rest = qn_add_scalar(g, qn_neg(g, qn_square(g, n->in[0])), 1);
    dx[0] = qn_neg(g, qn_mul(g, dy[0], qn_rsqrt(g, rest)));
}

static const QnSample acos_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -0.9, .hi = 0.9 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -0.9, .hi = 0.9 },
};

QN_API QnValue *qn_acos(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_acos, NULL, x);
}

static const QnOnnxMap acos_onnx[] = { { .name = "Acos", .since = 7 } };

const QnOp qn_op_acos = {
    .name = "acos",
    .version = 1,
    .doc = "inverse cosine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = acos_grad,
    .map = &(const QnMapInfo){ .ref = acos_ref, .flops = 20 },
    .device = QN_TEXT(acos),
    QN_ONNX(acos_onnx),
    QN_SAMPLES(acos_samples),
};
#endif

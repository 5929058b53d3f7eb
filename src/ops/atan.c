/* y = arctan x, in radians */
#include "ops/dialect.h"

QN_SCALAR float atan_f(float x)
{
    return qn_atanf(x);
}
QN_MAP1(atan)

#ifdef QN_HOST
#include "ops/onnx.h"

static double atan_ref(const double *x, const double *param)
{
    (void)param;
    return atan(x[0]);
}

/* dx = dy / (1 + x^2) */
static void atan_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_div(g, dy[0], qn_add_scalar(g, qn_square(g, n->in[0]), 1));
}

static const QnSample atan_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -2, .hi = 2 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_atan(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_atan, NULL, x);
}

static const QnOnnxMap atan_onnx[] = { { .name = "Atan", .since = 7 } };

const QnOp qn_op_atan = {
    .name = "atan",
    .version = 1,
    .doc = "inverse tangent",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = atan_grad,
    .map = &(const QnMapInfo){ .ref = atan_ref, .flops = 20 },
    .device = QN_TEXT(atan),
    QN_ONNX(atan_onnx),
    QN_SAMPLES(atan_samples),
};
#endif

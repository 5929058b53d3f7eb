/* y = (e^x - e^-x) / 2 */
#include "ops/dialect.h"

QN_SCALAR float sinh_f(float x)
{
    return qn_sinhf(x);
}
QN_MAP1(sinh)

#ifdef QN_HOST
#include "ops/onnx.h"

static double sinh_ref(const double *x, const double *param)
{
    (void)param;
    return sinh(x[0]);
}

static void sinh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_cosh(g, n->in[0]));
}

static const QnSample sinh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -0.1, .hi = 0.1 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -5, .hi = 5 },
};

QN_API QnValue *qn_sinh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_sinh, NULL, x);
}

static const QnOnnxMap sinh_onnx[] = { { .name = "Sinh", .since = 9 } };

const QnOp qn_op_sinh = {
    .name = "sinh",
    .version = 1,
    .doc = "hyperbolic sine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = sinh_grad,
    .map = &(const QnMapInfo){ .ref = sinh_ref, .flops = 20 },
    .device = QN_TEXT(sinh),
    QN_ONNX(sinh_onnx),
    QN_SAMPLES(sinh_samples),
};
#endif

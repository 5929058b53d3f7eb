/* y = (e^x + e^-x) / 2 */
#include "ops/dialect.h"

QN_SCALAR float cosh_f(float x)
{
    return qn_coshf(x);
}
QN_MAP1(cosh)

#ifdef QN_HOST
#include "ops/onnx.h"

static double cosh_ref(const double *x, const double *param)
{
    (void)param;
    return cosh(x[0]);
}

static void cosh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_sinh(g, n->in[0]));
}

static const QnSample cosh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -5, .hi = 5 },
};

QN_API QnValue *qn_cosh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_cosh, NULL, x);
}

static const QnOnnxMap cosh_onnx[] = { { .name = "Cosh", .since = 9 } };

const QnOp qn_op_cosh = {
    .name = "cosh",
    .version = 1,
    .doc = "hyperbolic cosine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = cosh_grad,
    .map = &(const QnMapInfo){ .ref = cosh_ref, .flops = 20 },
    .device = QN_TEXT(cosh),
    QN_ONNX(cosh_onnx),
    QN_SAMPLES(cosh_samples),
};
#endif

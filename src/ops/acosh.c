/* y = ln(x + sqrt(x^2 - 1)), x >= 1 */
#include "ops/dialect.h"

QN_SCALAR float acosh_f(float x)
{
    return qn_acoshf(x);
}
QN_MAP1(acosh)

#ifdef QN_HOST
#include "ops/onnx.h"

static double acosh_ref(const double *x, const double *param)
{
    (void)param;
    return acosh(x[0]);
}

/* dx = dy / sqrt(x^2 - 1); the product keeps digits near 1 */
static void acosh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0], *p = qn_mul(g, qn_add_scalar(g, x, -1), qn_add_scalar(g, x, 1));
    dx[0] = qn_mul(g, dy[0], qn_rsqrt(g, p));
}

static const QnSample acosh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = 1.1, .hi = 4 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = 2, .hi = 100 },
};

QN_API QnValue *qn_acosh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_acosh, NULL, x);
}

static const QnOnnxMap acosh_onnx[] = { { .name = "Acosh", .since = 9 } };

const QnOp qn_op_acosh = {
    .name = "acosh",
    .version = 1,
    .doc = "inverse hyperbolic cosine",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = acosh_grad,
    .map = &(const QnMapInfo){ .ref = acosh_ref, .flops = 25 },
    .device = QN_TEXT(acosh),
    QN_ONNX(acosh_onnx),
    QN_SAMPLES(acosh_samples),
};
#endif

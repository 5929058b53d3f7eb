/* y = e^x */
#include "ops/dialect.h"

QN_SCALAR float exp_f(float x)
{
    return qn_expf(x);
}
QN_MAP1(exp)

#ifdef QN_HOST
#include "ops/onnx.h"

static double exp_ref(const double *x, const double *param)
{
    (void)param;
    return exp(x[0]);
}

static void exp_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], &n->out[0]);
}

static const QnSample exp_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -6, .hi = 6 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -80, .hi = 80, .flags = QN_SAMPLE_F32_ONLY },
};

QN_API QnValue *qn_exp(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_exp, NULL, x);
}

static const QnOnnxMap exp_onnx[] = { { .name = "Exp", .since = 1 } };

const QnOp qn_op_exp = {
    .name = "exp",
    .version = 1,
    .doc = "e^x",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = exp_grad,
    .map = &(const QnMapInfo){ .ref = exp_ref, .flops = 10 },
    .device = QN_TEXT(exp),
    QN_ONNX(exp_onnx),
    QN_SAMPLES(exp_samples),
};
#endif

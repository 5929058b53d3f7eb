/* y = ln x */
#include "ops/dialect.h"

QN_SCALAR float log_f(float x)
{
    return qn_logf(x);
}
QN_MAP1(log)

#ifdef QN_HOST
#include "ops/onnx.h"

static double log_ref(const double *x, const double *param)
{
    (void)param;
    return log(x[0]);
}

static void log_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_div(g, dy[0], n->in[0]);
}

static const QnSample log_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = 0.1, .hi = 5 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = 0.5, .hi = 1000 },
};

QN_API QnValue *qn_log(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_log, NULL, x);
}

static const QnOnnxMap log_onnx[] = { { .name = "Log", .since = 1 } };

const QnOp qn_op_log = {
    .name = "log",
    .version = 1,
    .doc = "natural logarithm",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = log_grad,
    .map = &(const QnMapInfo){ .ref = log_ref, .flops = 10 },
    .device = QN_TEXT(log),
    QN_ONNX(log_onnx),
    QN_SAMPLES(log_samples),
};
#endif

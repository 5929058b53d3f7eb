/* y = -x */
#include "ops/dialect.h"

QN_SCALAR float neg_f(float x)
{
    return -x;
}

QN_SCALAR qn_long neg_i(qn_long x)
{
    return (qn_long)(0 - (qn_ulong)x);
}
QN_MAP1(neg)

#ifdef QN_HOST
#include "ops/onnx.h"

static double neg_ref(const double *x, const double *param)
{
    (void)param;
    return -x[0];
}

static int64_t neg_ref_int(const int64_t *x)
{
    return neg_i(x[0]);
}

static void neg_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    (void)n;
    dx[0] = qn_neg(g, dy[0]);
}

static const QnSample neg_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -1000, .hi = 1000 },
};

QN_API QnValue *qn_neg(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_neg, NULL, x);
}

static const QnOnnxMap neg_onnx[] = { { .name = "Neg", .since = 1 } };

const QnOp qn_op_neg = {
    .name = "neg",
    .version = 1,
    .doc = "-x",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = neg_grad,
    .map = &(const QnMapInfo){ .ref = neg_ref, .ref_int = neg_ref_int, .flops = 1 },
    .device = QN_TEXT(neg),
    QN_ONNX(neg_onnx),
    QN_SAMPLES(neg_samples),
};
#endif

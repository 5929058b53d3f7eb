/* y = a - b, with broadcasting. */
#include "ops/dialect.h"

QN_SCALAR float sub_f(float a, float b)
{
    return a - b;
}

QN_SCALAR qn_long sub_i(qn_long a, qn_long b)
{
    return (qn_long)((qn_ulong)a - (qn_ulong)b); /* wraps, as hardware does */
}
QN_MAP2(sub)

#ifdef QN_HOST
#include "ops/onnx.h"

static double sub_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] - x[1];
}

static int64_t sub_ref_int(const int64_t *x)
{
    return sub_i(x[0], x[1]);
}

static void sub_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_sum_to(g, dy[0], &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_neg(g, dy[0]), &n->in[1]->type.shape);
}

static const QnSample sub_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0 } }, .n_in = 2 },
};

QN_API QnValue *qn_sub(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_sub, NULL, a, b);
}

static const QnOnnxMap sub_onnx[] = { { .name = "Sub", .since = 7 } };

const QnOp qn_op_sub = {
    .name = "sub",
    .version = 1,
    .doc = "a - b",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = sub_grad,
    .map = &(const QnMapInfo){ .ref = sub_ref, .ref_int = sub_ref_int, .flops = 1 },
    .device = QN_TEXT(sub),
    QN_ONNX(sub_onnx),
    QN_SAMPLES(sub_samples),
};
#endif

/* y = a * b, with broadcasting. */
#include "ops/dialect.h"

QN_SCALAR float mul_f(float a, float b)
{
    return a * b;
}

QN_SCALAR qn_long mul_i(qn_long a, qn_long b)
{
    return (qn_long)((qn_ulong)a * (qn_ulong)b); /* wraps, as hardware does */
}
QN_MAP2(mul)

#ifdef QN_HOST
#include "ops/onnx.h"

static double mul_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] * x[1];
}

static int64_t mul_ref_int(const int64_t *x)
{
    return mul_i(x[0], x[1]);
}

static void mul_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_sum_to(g, qn_mul(g, dy[0], n->in[1]), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_mul(g, dy[0], n->in[0]), &n->in[1]->type.shape);
}

static const QnSample mul_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0 } }, .n_in = 2 },
};

QN_API QnValue *qn_mul(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_mul, NULL, a, b);
}

QN_API QnValue *qn_mul_scalar(QnGraph *g, QnValue *x, double b)
{
    return qn_mul(g, x, qn_scalar_like(g, x, b));
}

static const QnOnnxMap mul_onnx[] = { { .name = "Mul", .since = 7 } };

const QnOp qn_op_mul = {
    .name = "mul",
    .version = 1,
    .doc = "a * b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT,
    .grad = mul_grad,
    .map = &(const QnMapInfo){ .ref = mul_ref, .ref_int = mul_ref_int, .flops = 1 },
    .device = QN_TEXT(mul),
    QN_ONNX(mul_onnx),
    QN_SAMPLES(mul_samples),
};
#endif

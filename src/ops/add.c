/* y = a + b, with broadcasting. */
#include "ops/dialect.h"

QN_SCALAR float add_f(float a, float b)
{
    return a + b;
}

QN_SCALAR qn_long add_i(qn_long a, qn_long b)
{
    return (qn_long)((qn_ulong)a + (qn_ulong)b); /* wraps, as hardware does */
}
QN_MAP2(add)

#ifdef QN_HOST
#include "ops/onnx.h"

static double add_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] + x[1];
}

static int64_t add_ref_int(const int64_t *x)
{
    return add_i(x[0], x[1]);
}

static void add_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_sum_to(g, dy[0], &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, dy[0], &n->in[1]->type.shape);
}

static const QnSample add_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0 } }, .n_in = 2 },
};

QN_API QnValue *qn_add(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_add, NULL, a, b);
}

QN_API QnValue *qn_add_scalar(QnGraph *g, QnValue *x, double b)
{
    return qn_add(g, x, qn_scalar_like(g, x, b));
}

static QnStatus add_import_sum(QnOnnxNode *n)
{
    return qn_onnx_pairs(n, qn_add);
}

static const QnOnnxMap add_onnx[] = {
    { .name = "Add", .since = 7 },
    { .name = "Sum", .since = 1, .import = add_import_sum },
};

const QnOp qn_op_add = {
    .name = "add",
    .version = 1,
    .doc = "a + b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT,
    .grad = add_grad,
    .map = &(const QnMapInfo){ .ref = add_ref, .ref_int = add_ref_int, .flops = 1 },
    .device = QN_TEXT(add),
    QN_ONNX(add_onnx),
    QN_SAMPLES(add_samples),
};
#endif

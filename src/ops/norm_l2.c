/* y = square root of the sum of x^2 over axes. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float norm_l2_take(float s, float x)
{
    return s + x * x;
}

QN_SCALAR float norm_l2_join(float a, float b)
{
    return a + b;
}

QN_SCALAR float norm_l2_end(float s, qn_long n)
{
    return qn_sqrtf(s);
}

QN_FOLD(norm_l2, QN_T, qn_load, qn_store, float, 0.0f)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"

static const QnAttrField norm_l2_fields[] = { QN_REDUCE_FIELDS };

static QnStatus norm_l2_infer(QnInfer *c)
{
    return qn_fold_infer(c, "norm_l2", true);
}

static QnCost norm_l2_cost(const QnNode *n)
{
    return qn_fold_cost(n, 2);
}

static double norm(const double *x, int64_t n, double param)
{
    (void)param;
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += x[i] * x[i];
    return sqrt(s);
}

static QnStatus norm_l2_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "norm_l2", norm, 0);
}

/* dx = dy * x / y, and 0 where y is. */
static void norm_l2_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *zero = qn_scalar_like(g, y, 0);
    QnValue *is_zero = qn_equal(g, y, zero);
    QnValue *safe = qn_where(g, is_zero, qn_scalar_like(g, y, 1), y);
    QnValue *scale = qn_where(g, is_zero, zero, qn_div(g, dy[0], safe));
    dx[0] = qn_mul(g, n->in[0], qn_fold_spread(g, n, scale));
}

static QnStatus norm_l2_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "norm_l2_fold", "norm_l2_last", c);
}

static const QnSample norm_l2_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.05 } }, .n_in = 1 },
    { .in = { { 3, { 3, 130, 2 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { 1 } }, false } },
    { .in = { { 4, { 2, 3, 4, 5 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 2, { -1, 0 } }, true } },
};

QN_API QnValue *qn_norm_l2(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_norm_l2, &(QnReduceAttr){ axes, keepdims }, x);
}

static QnStatus norm_l2_import(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, qn_norm_l2, true, 0);
}

static const QnOnnxMap norm_l2_onnx[] = {
    { .name = "ReduceL2", .since = 1, .import = norm_l2_import },
};

const QnOp qn_op_norm_l2 = {
    .name = "norm_l2",
    .version = 1,
    .doc = "Euclidean length over axes",
    .n_in = 1,
    .traits = QN_REDUCE,
    QN_ATTRS(QnReduceAttr, norm_l2_fields),
    .infer = norm_l2_infer,
    .cost = norm_l2_cost,
    .ref = norm_l2_ref,
    .grad = norm_l2_grad,
    .device = QN_TEXT(norm_l2),
    .call = norm_l2_call,
    QN_ONNX(norm_l2_onnx),
    QN_SAMPLES(norm_l2_samples),
};
#endif

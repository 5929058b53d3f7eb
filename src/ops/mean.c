/* y = mean of x over axes. Sums in f32 or wider in a fixed order. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float mean_take(float s, float x)
{
    return s + x;
}

QN_SCALAR float mean_join(float a, float b)
{
    return a + b;
}

QN_SCALAR float mean_end(float s, qn_long n)
{
    return s / (float)n;
}

QN_FOLD(mean, QN_T, qn_load, qn_store, float, 0.0f)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"

static const QnAttrField mean_fields[] = { QN_REDUCE_FIELDS };

static QnStatus mean_infer(QnInfer *c)
{
    return qn_fold_infer(c, "mean", false);
}

static QnCost mean_cost(const QnNode *n)
{
    return qn_fold_cost(n, 1);
}

static double mean_of(const double *x, int64_t n, double param)
{
    (void)param;
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += x[i];
    return s / (double)n;
}

static QnStatus mean_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "mean", mean_of, 0);
}

static void mean_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnDims folded = qn_fold_dims(n);
    QnDtype t = n->in[0]->type.dtype, wide = qn_norm_stat(t); /* 1/n is no number of 16 bits */
    QnValue *scale = qn_count(g, wide, &folded, 0, -1);
    QnValue *d = qn_mul(g, qn_cast(g, dy[0], wide), scale);
    dx[0] = qn_fold_spread(g, n, qn_cast(g, d, t));
}

static QnStatus mean_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "mean_fold", "mean_last", c);
}

static const QnSample mean_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 3, 130, 2 } } }, .n_in = 1, .attr = &(QnReduceAttr){ { 1, { 1 } }, false } },
    { .in = { { 4, { 2, 3, 4, 5 } } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 2, { -1, 2 } }, true } },
    { .in = { { 3, { 4, 3, 5 } } }, .n_in = 1, .attr = &(QnReduceAttr){ { 2, { 0, 2 } }, false } },
};

QN_API QnValue *qn_mean(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_mean, &(QnReduceAttr){ axes, keepdims }, x);
}

static QnStatus mean_import(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, qn_mean, true, NAN);
}

static const QnOnnxMap mean_onnx[] = {
    { .name = "ReduceMean", .since = 1, .import = mean_import },
};

static QnStatus mean_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_reduce(p, n, "ReduceMean", 18);
    return qn_put_status(p);
}

const QnOp qn_op_mean = {
    .name = "mean",
    .version = 1,
    .doc = "mean over axes",
    .n_in = 1,
    .traits = QN_REDUCE,
    QN_ATTRS(QnReduceAttr, mean_fields),
    .infer = mean_infer,
    .cost = mean_cost,
    .ref = mean_ref,
    .grad = mean_grad,
    .device = QN_TEXT(mean),
    .call = mean_call,
    QN_ONNX(mean_onnx),
    .onnx_put = mean_put,
    .onnx_writes = "ReduceMean",
    QN_SAMPLES(mean_samples),
};
#endif

/* y = sum of |x| over axes. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float norm_l1_take(float s, float x)
{
    return s + qn_absf(x);
}

QN_SCALAR float norm_l1_join(float a, float b)
{
    return a + b;
}

QN_SCALAR float norm_l1_end(float s, qn_long n)
{
    return s;
}

QN_FOLD(norm_l1, QN_T, qn_load, qn_store, float, 0.0f)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"

static const QnAttrField norm_l1_fields[] = { QN_REDUCE_FIELDS };

static QnStatus norm_l1_infer(QnInfer *c)
{
    return qn_fold_infer(c, "norm_l1", true);
}

static QnCost norm_l1_cost(const QnNode *n)
{
    return qn_fold_cost(n, 2);
}

static double norm(const double *x, int64_t n, double param)
{
    (void)param;
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += fabs(x[i]);
    return s;
}

static QnStatus norm_l1_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "norm_l1", norm, 0);
}

static void norm_l1_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, qn_sign(g, n->in[0]), qn_fold_spread(g, n, dy[0]));
}

static QnStatus norm_l1_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "norm_l1_fold", "norm_l1_last", c);
}

static const QnSample norm_l1_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.05 } }, .n_in = 1 },
    { .in = { { 3, { 3, 130, 2 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { 1 } }, false } },
    { .in = { { 4, { 2, 3, 4, 5 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 2, { -1, 0 } }, true } },
};

QN_API QnValue *qn_norm_l1(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_norm_l1, &(QnReduceAttr){ axes, keepdims }, x);
}

/* Integers stay exact. */
static QnValue *import_fold(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_value_is_poison(x) || qn_dtype_is_float(x->type.dtype)
               ? qn_norm_l1(g, x, axes, keepdims)
               : qn_sum(g, qn_abs(g, x), axes, keepdims);
}

static QnStatus norm_l1_import(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, import_fold, false, 0);
}

static const QnOnnxMap norm_l1_onnx[] = {
    { .name = "ReduceL1", .since = 1, .import = norm_l1_import },
};

const QnOp qn_op_norm_l1 = {
    .name = "norm_l1",
    .version = 1,
    .doc = "sum of absolute values over axes",
    .n_in = 1,
    .traits = QN_REDUCE,
    QN_ATTRS(QnReduceAttr, norm_l1_fields),
    .infer = norm_l1_infer,
    .cost = norm_l1_cost,
    .ref = norm_l1_ref,
    .grad = norm_l1_grad,
    .device = QN_TEXT(norm_l1),
    .call = norm_l1_call,
    QN_ONNX(norm_l1_onnx),
    QN_SAMPLES(norm_l1_samples),
};
#endif

/* y = least element of x over axes; NaN if there is one. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float reduce_min_take(float s, float x)
{
    return s < x || s != s ? s : x;
}

QN_SCALAR float reduce_min_join(float a, float b)
{
    return a < b || a != a ? a : b;
}

QN_SCALAR float reduce_min_end(float s, qn_long n)
{
    return s;
}

QN_FOLD(reduce_min, QN_T, qn_load, qn_store, float, QN_INF)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/whole.h"

static const QnAttrField reduce_min_fields[] = { QN_REDUCE_FIELDS };

static QnStatus reduce_min_infer(QnInfer *c)
{
    const QnReduceAttr *attr = c->attr;
    const QnShape *s = &c->in[0]->shape;
    unsigned mask;
    QN_TRY(qn_util_axes_mask("reduce_min", s, &attr->axes, &mask));
    for (int i = 0; i < s->rank; i++) {
        if (mask >> i & 1 && s->dim[i] == 0)
            return qn_fail(QN_ESHAPE, "reduce_min: axis %d has length 0; nothing to compare", i);
    }
    return qn_util_reduce_infer(c, "reduce_min");
}

static QnCost reduce_min_cost(const QnNode *n)
{
    return qn_fold_cost(n, 1);
}

static double most(const double *x, int64_t n, double param)
{
    (void)param;
    double m = x[0];
    for (int64_t i = 1; i < n; i++)
        m = x[i] < m || isnan(x[i]) ? x[i] : m;
    return m;
}

static int64_t reduce_min_whole(QnDtype dtype, int64_t s, int64_t x)
{
    return qn_whole_less(dtype, x, s) ? x : s;
}

static QnStatus reduce_min_ref(const QnRefArgs *a)
{
    if (qn_whole_is(a))
        return qn_fold_whole_ref(a, "reduce_min", reduce_min_whole, QN_FOLD_FIRST);
    return qn_fold_ref(a, "reduce_min", most, 0);
}

/* dy goes to the least elements, in equal shares. */
static void reduce_min_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnReduceAttr *attr = n->attr;
    QnValue *x = n->in[0], *y = qn_fold_spread(g, n, &n->out[0]);
    QnValue *hit = qn_cast(g, qn_equal(g, x, y), x->type.dtype);
    QnValue *share = qn_div(g, dy[0], qn_sum(g, hit, attr->axes, attr->keepdims));
    dx[0] = qn_mul(g, hit, qn_fold_spread(g, n, share));
}

static QnStatus reduce_min_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "reduce_min_fold", "reduce_min_last", c);
}

static const QnSample reduce_min_samples[] = {
    { .in = { { 2, { 4, 7 }, .distinct = true } }, .n_in = 1 },
    { .in = { { 3, { 3, 130, 2 }, .lo = -9, .hi = 9, .distinct = true } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { 1 } }, false } },
    { .in = { { 4, { 2, 3, 4, 5 }, .lo = -2, .hi = 2, .distinct = true } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 2, { -1, 0 } }, true } },
    { .in = { { 2, { 3, 5 }, QN_DTYPE_I32, -9, 9 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { 0 } }, false },
      .flags = QN_SAMPLE_NO_GRAD }, /* integers */
};

QN_API QnValue *qn_reduce_min(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_reduce_min, &(QnReduceAttr){ axes, keepdims }, x);
}

static QnStatus reduce_min_import(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    bool all = t && t->dtype == QN_DTYPE_BOOL;
    return qn_onnx_reduce(n, all ? qn_reduce_all : qn_reduce_min, false, INFINITY);
}

static const QnOnnxMap reduce_min_onnx[] = {
    { .name = "ReduceMin", .since = 1, .import = reduce_min_import },
};

static QnStatus reduce_min_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_reduce(p, n, "ReduceMin", 18);
    return qn_put_status(p);
}

const QnOp qn_op_reduce_min = {
    .name = "reduce_min",
    .version = 1,
    .doc = "least element over axes",
    .n_in = 1,
    .traits = QN_REDUCE | QN_WHOLE,
    QN_ATTRS(QnReduceAttr, reduce_min_fields),
    .infer = reduce_min_infer,
    .cost = reduce_min_cost,
    .ref = reduce_min_ref,
    .grad = reduce_min_grad,
    .device = QN_TEXT(reduce_min),
    .call = reduce_min_call,
    QN_ONNX(reduce_min_onnx),
    .onnx_put = reduce_min_put,
    .onnx_writes = "ReduceMin",
    QN_SAMPLES(reduce_min_samples),
};
#endif

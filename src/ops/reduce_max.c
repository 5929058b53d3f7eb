/* y = greatest element of x over axes; NaN if there is one. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float reduce_max_take(float s, float x)
{
    return s > x || s != s ? s : x;
}

QN_SCALAR float reduce_max_join(float a, float b)
{
    return a > b || a != a ? a : b;
}

QN_SCALAR float reduce_max_end(float s, qn_long n)
{
    return s;
}

QN_FOLD(reduce_max, QN_T, qn_load, qn_store, float, -QN_INF)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/whole.h"

static const QnAttrField reduce_max_fields[] = { QN_REDUCE_FIELDS };

static QnStatus reduce_max_infer(QnInfer *c)
{
    const QnReduceAttr *attr = c->attr;
    const QnShape *s = &c->in[0]->shape;
    unsigned mask;
    QN_TRY(qn_util_axes_mask("reduce_max", s, &attr->axes, &mask));
    for (int i = 0; i < s->rank; i++) {
        if (mask >> i & 1 && s->dim[i] == 0)
            return qn_fail(QN_ESHAPE, "reduce_max: axis %d has length 0; nothing to compare", i);
    }
    return qn_util_reduce_infer(c, "reduce_max");
}

static QnCost reduce_max_cost(const QnNode *n)
{
    return qn_fold_cost(n, 1);
}

static double most(const double *x, int64_t n, double param)
{
    (void)param;
    double m = x[0];
    for (int64_t i = 1; i < n; i++)
        m = x[i] > m || isnan(x[i]) ? x[i] : m;
    return m;
}

static int64_t reduce_max_whole(QnDtype dtype, int64_t s, int64_t x)
{
    return qn_whole_less(dtype, s, x) ? x : s;
}

static QnStatus reduce_max_ref(const QnRefArgs *a)
{
    if (qn_whole_is(a))
        return qn_fold_whole_ref(a, "reduce_max", reduce_max_whole, QN_FOLD_FIRST);
    return qn_fold_ref(a, "reduce_max", most, 0);
}

/* dy goes to the greatest elements, in equal shares. */
static void reduce_max_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnReduceAttr *attr = n->attr;
    QnValue *x = n->in[0], *y = qn_fold_spread(g, n, &n->out[0]);
    QnValue *hit = qn_cast(g, qn_equal(g, x, y), x->type.dtype);
    QnValue *share = qn_div(g, dy[0], qn_sum(g, hit, attr->axes, attr->keepdims));
    dx[0] = qn_mul(g, hit, qn_fold_spread(g, n, share));
}

static QnStatus reduce_max_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "reduce_max_fold", "reduce_max_last", c);
}

static const QnSample reduce_max_samples[] = {
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

QN_API QnValue *qn_reduce_max(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_reduce_max, &(QnReduceAttr){ axes, keepdims }, x);
}

static QnStatus reduce_max_import(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    bool any = t && t->dtype == QN_DTYPE_BOOL;
    return qn_onnx_reduce(n, any ? qn_reduce_any : qn_reduce_max, false, any ? 0 : -INFINITY);
}

static const QnOnnxMap reduce_max_onnx[] = {
    { .name = "ReduceMax", .since = 1, .import = reduce_max_import },
};

static QnStatus reduce_max_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_reduce(p, n, "ReduceMax", 18);
    return qn_put_status(p);
}

const QnOp qn_op_reduce_max = {
    .name = "reduce_max",
    .version = 1,
    .doc = "greatest element over axes",
    .n_in = 1,
    .traits = QN_REDUCE | QN_WHOLE,
    QN_ATTRS(QnReduceAttr, reduce_max_fields),
    .infer = reduce_max_infer,
    .cost = reduce_max_cost,
    .ref = reduce_max_ref,
    .grad = reduce_max_grad,
    .device = QN_TEXT(reduce_max),
    .call = reduce_max_call,
    QN_ONNX(reduce_max_onnx),
    .onnx_put = reduce_max_put,
    .onnx_writes = "ReduceMax",
    QN_SAMPLES(reduce_max_samples),
};
#endif

/* Greatest element of each window: x (N,C,in...), y (N,C,out...); padding never wins. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Offset in its plane of the first greatest element of window o; NaN counts as greatest. */
QN_SCALAR qn_long max_pool_at(QN_GLOBAL const QN_T *x, qn_long plane, qn_long o, qn_long i0,
                              qn_long i1, qn_long i2, qn_long k0, qn_long k1, qn_long k2,
                              qn_long o0, qn_long o1, qn_long o2, qn_long s0, qn_long s1,
                              qn_long s2, qn_long p0, qn_long p1, qn_long p2, qn_long d0,
                              qn_long d1, qn_long d2)
{
    qn_long best = -1;
    float top = 0.0f;
    for (qn_long t = 0; t < k0 * k1 * k2; t++) {
        qn_long e = o / o2 / o1 * s0 - p0 + t / k2 / k1 * d0;
        qn_long g = o / o2 % o1 * s1 - p1 + t / k2 % k1 * d1, h = o % o2 * s2 - p2 + t % k2 * d2;
        if (e < 0 || e >= i0 || g < 0 || g >= i1 || h < 0 || h >= i2)
            continue;
        qn_long at = (e * i1 + g) * i2 + h;
        float v = qn_load(x, plane + at);
        if (best < 0 || v > top || (v != v && top == top)) {
            best = at;
            top = v;
        }
    }
    return best;
}

QN_KERNEL max_pool_item(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long planes, qn_long i0,
                        qn_long i1, qn_long i2, qn_long k0, qn_long k1, qn_long k2, qn_long o0,
                        qn_long o1, qn_long o2, qn_long s0, qn_long s1, qn_long s2, qn_long p0,
                        qn_long p1, qn_long p2, qn_long d0, qn_long d1, qn_long d2)
{
    qn_long i = qn_item(), n = o0 * o1 * o2;
    if (i >= planes * n)
        return;
    qn_long plane = i / n * i0 * i1 * i2;
    qn_long at = max_pool_at(x, plane, i % n, i0, i1, i2, k0, k1, k2, o0, o1, o2, s0, s1, s2, p0,
                             p1, p2, d0, d1, d2);
    qn_store(y, i, at < 0 ? -QN_INF : qn_load(x, plane + at)); /* all padding */
}
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/onnx_window.h"
#include "ops/ops.h"
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField max_pool_fields[] = { QN_POOL_FIELDS };

static QnStatus max_pool_infer(QnInfer *c)
{
    QnType *y = &c->out[0];
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "max_pool: needs floats, not %s", qn_dtype_name(c->in[0]->dtype));
    y->dtype = c->in[0]->dtype;
    return qn_window_pool_shape(c->graph, "max_pool", c->attr, &c->in[0]->shape, &y->shape);
}

static QnCost max_pool_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[0]->type.shape, &n->out[0].type.shape);
    return (QnCost){ .flops = (double)qn_shape_count(&n->out[0].type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus max_pool_ref(const QnRefArgs *a)
{
    QnWindow w = qn_window_pool(a->attr, &a->in_type[0]->shape, &a->out_type[0]->shape);
    int64_t n = qn_shape_count(&a->out_type[0]->shape), windows = w.out[0] * w.out[1] * w.out[2];
    int64_t cells = w.in[0] * w.in[1] * w.in[2];
    for (int64_t i = 0; i < n; i++) {
        const double *x = a->in[0] + i / windows * cells;
        int64_t at = qn_window_argmax(&w, x, i % windows);
        a->out[0][i] = at < 0 ? -INFINITY : x[at];
    }
    return QN_OK;
}

static void max_pool_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_max_pool_grad(g, dy[0], n->in[0], n->attr);
}

static QnStatus max_pool_call(const QnNode *n, QnDeviceCall *c)
{
    const QnShape *x = &n->in[0]->type.shape, *y = &n->out[0].type.shape;
    QnWindow w = qn_window_pool(n->attr, x, y);
    *c = (QnDeviceCall){ .kernel = "max_pool_item", .n_groups = qn_shape_count(y) };
    qn_device_int(c, x->dim[0] * x->dim[1]);
    qn_window_args(c, &w);
    return QN_OK;
}

static const QnSample max_pool_samples[] = {
    { .in = { { 4, { 2, 3, 6, 4 }, .distinct = true } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } } },
    { .in = { { 4, { 1, 2, 7, 8 }, .distinct = true } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                             .strides = { 2, { 2, 2 } },
                             .pads = { 4, { 1, 0, 1, 1 } },
                             .ceil_mode = true } },
    { .in = { { 3, { 1, 1, 130 }, .distinct = true } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 1, { 3 } },
                             .strides = { 1, { 2 } },
                             .dilations = { 1, { 2 } } } },
    { .in = { { 5, { 1, 2, 3, 4, 4 }, .distinct = true } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 3, { 2, 2, 2 } }, .strides = { 3, { 1, 2, 1 } } } },
};

QN_API QnValue *qn_max_pool(QnGraph *g, QnValue *x, const QnPoolAttr *attr)
{
    return qn_emit1(g, &qn_op_max_pool, attr, x);
}

/* Integers are compared as the floats that hold them exactly. */
static QnStatus max_pool_import(QnOnnxNode *n)
{
    const QnShape *x;
    QnPoolAttr attr;
    QN_TRY(qn_onnx_window_input(n, &x));
    QN_TRY(qn_onnx_window_pool(n, x, &attr));
    QnDtype t = qn_onnx_type(n, 0)->dtype;
    QnValue *v = qn_onnx_in(n, 0);
    if (!qn_dtype_is_float(t))
        v = qn_cast(n->g, v, qn_dtype_bytes(t) > 1 ? QN_DTYPE_F64 : QN_DTYPE_F32);
    QN_TRY(qn_onnx_out0(n, qn_cast(n->g, qn_max_pool(n->g, v, &attr), t)));
    if (n->n_out < 2 || !n->out_used[1])
        return QN_OK;
    bool by_columns = qn_onnx_int(n, "storage_order", 0) == 1;
    return qn_onnx_out(n, 1, qn_max_pool_indices(n->g, v, &attr, by_columns));
}

static const QnOnnxMap max_pool_onnx[] = {
    { .name = "MaxPool", .since = 1, .import = max_pool_import },
};

static QnStatus max_pool_put(QnOnnxPut *p, const QnNode *n)
{
    qn_window_pool_put(p, n->attr, qn_put_same(p, n, "MaxPool"));
    return qn_put_status(p);
}

const QnOp qn_op_max_pool = {
    .name = "max_pool",
    .version = 1,
    .doc = "greatest element of each window",
    .n_in = 1,
    QN_ATTRS(QnPoolAttr, max_pool_fields),
    .infer = max_pool_infer,
    .cost = max_pool_cost,
    .ref = max_pool_ref,
    .grad = max_pool_grad,
    .device = QN_TEXT(max_pool),
    .call = max_pool_call,
    QN_ONNX(max_pool_onnx),
    .onnx_put = max_pool_put,
    .onnx_writes = "MaxPool",
    QN_SAMPLES(max_pool_samples),
};
#endif

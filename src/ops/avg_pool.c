/* Mean of each window: x (N,C,in...), y (N,C,out...). Divides by the window's elements inside x, or
 * with count_include_pad by those inside x and its padding. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Elements that window o divides by: all, or those inside x; without padding (all = 0) or with. */
QN_SCALAR float avg_pool_count(qn_long o, qn_long all, qn_long i0, qn_long i1, qn_long i2,
                               qn_long k0, qn_long k1, qn_long k2, qn_long o1, qn_long o2,
                               qn_long s0, qn_long s1, qn_long s2, qn_long p0, qn_long p1,
                               qn_long p2, qn_long d0, qn_long d1, qn_long d2, qn_long e0,
                               qn_long e1, qn_long e2)
{
    qn_long count = 0, b0 = all ? p0 : 0, b1 = all ? p1 : 0, b2 = all ? p2 : 0;
    qn_long h0 = all ? i0 + e0 : i0, h1 = all ? i1 + e1 : i1, h2 = all ? i2 + e2 : i2;
    for (qn_long t = 0; t < k0 * k1 * k2; t++) {
        qn_long e = o / o2 / o1 * s0 - p0 + t / k2 / k1 * d0;
        qn_long g = o / o2 % o1 * s1 - p1 + t / k2 % k1 * d1, h = o % o2 * s2 - p2 + t % k2 * d2;
        count += e >= -b0 && e < h0 && g >= -b1 && g < h1 && h >= -b2 && h < h2 ? 1 : 0;
    }
    return (float)count;
}

QN_KERNEL avg_pool_item(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long planes, qn_long i0,
                        qn_long i1, qn_long i2, qn_long k0, qn_long k1, qn_long k2, qn_long o0,
                        qn_long o1, qn_long o2, qn_long s0, qn_long s1, qn_long s2, qn_long p0,
                        qn_long p1, qn_long p2, qn_long d0, qn_long d1, qn_long d2, qn_long e0,
                        qn_long e1, qn_long e2, qn_long all)
{
    qn_long i = qn_item(), n = o0 * o1 * o2, o = i % n;
    if (i >= planes * n)
        return;
    float s = 0.0f;
    for (qn_long t = 0; t < k0 * k1 * k2; t++) {
        qn_long e = o / o2 / o1 * s0 - p0 + t / k2 / k1 * d0;
        qn_long g = o / o2 % o1 * s1 - p1 + t / k2 % k1 * d1, h = o % o2 * s2 - p2 + t % k2 * d2;
        if (e >= 0 && e < i0 && g >= 0 && g < i1 && h >= 0 && h < i2)
            s += qn_load(x, ((i / n * i0 + e) * i1 + g) * i2 + h);
    }
    qn_store(y, i,
             s / avg_pool_count(o, all, i0, i1, i2, k0, k1, k2, o1, o2, s0, s1, s2, p0, p1, p2, d0,
                                d1, d2, e0, e1, e2));
}
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/onnx_window.h"
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField avg_pool_fields[] = { QN_POOL_FIELDS };

static QnStatus avg_pool_infer(QnInfer *c)
{
    QnType *y = &c->out[0];
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "avg_pool: needs floats, not %s", qn_dtype_name(c->in[0]->dtype));
    y->dtype = c->in[0]->dtype;
    return qn_window_pool_shape(c->graph, "avg_pool", c->attr, &c->in[0]->shape, &y->shape);
}

static QnCost avg_pool_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[0]->type.shape, &n->out[0].type.shape);
    return (QnCost){ .flops = (double)qn_shape_count(&n->out[0].type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus avg_pool_ref(const QnRefArgs *a)
{
    QnWindow w = qn_window_pool(a->attr, &a->in_type[0]->shape, &a->out_type[0]->shape);
    qn_window_avg_ref(&w, ((const QnPoolAttr *)a->attr)->count_include_pad,
                      a->out_type[0]->shape.dim[0] * a->out_type[0]->shape.dim[1], a->in[0],
                      a->out[0], false);
    return QN_OK;
}

static void avg_pool_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_avg_pool_grad(g, dy[0], n->attr, &n->in[0]->type.shape);
}

static QnStatus avg_pool_call(const QnNode *n, QnDeviceCall *c)
{
    const QnShape *x = &n->in[0]->type.shape, *y = &n->out[0].type.shape;
    QnWindow w = qn_window_pool(n->attr, x, y);
    *c = (QnDeviceCall){ .kernel = "avg_pool_item", .n_groups = qn_shape_count(y) };
    qn_device_int(c, x->dim[0] * x->dim[1]);
    qn_window_args(c, &w);
    for (int d = 0; d < 3; d++)
        qn_device_int(c, w.end[d]);
    qn_device_int(c, ((const QnPoolAttr *)n->attr)->count_include_pad);
    return QN_OK;
}

static const QnSample avg_pool_samples[] = {
    { .in = { { 4, { 2, 3, 6, 4 } } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } } },
    { .in = { { 4, { 1, 2, 7, 8 } } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                             .strides = { 2, { 2, 2 } },
                             .pads = { 4, { 1, 0, 1, 1 } },
                             .ceil_mode = true } },
    { .in = { { 3, { 1, 1, 130 } } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 1, { 4 } },
                             .strides = { 1, { 3 } },
                             .pads = { 2, { 2, 1 } },
                             .ceil_mode = true,
                             .count_include_pad = true } },
    { .in = { { 5, { 1, 2, 3, 4, 4 } } },
      .n_in = 1,
      .attr = &(QnPoolAttr){ .kernel = { 3, { 2, 2, 2 } }, .strides = { 3, { 1, 2, 1 } } } },
};

QN_API QnValue *qn_avg_pool(QnGraph *g, QnValue *x, const QnPoolAttr *attr)
{
    return qn_emit1(g, &qn_op_avg_pool, attr, x);
}

static QnStatus avg_pool_import(QnOnnxNode *n)
{
    const QnShape *x;
    QnPoolAttr attr;
    QN_TRY(qn_onnx_window_input(n, &x));
    QN_TRY(qn_onnx_window_pool(n, x, &attr));
    return qn_onnx_out0(n, qn_avg_pool(n->g, qn_onnx_in(n, 0), &attr));
}

static const QnOnnxMap avg_pool_onnx[] = {
    { .name = "AveragePool", .since = 1, .import = avg_pool_import },
};

static QnStatus avg_pool_put(QnOnnxPut *p, const QnNode *n)
{
    qn_window_pool_put(p, n->attr, qn_put_same(p, n, "AveragePool"));
    return qn_put_status(p);
}

const QnOp qn_op_avg_pool = {
    .name = "avg_pool",
    .version = 1,
    .doc = "mean of each window",
    .n_in = 1,
    QN_ATTRS(QnPoolAttr, avg_pool_fields),
    .infer = avg_pool_infer,
    .cost = avg_pool_cost,
    .ref = avg_pool_ref,
    .grad = avg_pool_grad,
    .device = QN_TEXT(avg_pool),
    .call = avg_pool_call,
    QN_ONNX(avg_pool_onnx),
    .onnx_put = avg_pool_put,
    .onnx_writes = "AveragePool",
    QN_SAMPLES(avg_pool_samples),
};
#endif

/* Gradient of avg_pool: each window spreads its dy evenly. dy (N,C,out...) to dx (N,C,in...). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Elements that window o divides by: all, or those inside x; without padding (all = 0) or with. */
QN_SCALAR float avg_pool_grad_count(qn_long o, qn_long all, qn_long i0, qn_long i1, qn_long i2,
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

/* One item a dx element: the windows that cover it, in order. */
QN_KERNEL avg_pool_grad_item(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, qn_long planes,
                             qn_long i0, qn_long i1, qn_long i2, qn_long k0, qn_long k1, qn_long k2,
                             qn_long o0, qn_long o1, qn_long o2, qn_long s0, qn_long s1, qn_long s2,
                             qn_long p0, qn_long p1, qn_long p2, qn_long d0, qn_long d1, qn_long d2,
                             qn_long e0, qn_long e1, qn_long e2, qn_long all)
{
    qn_long i = qn_item(), cells = i0 * i1 * i2, n = o0 * o1 * o2, plane = i / cells,
            at = i % cells;
    if (i >= planes * cells)
        return;
    float s = 0.0f;
    for (qn_long t = k0 * k1 * k2 - 1; t >= 0; t--) {
        qn_long e = at / i2 / i1 + p0 - t / k2 / k1 * d0, g = at / i2 % i1 + p1 - t / k2 % k1 * d1;
        qn_long h = at % i2 + p2 - t % k2 * d2;
        if (e < 0 || g < 0 || h < 0 || e % s0 != 0 || g % s1 != 0 || h % s2 != 0 || e / s0 >= o0 ||
            g / s1 >= o1 || h / s2 >= o2)
            continue;
        qn_long o = (e / s0 * o1 + g / s1) * o2 + h / s2;
        s += qn_load(dy, plane * n + o) / avg_pool_grad_count(o, all, i0, i1, i2, k0, k1, k2, o1,
                                                              o2, s0, s1, s2, p0, p1, p2, d0, d1,
                                                              d2, e0, e1, e2);
    }
    qn_store(dx, i, s);
}
#endif

#ifdef QN_HOST
#include "ops/util.h"
#include "ops/window.h"

typedef struct Attr {
    QnPoolAttr pool;
    QnDims dims;
} Attr;

static const QnAttrField avg_pool_grad_fields[] = {
    QN_POOL_FIELDS,
    { .name = "dims",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, dims),
      .doc = "shape of the pool's input" },
};

static QnStatus avg_pool_grad_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnShape x = qn_shape_make(a->dims.n, a->dims.d), y;
    QN_TRY(qn_window_pool_shape(c->graph, "avg_pool_grad", &a->pool, &x, &y));
    QN_TRY(qn_window_pool_operand("avg_pool_grad", c->in[0], c->in[0]->dtype, &y));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = x;
    return QN_OK;
}

static QnWindow avg_pool_grad_window(const QnNode *n)
{
    return qn_window_pool(&((const Attr *)n->attr)->pool, &n->out[0].type.shape,
                          &n->in[0]->type.shape);
}

static QnCost avg_pool_grad_cost(const QnNode *n)
{
    QnWindow w = avg_pool_grad_window(n);
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[0]->type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus avg_pool_grad_ref(const QnRefArgs *a)
{
    QnWindow w = avg_pool_grad_window(a->node);
    const QnShape *x = &a->out_type[0]->shape;
    memset(a->out[0], 0, (size_t)qn_shape_count(x) * sizeof(double));
    qn_window_avg_ref(&w, ((const Attr *)a->attr)->pool.count_include_pad, x->dim[0] * x->dim[1],
                      a->in[0], a->out[0], true);
    return QN_OK;
}

static void avg_pool_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_avg_pool(g, dy[0], &((const Attr *)n->attr)->pool);
}

static QnStatus avg_pool_grad_call(const QnNode *n, QnDeviceCall *c)
{
    const QnShape *x = &n->out[0].type.shape;
    QnWindow w = avg_pool_grad_window(n);
    *c = (QnDeviceCall){ .kernel = "avg_pool_grad_item", .n_groups = qn_shape_count(x) };
    qn_device_int(c, x->dim[0] * x->dim[1]);
    qn_window_args(c, &w);
    for (int d = 0; d < 3; d++)
        qn_device_int(c, w.end[d]);
    qn_device_int(c, ((const Attr *)n->attr)->pool.count_include_pad);
    return QN_OK;
}

static const QnSample avg_pool_grad_samples[] = {
    { .in = { { 4, { 2, 3, 3, 2 } } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 2, { 2, 2 } } }, { 4, { 2, 3, 6, 4 } } } },
    { .in = { { 4, { 1, 2, 4, 4 } } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 2, { 3, 3 } },
                         .strides = { 2, { 2, 2 } },
                         .pads = { 4, { 1, 0, 1, 1 } },
                         .ceil_mode = true },
                       { 4, { 1, 2, 7, 8 } } } },
    { .in = { { 3, { 1, 1, 44 } } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 1, { 4 } },
                         .strides = { 1, { 3 } },
                         .pads = { 2, { 2, 1 } },
                         .ceil_mode = true,
                         .count_include_pad = true },
                       { 3, { 1, 1, 130 } } } },
};

/* dx of an avg_pool with these attributes whose input has shape x. */
QN_API QnValue *qn_avg_pool_grad(QnGraph *g, QnValue *dy, const QnPoolAttr *attr, const QnShape *x)
{
    Attr a = { *attr, { x->rank, { 0 } } };
    memcpy(a.dims.d, x->dim, sizeof a.dims.d);
    return qn_emit1(g, &qn_op_avg_pool_grad, &a, dy);
}

const QnOp qn_op_avg_pool_grad = {
    .name = "avg_pool_grad",
    .version = 1,
    .doc = "gradient of avg_pool",
    .n_in = 1,
    QN_ATTRS(Attr, avg_pool_grad_fields),
    .infer = avg_pool_grad_infer,
    .cost = avg_pool_grad_cost,
    .ref = avg_pool_grad_ref,
    .grad = avg_pool_grad_grad,
    .device = QN_TEXT(avg_pool_grad),
    .call = avg_pool_grad_call,
    QN_SAMPLES(avg_pool_grad_samples),
};
#endif

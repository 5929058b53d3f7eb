/* Gradient of max_pool: each window's dy goes to the element of x that won it. dy (N,C,out...),
 * x (N,C,in...) to dx (N,C,in...). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Offset in its plane of the first greatest element of window o; NaN counts as greatest. */
QN_SCALAR qn_long max_pool_grad_at(QN_GLOBAL const QN_T *x, qn_long plane, qn_long o, qn_long i0,
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

/* One item a dx element, which asks every window that covers it. */
QN_KERNEL max_pool_grad_item(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                             qn_long planes, qn_long i0, qn_long i1, qn_long i2, qn_long k0,
                             qn_long k1, qn_long k2, qn_long o0, qn_long o1, qn_long o2, qn_long s0,
                             qn_long s1, qn_long s2, qn_long p0, qn_long p1, qn_long p2, qn_long d0,
                             qn_long d1, qn_long d2)
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
        if (max_pool_grad_at(x, plane * cells, o, i0, i1, i2, k0, k1, k2, o0, o1, o2, s0, s1, s2,
                             p0, p1, p2, d0, d1, d2) == at)
            s += qn_load(dy, plane * n + o);
    }
    qn_store(dx, i, s);
}
#endif

#ifdef QN_HOST
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField max_pool_grad_fields[] = { QN_POOL_FIELDS };

static QnStatus max_pool_grad_infer(QnInfer *c)
{
    QnShape y;
    const QnType *dy = c->in[0], *x = c->in[1];
    QN_TRY(qn_window_pool_shape(c->graph, "max_pool_grad", c->attr, &x->shape, &y));
    QN_TRY(qn_window_pool_operand("max_pool_grad", dy, x->dtype, &y));
    c->out[0] = *x;
    return QN_OK;
}

static QnCost max_pool_grad_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[1]->type.shape, &n->in[0]->type.shape);
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[0]->type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus max_pool_grad_ref(const QnRefArgs *a)
{
    QnWindow w = qn_window_pool(a->attr, &a->in_type[1]->shape, &a->in_type[0]->shape);
    int64_t n = qn_shape_count(&a->in_type[0]->shape), windows = w.out[0] * w.out[1] * w.out[2];
    int64_t cells = w.in[0] * w.in[1] * w.in[2];
    memset(a->out[0], 0, (size_t)qn_shape_count(&a->out_type[0]->shape) * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        int64_t plane = i / windows * cells;
        int64_t at = qn_window_argmax(&w, a->in[1] + plane, i % windows);
        if (at >= 0)
            a->out[0][plane + at] += a->in[0][i];
    }
    return QN_OK;
}

/* x only chooses; nothing flows into it. */
static void max_pool_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_max_pool_pick(g, dy[0], n->in[1], n->attr);
}

static QnStatus max_pool_grad_call(const QnNode *n, QnDeviceCall *c)
{
    const QnShape *x = &n->in[1]->type.shape;
    QnWindow w = qn_window_pool(n->attr, x, &n->in[0]->type.shape);
    *c = (QnDeviceCall){ .kernel = "max_pool_grad_item",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, x->dim[0] * x->dim[1]);
    qn_window_args(c, &w);
    return QN_OK;
}

static const QnSample max_pool_grad_samples[] = {
    { .in = { { 4, { 2, 3, 3, 2 } }, { 4, { 2, 3, 6, 4 }, .distinct = true } },
      .n_in = 2,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } } },
    { .in = { { 4, { 1, 2, 4, 4 } }, { 4, { 1, 2, 7, 8 }, .distinct = true } },
      .n_in = 2,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                             .strides = { 2, { 2, 2 } },
                             .pads = { 4, { 1, 0, 1, 1 } },
                             .ceil_mode = true } },
    { .in = { { 3, { 1, 1, 63 } }, { 3, { 1, 1, 130 }, .distinct = true } },
      .n_in = 2,
      .attr = &(QnPoolAttr){ .kernel = { 1, { 3 } },
                             .strides = { 1, { 2 } },
                             .dilations = { 1, { 2 } } } },
};

QN_API QnValue *qn_max_pool_grad(QnGraph *g, QnValue *dy, QnValue *x, const QnPoolAttr *attr)
{
    return qn_emit2(g, &qn_op_max_pool_grad, attr, dy, x);
}

const QnOp qn_op_max_pool_grad = {
    .name = "max_pool_grad",
    .version = 1,
    .doc = "gradient of max_pool",
    .n_in = 2,
    QN_ATTRS(QnPoolAttr, max_pool_grad_fields),
    .infer = max_pool_grad_infer,
    .cost = max_pool_grad_cost,
    .ref = max_pool_grad_ref,
    .grad = max_pool_grad_grad,
    .device = QN_TEXT(max_pool_grad),
    .call = max_pool_grad_call,
    QN_SAMPLES(max_pool_grad_samples),
};
#endif

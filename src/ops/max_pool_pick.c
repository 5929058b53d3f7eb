/* The elements of u that stand where x wins its windows: the adjoint of max_pool_grad, so the
 * pools' second derivative. u, x (N,C,in...) to y (N,C,out...). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Offset in its plane of the first greatest element of window o; NaN counts as greatest. */
QN_SCALAR qn_long max_pool_pick_at(QN_GLOBAL const QN_T *x, qn_long plane, qn_long o, qn_long i0,
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

QN_KERNEL max_pool_pick_item(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *u, QN_GLOBAL const QN_T *x,
                             qn_long planes, qn_long i0, qn_long i1, qn_long i2, qn_long k0,
                             qn_long k1, qn_long k2, qn_long o0, qn_long o1, qn_long o2, qn_long s0,
                             qn_long s1, qn_long s2, qn_long p0, qn_long p1, qn_long p2, qn_long d0,
                             qn_long d1, qn_long d2)
{
    qn_long i = qn_item(), n = o0 * o1 * o2;
    if (i >= planes * n)
        return;
    qn_long plane = i / n * i0 * i1 * i2;
    qn_long at = max_pool_pick_at(x, plane, i % n, i0, i1, i2, k0, k1, k2, o0, o1, o2, s0, s1, s2,
                                  p0, p1, p2, d0, d1, d2);
    qn_store(y, i, at < 0 ? 0.0f : qn_load(u, plane + at));
}
#endif

#ifdef QN_HOST
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField max_pool_pick_fields[] = { QN_POOL_FIELDS };

static QnStatus max_pool_pick_infer(QnInfer *c)
{
    const QnType *u = c->in[0], *x = c->in[1];
    QN_TRY(qn_window_pool_operand("max_pool_pick", u, x->dtype, &x->shape));
    c->out[0].dtype = x->dtype;
    return qn_window_pool_shape(c->graph, "max_pool_pick", c->attr, &x->shape, &c->out[0].shape);
}

static QnCost max_pool_pick_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[1]->type.shape, &n->out[0].type.shape);
    return (QnCost){ .flops = (double)qn_shape_count(&n->out[0].type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus max_pool_pick_ref(const QnRefArgs *a)
{
    QnWindow w = qn_window_pool(a->attr, &a->in_type[1]->shape, &a->out_type[0]->shape);
    int64_t n = qn_shape_count(&a->out_type[0]->shape), windows = w.out[0] * w.out[1] * w.out[2];
    int64_t cells = w.in[0] * w.in[1] * w.in[2];
    for (int64_t i = 0; i < n; i++) {
        int64_t plane = i / windows * cells;
        int64_t at = qn_window_argmax(&w, a->in[1] + plane, i % windows);
        a->out[0][i] = at < 0 ? 0 : a->in[0][plane + at];
    }
    return QN_OK;
}

/* x only chooses; nothing flows into it. */
static void max_pool_pick_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_max_pool_grad(g, dy[0], n->in[1], n->attr);
}

static QnStatus max_pool_pick_call(const QnNode *n, QnDeviceCall *c)
{
    const QnShape *x = &n->in[1]->type.shape;
    QnWindow w = qn_window_pool(n->attr, x, &n->out[0].type.shape);
    *c = (QnDeviceCall){ .kernel = "max_pool_pick_item",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, x->dim[0] * x->dim[1]);
    qn_window_args(c, &w);
    return QN_OK;
}

static const QnSample max_pool_pick_samples[] = {
    { .in = { { 4, { 2, 3, 6, 4 } }, { 4, { 2, 3, 6, 4 }, .distinct = true } },
      .n_in = 2,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } } },
    { .in = { { 4, { 1, 2, 7, 8 } }, { 4, { 1, 2, 7, 8 }, .distinct = true } },
      .n_in = 2,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                             .strides = { 2, { 2, 2 } },
                             .pads = { 4, { 1, 0, 1, 1 } },
                             .ceil_mode = true } },
    { .in = { { 3, { 1, 1, 130 } }, { 3, { 1, 1, 130 }, .distinct = true } },
      .n_in = 2,
      .attr = &(QnPoolAttr){ .kernel = { 1, { 3 } },
                             .strides = { 1, { 2 } },
                             .dilations = { 1, { 2 } } } },
};

QN_API QnValue *qn_max_pool_pick(QnGraph *g, QnValue *u, QnValue *x, const QnPoolAttr *attr)
{
    return qn_emit2(g, &qn_op_max_pool_pick, attr, u, x);
}

const QnOp qn_op_max_pool_pick = {
    .name = "max_pool_pick",
    .version = 1,
    .doc = "elements at the places where another tensor wins its windows",
    .n_in = 2,
    QN_ATTRS(QnPoolAttr, max_pool_pick_fields),
    .infer = max_pool_pick_infer,
    .cost = max_pool_pick_cost,
    .ref = max_pool_pick_ref,
    .grad = max_pool_pick_grad,
    .device = QN_TEXT(max_pool_pick),
    .call = max_pool_pick_call,
    QN_SAMPLES(max_pool_pick_samples),
};
#endif

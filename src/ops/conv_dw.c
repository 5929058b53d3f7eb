/* Gradient of a convolution by its weights: dy (N,M,out...), x (N,C,in...) to dw (M,C/groups,k...);
 * dw[m,c,t] = sum over n, o of dy[n,m,o] * x[n, c, o*stride - pad + t*dilation]. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One work group a weight: each item a strided share of the windows, then a tree. */
QN_KERNEL conv_dw_direct(QN_GLOBAL QN_T *dw, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                         qn_long n, qn_long c, qn_long m, qn_long groups, qn_long i0, qn_long i1,
                         qn_long i2, qn_long k0, qn_long k1, qn_long k2, qn_long o0, qn_long o1,
                         qn_long o2, qn_long s0, qn_long s1, qn_long s2, qn_long p0, qn_long p1,
                         qn_long p2, qn_long d0, qn_long d1, qn_long d2)
{
    QN_SHARED float part[256];
    qn_long i = qn_group(), taps = k0 * k1 * k2, cg = c / groups, windows = o0 * o1 * o2;
    qn_long q = i % taps, f = i / taps / cg;
    qn_long ch = f / (m / groups) * cg + i / taps % cg;
    int lid = qn_lid(), size = qn_group_size();
    float s = 0.0f;
    for (qn_long j = lid; j < n * windows; j += size) {
        qn_long b = j / windows, o = j % windows;
        qn_long e = o / o2 / o1 * s0 - p0 + q / k2 / k1 * d0;
        qn_long g = o / o2 % o1 * s1 - p1 + q / k2 % k1 * d1, h = o % o2 * s2 - p2 + q % k2 * d2;
        if (e >= 0 && e < i0 && g >= 0 && g < i1 && h >= 0 && h < i2)
            s += qn_load(dy, (b * m + f) * windows + o) *
                 qn_load(x, (((b * c + ch) * i0 + e) * i1 + g) * i2 + h);
    }
    part[lid] = s;
    QN_SYNC();
    for (int half_size = size / 2; half_size > 0; half_size /= 2) {
        if (lid < half_size)
            part[lid] += part[lid + half_size];
        QN_SYNC();
    }
    if (lid == 0)
        qn_store(dw, i, part[0]);
}
#endif

#ifdef QN_HOST
#include "ops/util.h"
#include "ops/window.h"

typedef struct Attr {
    QnConvAttr conv;
    QnDims dims;
} Attr;

static const QnAttrField conv_dw_fields[] = {
    QN_CONV_FIELDS,
    { .name = "dims",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, dims),
      .doc = "shape of the convolution's weights" },
};

static QnStatus conv_dw_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnShape w = qn_shape_make(a->dims.n, a->dims.d), y;
    QN_TRY(qn_window_conv_shape(c->graph, "conv_dw", &a->conv, &c->in[1]->shape, &w, &y));
    QN_TRY(qn_window_conv_operand(c, "conv_dw", &y));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = w;
    return QN_OK;
}

static QnConvGeom conv_dw_geom(const QnNode *n)
{
    return qn_window_conv(&((const Attr *)n->attr)->conv, &n->in[1]->type.shape,
                          &n->out[0].type.shape, &n->in[0]->type.shape);
}

static QnCost conv_dw_cost(const QnNode *n)
{
    QnConvGeom g = conv_dw_geom(n);
    return (QnCost){ .flops = qn_window_conv_flops(&g),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus conv_dw_ref(const QnRefArgs *a)
{
    QnConvGeom g = conv_dw_geom(a->node);
    qn_window_conv_ref(&g, QN_CONV_W, a->in[1], NULL, a->in[0], a->out[0]);
    return QN_OK;
}

static void conv_dw_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnConvAttr *conv = &((const Attr *)n->attr)->conv;
    dx[0] = qn_conv(g, n->in[1], dy[0], NULL, conv);
    dx[1] = qn_conv_dx(g, n->in[0], dy[0], conv, &n->in[1]->type.shape);
}

static QnStatus conv_dw_call(const QnNode *n, QnDeviceCall *c)
{
    QnConvGeom g = conv_dw_geom(n);
    *c = (QnDeviceCall){ .kernel = "conv_dw_direct",
                         .n_groups = qn_shape_count(&n->out[0].type.shape),
                         .group_size = QN_GROUP };
    qn_window_conv_args(c, &g);
    return QN_OK;
}

static const QnSample conv_dw_samples[] = {
    { .in = { { 4, { 2, 4, 5, 6 } }, { 4, { 2, 3, 5, 6 } } },
      .n_in = 2,
      .attr = &(Attr){ { .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 }, { 4, { 4, 3, 3, 3 } } } },
    { .in = { { 4, { 2, 6, 4, 4 } }, { 4, { 2, 4, 7, 5 } } },
      .n_in = 2,
      .attr = &(Attr){ { { 2, { 2, 1 } }, { 4, { 0, 1, 2, 0 } }, { 2, { 1, 2 } }, 2 },
                       { 4, { 6, 2, 3, 2 } } } },
    { .in = { { 3, { 1, 3, 43 } }, { 3, { 1, 2, 130 } } },
      .n_in = 2,
      .attr = &(Attr){ { .strides = { 1, { 3 } }, .groups = 1 }, { 3, { 3, 2, 4 } } } },
};

/* dw for a convolution of x with these attributes whose weights have shape w. */
QN_API QnValue *qn_conv_dw(QnGraph *g, QnValue *dy, QnValue *x, const QnConvAttr *attr,
                           const QnShape *w)
{
    Attr a = { *attr, { w->rank, { 0 } } };
    memcpy(a.dims.d, w->dim, sizeof a.dims.d);
    return qn_emit2(g, &qn_op_conv_dw, &a, dy, x);
}

const QnOp qn_op_conv_dw = {
    .name = "conv_dw",
    .version = 1,
    .doc = "gradient of conv by its weights",
    .n_in = 2,
    QN_ATTRS(Attr, conv_dw_fields),
    .infer = conv_dw_infer,
    .cost = conv_dw_cost,
    .ref = conv_dw_ref,
    .grad = conv_dw_grad,
    .device = QN_TEXT(conv_dw),
    .call = conv_dw_call,
    QN_SAMPLES(conv_dw_samples),
};
#endif

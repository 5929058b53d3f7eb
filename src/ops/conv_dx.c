/* Gradient of a convolution by its input, and so the transposed convolution: dy (N,M,out...),
 * w (M,C/groups,k...) to dx (N,C,in...); each dy element is spread over its window by w. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One item a dx element: it gathers from the windows that cover it, in a fixed order. */
QN_KERNEL conv_dx_direct(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *w,
                         qn_long n, qn_long c, qn_long m, qn_long groups, qn_long i0, qn_long i1,
                         qn_long i2, qn_long k0, qn_long k1, qn_long k2, qn_long o0, qn_long o1,
                         qn_long o2, qn_long s0, qn_long s1, qn_long s2, qn_long p0, qn_long p1,
                         qn_long p2, qn_long d0, qn_long d1, qn_long d2)
{
    qn_long i = qn_item();
    if (i >= n * c * i0 * i1 * i2)
        return;
    qn_long z = i % i2, y = i / i2 % i1, v = i / i2 / i1 % i0;
    qn_long ch = i / i2 / i1 / i0 % c, b = i / i2 / i1 / i0 / c, cg = c / groups, mg = m / groups;
    float s = 0.0f;
    for (qn_long f = ch / cg * mg; f < (ch / cg + 1) * mg; f++) {
        for (qn_long q = 0; q < k0 * k1 * k2; q++) {
            qn_long e = v + p0 - q / k2 / k1 * d0, g = y + p1 - q / k2 % k1 * d1;
            qn_long h = z + p2 - q % k2 * d2;
            bool hit = e >= 0 && g >= 0 && h >= 0 && e % s0 == 0 && g % s1 == 0 && h % s2 == 0 &&
                       e / s0 < o0 && g / s1 < o1 && h / s2 < o2;
            if (hit)
                s += qn_load(dy, (((b * m + f) * o0 + e / s0) * o1 + g / s1) * o2 + h / s2) *
                     qn_load(w, (f * cg + ch % cg) * k0 * k1 * k2 + q);
        }
    }
    qn_store(dx, i, s);
}
#endif

#ifdef QN_HOST
#include "ops/util.h"
#include "ops/window.h"

typedef struct Attr {
    QnConvAttr conv;
    QnDims dims;
} Attr;

static const QnAttrField conv_dx_fields[] = {
    QN_CONV_FIELDS,
    { .name = "dims",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, dims),
      .doc = "shape of the convolution's input" },
};

static QnStatus conv_dx_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnShape x = qn_shape_make(a->dims.n, a->dims.d), y;
    QN_TRY(qn_window_conv_shape(c->graph, "conv_dx", &a->conv, &x, &c->in[1]->shape, &y));
    QN_TRY(qn_window_conv_operand(c, "conv_dx", &y));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = x;
    return QN_OK;
}

static QnConvGeom conv_dx_geom(const QnNode *n)
{
    return qn_window_conv(&((const Attr *)n->attr)->conv, &n->out[0].type.shape,
                          &n->in[1]->type.shape, &n->in[0]->type.shape);
}

static QnCost conv_dx_cost(const QnNode *n)
{
    QnConvGeom g = conv_dx_geom(n);
    return (QnCost){ .flops = qn_window_conv_flops(&g),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus conv_dx_ref(const QnRefArgs *a)
{
    QnConvGeom g = conv_dx_geom(a->node);
    qn_window_conv_ref(&g, QN_CONV_X, NULL, a->in[1], a->in[0], a->out[0]);
    return QN_OK;
}

static void conv_dx_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnConvAttr *conv = &((const Attr *)n->attr)->conv;
    dx[0] = qn_conv(g, dy[0], n->in[1], NULL, conv);
    dx[1] = qn_conv_dw(g, n->in[0], dy[0], conv, &n->in[1]->type.shape);
}

static QnStatus conv_dx_call(const QnNode *n, QnDeviceCall *c)
{
    QnConvGeom g = conv_dx_geom(n);
    *c = (QnDeviceCall){ .kernel = "conv_dx_direct",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_window_conv_args(c, &g);
    return QN_OK;
}

static const QnSample conv_dx_samples[] = {
    { .in = { { 4, { 2, 4, 5, 6 } }, { 4, { 4, 3, 3, 3 } } },
      .n_in = 2,
      .attr = &(Attr){ { .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 }, { 4, { 2, 3, 5, 6 } } } },
    { .in = { { 4, { 2, 6, 4, 4 } }, { 4, { 6, 2, 3, 2 } } },
      .n_in = 2,
      .attr = &(Attr){ { { 2, { 2, 1 } }, { 4, { 0, 1, 2, 0 } }, { 2, { 1, 2 } }, 2 },
                       { 4, { 2, 4, 7, 5 } } } },
    { .in = { { 3, { 1, 3, 43 } }, { 3, { 3, 2, 4 } } },
      .n_in = 2,
      .attr = &(Attr){ { .strides = { 1, { 3 } }, .groups = 1 }, { 3, { 1, 2, 130 } } } },
};

/* dx for a convolution by w with these attributes whose input has shape x. */
QN_API QnValue *qn_conv_dx(QnGraph *g, QnValue *dy, QnValue *w, const QnConvAttr *attr,
                           const QnShape *x)
{
    Attr a = { *attr, { x->rank, { 0 } } };
    memcpy(a.dims.d, x->dim, sizeof a.dims.d);
    return qn_emit2(g, &qn_op_conv_dx, &a, dy, w);
}

const QnOp qn_op_conv_dx = {
    .name = "conv_dx",
    .version = 1,
    .doc = "gradient of conv by its input; transposed convolution",
    .n_in = 2,
    QN_ATTRS(Attr, conv_dx_fields),
    .infer = conv_dx_infer,
    .cost = conv_dx_cost,
    .ref = conv_dx_ref,
    .grad = conv_dx_grad,
    .device = QN_TEXT(conv_dx),
    .call = conv_dx_call,
    QN_SAMPLES(conv_dx_samples),
};
#endif

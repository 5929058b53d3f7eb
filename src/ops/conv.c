/* Convolution (cross-correlation) over 1 to 3 spatial axes:
 *   y[n,m,o] = bias[m] + sum over c, t of x[n, c, o*stride - pad + t*dilation] * w[m,c,t]
 * x (N,C,in...), w (M,C/groups,k...), bias (M), y (N,M,out...); sums in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/tile.h"
#include "ops/conv_tile.h"

/* One item an output element: for groups of few channels. The element (v, y, z) of plane f, n. */
QN_SCALAR float conv_sum(QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w, qn_long plane, int i,
                         CONV_ARGS)
{
    int z = i % (int)o2 * (int)s2 - (int)p2, y = i / (int)o2 % (int)o1 * (int)s1 - (int)p1;
    int v = i / (int)o2 / (int)o1 * (int)s0 - (int)p0, w0 = (int)k0, w1 = (int)k1, w2 = (int)k2;
    qn_long f = plane % m, cg = c / groups, first = f / (m / groups) * cg;
    float s = 0.0f;
    for (qn_long k = 0; k < cg; k++) {
        qn_long xc = plane / m * c + first + k, wc = f * cg + k;
        for (int a = 0; a < w0; a++) {
            int e = v + a * (int)d0;
            for (int b = 0; b < w1 && e >= 0 && e < i0; b++) {
                int g = y + b * (int)d1;
                for (int t = 0; t < w2 && g >= 0 && g < i1; t++) {
                    int h = z + t * (int)d2;
                    if (h >= 0 && h < i2)
                        s += qn_load(x, ((xc * i0 + e) * i1 + g) * i2 + h) *
                             qn_load(w, ((wc * w0 + a) * w1 + b) * w2 + t);
                }
            }
        }
    }
    return s;
}

/* What becomes of the sum v for element `cell` of channel `channel` of y's image `image`. */
#define CONV_PUT(v)      qn_store(y, (image * m + channel) * windows + cell, v)
#define CONV_PUT_BIAS(v) CONV_PUT((v) + qn_load(bias, channel))

/* A group: 256 elements of one plane of y. */
#define CONV_DIRECT(PUT)                                                                           \
    const qn_long windows = o0 * o1 * o2, blocks = (windows + 255) / 256;                          \
    const qn_long plane = qn_group() / blocks, image = plane / m, channel = plane % m;             \
    const qn_long cell = qn_group() % blocks * 256 + qn_lid();                                     \
    if (cell < windows) {                                                                          \
        PUT(conv_sum(x, w, plane, (int)cell, n, c, m, groups, i0, i1, i2, k0, k1, k2, o0, o1, o2,  \
                     s0, s1, s2, p0, p1, p2, d0, d1, d2));                                         \
    }

/* y as a product of blocks: 64 R channels of one group by 64 windows, folded over k, a channel of x
 * and a tap. */
#define CONV_DECODE(k, slot, side)                                                                 \
    {                                                                                              \
        int q = (int)(k) / taps, t = (int)(k) % taps;                                              \
        at[16 * (side) + (slot)] = q * cells;                                                      \
        cell[48 * (side) + (slot)] = (k) < depth ? t / (int)k2 / (int)k1 * (int)d0 : -0x40000000;  \
        cell[48 * (side) + 16 + (slot)] = t / (int)k2 % (int)k1 * (int)d1;                         \
        cell[48 * (side) + 32 + (slot)] = t % (int)k2 * (int)d2;                                   \
    }
#define CONV_FETCH_W(k, side)                                                                      \
    qn_tile_fetch(va, ROWS, w, group *mg *depth, row0, mg, depth, k, depth, 1)
#define CONV_FETCH_X(side)                                                                         \
    qn_conv_fetch(vb, x, base, at + 16 * (side), cell + 48 * (side), col < cols, e, g, h, (int)i0, \
                  (int)i1, (int)i2)
#define CONV_TILE(R, PUT)                                                                          \
    enum { ROWS = R };                                                                             \
    CONV_SHARED(R)                                                                                 \
    const int lid = qn_lid(), taps = (int)(k0 * k1 * k2);                                          \
    const qn_long mg = m / groups, depth = c / groups * taps, cells = i0 * i1 * i2;                \
    const qn_long windows = o0 * o1 * o2, cols = n * windows,                                      \
                  tiles = (mg + 64 * R - 1) / (64 * R);                                            \
    const qn_long row0 = qn_group() % tiles * (64 * R), group = qn_group() / tiles % groups;       \
    const qn_long col0 = qn_group() / tiles / groups * 64, col = col0 + lid % 64;                  \
    const int o = (int)(col % windows), e = o / (int)o2 / (int)o1 * (int)s0 - (int)p0;             \
    const int g = o / (int)o2 % (int)o1 * (int)s1 - (int)p1, h = o % (int)o2 * (int)s2 - (int)p2;  \
    const qn_long base = (col / windows * c + group * (c / groups)) * cells;                       \
    CONV_PRODUCT(R, 0, depth, CONV_DECODE, CONV_FETCH_W, true, CONV_FETCH_X, false)                \
    TILE_EACH(i, 16 * R)                                                                           \
    {                                                                                              \
        qn_long row = row0 + i / 16 * 64 + TILE_Y + i / 4 % 4, z = col0 + TILE_X + i % 4;          \
        if (row < mg && z < cols) {                                                                \
            const qn_long image = qn_div(z, windows), channel = group * mg + row;                  \
            const qn_long cell = z - image * windows;                                              \
            PUT(acc[i]);                                                                           \
        }                                                                                          \
    }

#ifdef QN_BODY_RUN /* of conv_map: rt/devtext_product.c */
#define CONV_PUT_MAP(v) QN_BODY_RUN(v, image, channel, cell, m, windows)
QN_KERNEL conv_direct_map(QN_BODY_OUT, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                          QN_BODY_IN CONV_ARGS){ CONV_DIRECT(CONV_PUT_MAP) }

QN_KERNEL conv_tile_map(QN_BODY_OUT, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                        QN_BODY_IN CONV_ARGS){ CONV_TILE(1, CONV_PUT_MAP) }

QN_KERNEL conv_wide_map(QN_BODY_OUT, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                        QN_BODY_IN CONV_ARGS){ CONV_TILE(2, CONV_PUT_MAP) }
#else
QN_KERNEL conv_direct(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                      CONV_ARGS){ CONV_DIRECT(CONV_PUT) }

QN_KERNEL conv_direct_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                           QN_GLOBAL const QN_T *bias, CONV_ARGS){ CONV_DIRECT(CONV_PUT_BIAS) }

QN_KERNEL conv_tile(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                    CONV_ARGS){ CONV_TILE(1, CONV_PUT) }

QN_KERNEL conv_tile_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                         QN_GLOBAL const QN_T *bias, CONV_ARGS){ CONV_TILE(1, CONV_PUT_BIAS) }

QN_KERNEL conv_wide(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                    CONV_ARGS){ CONV_TILE(2, CONV_PUT) }

QN_KERNEL conv_wide_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *w,
                         QN_GLOBAL const QN_T *bias, CONV_ARGS)
{
    CONV_TILE(2, CONV_PUT_BIAS)
}
#endif
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/onnx_window.h"
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField conv_fields[] = { QN_CONV_FIELDS };

static QnStatus conv_infer(QnInfer *c)
{
    QN_TRY(qn_window_conv_operand(c, "conv", NULL));
    const QnShape *w = &c->in[1]->shape;
    QN_TRY(qn_window_conv_shape(c->graph, "conv", c->attr, &c->in[0]->shape, w, &c->out[0].shape));
    c->out[0].dtype = c->in[0]->dtype;
    if (c->n_in < 3 || c->in[2]->dtype == QN_DTYPE_COUNT)
        return QN_OK;
    const QnType *b = c->in[2];
    if (b->dtype != c->in[0]->dtype)
        return qn_fail(QN_EDTYPE, "conv: the bias is %s, x %s", qn_dtype_name(b->dtype),
                       qn_dtype_name(c->in[0]->dtype));
    if (b->shape.rank != 1 || (b->shape.dim[0] != w->dim[0] && b->shape.dim[0] >= 0))
        return qn_fail(QN_ESHAPE, "conv: the bias must hold one number for each of %lld channels",
                       (long long)w->dim[0]);
    return QN_OK;
}

static QnConvGeom conv_geom(const QnNode *n)
{
    return qn_window_conv(n->attr, &n->in[0]->type.shape, &n->in[1]->type.shape,
                          &n->out[0].type.shape);
}

static bool conv_has_bias(const QnNode *n)
{
    return n->n_in > 2 && n->in[2];
}

static QnCost conv_cost(const QnNode *n)
{
    QnConvGeom g = conv_geom(n);
    double bias = conv_has_bias(n) ? (double)qn_type_bytes(&n->in[2]->type) : 0;
    double add = conv_has_bias(n) ? (double)qn_shape_count(&n->out[0].type.shape) : 0;
    return (QnCost){ .flops = qn_window_conv_flops(&g) + add,
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type) + bias,
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus conv_ref(const QnRefArgs *a)
{
    QnConvGeom g = conv_geom(a->node);
    qn_window_conv_ref(&g, QN_CONV_Y, a->in[0], a->in[1], NULL, a->out[0]);
    if (!conv_has_bias(a->node))
        return QN_OK;
    int64_t n = qn_shape_count(&a->out_type[0]->shape), map = g.w.out[0] * g.w.out[1] * g.w.out[2];
    for (int64_t i = 0; i < n; i++)
        a->out[0][i] += a->in[2][i / map % g.m];
    return QN_OK;
}

static void conv_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnShape *x = &n->in[0]->type.shape, *w = &n->in[1]->type.shape;
    dx[0] = qn_conv_dx(g, dy[0], n->in[1], n->attr, x);
    dx[1] = qn_conv_dw(g, dy[0], n->in[0], n->attr, w);
    if (conv_has_bias(n)) {
        QnInts axes = { .n = x->rank - 1, .v = { 0, 2, 3, 4 } };
        dx[2] = qn_sum(g, dy[0], axes, false);
    }
}

static QnStatus conv_call(const QnNode *n, QnDeviceCall *c)
{
    static const char *const kernels[][3] = { { "conv_direct", "conv_tile", "conv_wide" },
                                              { "conv_direct_bias", "conv_tile_bias",
                                                "conv_wide_bias" } };
    QnConvGeom g = conv_geom(n);
    return qn_window_conv_call("conv", &g, kernels[conv_has_bias(n)], c);
}

static const QnSample conv_samples[] = {
    { .in = { { 4, { 2, 3, 5, 6 } }, { 4, { 4, 3, 3, 3 } }, { 1, { 4 } } },
      .n_in = 3,
      .attr = &(QnConvAttr){ .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 } },
    { .in = { { 4, { 2, 4, 7, 5 } }, { 4, { 6, 2, 3, 2 } } },
      .n_in = 2,
      .attr = &(QnConvAttr){ { 2, { 2, 1 } }, { 4, { 0, 1, 2, 0 } }, { 2, { 1, 2 } }, 2 } },
    { .in = { { 3, { 1, 2, 130 } }, { 3, { 3, 2, 4 } } },
      .n_in = 2,
      .attr = &(QnConvAttr){ .strides = { 1, { 3 } }, .groups = 1 } },
    { .in = { { 5, { 1, 2, 3, 4, 3 } }, { 5, { 2, 1, 2, 2, 3 } }, { 1, { 2 } } },
      .n_in = 3,
      .attr = &(QnConvAttr){ .pads = { 6, { 1, 0, 0, 0, 0, 1 } }, .groups = 2 } },
};

/* bias may be NULL. */
QN_API QnValue *qn_conv(QnGraph *g, QnValue *x, QnValue *w, QnValue *bias, const QnConvAttr *attr)
{
    return qn_emitn(g, &qn_op_conv, attr, (QnValue *[]){ x, w, bias }, bias ? 3 : 2);
}

static QnStatus conv_import(QnOnnxNode *n)
{
    const QnShape *x;
    const QnType *w = qn_onnx_type(n, 1);
    QnConvAttr attr;
    QN_TRY(qn_onnx_window_input(n, &x));
    if (!w)
        return qn_fail(QN_EDTYPE, "input 1 must be a tensor of numbers");
    QN_TRY(qn_onnx_window_conv(n, x, &w->shape, &attr));
    return qn_onnx_out0(
        n, qn_conv(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), qn_onnx_in_or(n, 2, NULL), &attr));
}

static const QnOnnxMap conv_onnx[] = { { .name = "Conv", .since = 1, .import = conv_import } };

static QnStatus conv_put(QnOnnxPut *p, const QnNode *n)
{
    int spatial = n->in[0]->type.shape.rank - 2;
    QnConvAttr a = qn_window_conv_full(n->attr, spatial);
    QnOnnxDef *d = qn_put_same(p, n, "Conv");
    qn_put_attr_ints(p, d, "strides", a.strides.v, spatial);
    qn_put_attr_ints(p, d, "pads", a.pads.v, 2 * spatial);
    qn_put_attr_ints(p, d, "dilations", a.dilations.v, spatial);
    qn_put_attr_int(p, d, "group", a.groups);
    return qn_put_status(p);
}

const QnOp qn_op_conv = {
    .name = "conv",
    .version = 1,
    .doc = "convolution over 1 to 3 spatial axes",
    .n_in = 2,
    .n_in_max = 3,
    QN_ATTRS(QnConvAttr, conv_fields),
    .infer = conv_infer,
    .cost = conv_cost,
    .ref = conv_ref,
    .grad = conv_grad,
    .device = QN_TEXT(conv),
    .call = conv_call,
    QN_ONNX(conv_onnx),
    .onnx_put = conv_put,
    .onnx_writes = "Conv",
    QN_SAMPLES(conv_samples),
};
#endif

/* Gradient of a convolution by its input, and so the transposed convolution: dy (N,M,out...),
 * w (M,C/groups,k...) to dx (N,C,in...); each dy element is spread over its window by w. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/tile.h"
#include "ops/conv_tile.h"

/* One item a dx element: it gathers from the windows that cover it, in a fixed order. For groups of
 * few channels; a group does 256 elements of one plane of dx. */
QN_KERNEL conv_dx_direct(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *w,
                         CONV_ARGS)
{
    qn_long blocks = (i0 * i1 * i2 + 255) / 256, plane = qn_group() / blocks, cells = i0 * i1 * i2;
    qn_long at = qn_group() % blocks * 256 + qn_lid();
    qn_long ch = plane % c, cg = c / groups, mg = m / groups;
    int i = (int)at, w0 = (int)k0, w1 = (int)k1, w2 = (int)k2, t0 = (int)s0, t1 = (int)s1;
    int t2 = (int)s2, z = i % (int)i2 + (int)p2, y = i / (int)i2 % (int)i1 + (int)p1;
    int v = i / (int)i2 / (int)i1 + (int)p0;
    float s = 0.0f;
    if (at >= cells)
        return;
    for (qn_long f = ch / cg * mg; f < (ch / cg + 1) * mg; f++) {
        for (int q = 0; q < w0 * w1 * w2; q++) {
            int e = v - q / w2 / w1 * (int)d0, g = y - q / w2 % w1 * (int)d1;
            int h = z - q % w2 * (int)d2;
            bool hit = e >= 0 && g >= 0 && h >= 0 && e % t0 == 0 && g % t1 == 0 && h % t2 == 0 &&
                       e / t0 < o0 && g / t1 < o1 && h / t2 < o2;
            if (hit)
                s += qn_load(dy,
                             ((plane / c * m + f) * o0 + e / t0) * o1 * o2 + g / t1 * o2 + h / t2) *
                     qn_load(w, (f * cg + ch % cg) * w0 * w1 * w2 + q);
        }
    }
    qn_store(dx, plane * cells + at, s);
}

/* Along one axis, of places r + s j: the first tap that meets them (k: none does), the distance to
 * the next, how many there are, and where tap `first` reads dy for j = 0. */
#define CONV_DX_AXIS(x)                                                                            \
    int first##x = 0, next##x = 1;                                                                 \
    while (first##x < (int)k##x && (r##x + (int)p##x - first##x * (int)d##x) % (int)s##x != 0)     \
        first##x++;                                                                                \
    while (next##x * (int)d##x % (int)s##x != 0)                                                   \
        next##x++;                                                                                 \
    const int taps##x = first##x < (int)k##x ? ((int)k##x - 1 - first##x) / next##x + 1 : 0;       \
    const int start##x = (r##x + (int)p##x - first##x * (int)d##x) / (int)s##x;                    \
    const int back##x = next##x * (int)d##x / (int)s##x;                                           \
    const int places##x = (int)((i##x + s##x - 1) / s##x);

/* dx as products of blocks, one for each remainder of a place by the strides, since these meet
 * different taps: 64 R channels of one group by 64 places, folded over k, a channel of dy and a
 * tap. */
#define CONV_DX_DECODE(k, slot, side)                                                              \
    {                                                                                              \
        int q = (int)(k) / taps, t = (int)(k) % taps;                                              \
        int t0 = t / taps2 / taps1, t1 = t / taps2 % taps1, t2 = t % taps2;                        \
        at[16 * (side) + (slot)] = q * windows;                                                    \
        wat[16 * (side) + (slot)] =                                                                \
            (k) < depth ? q * cg * k0 * k1 * k2 +                                                  \
                              ((first0 + t0 * next0) * k1 + first1 + t1 * next1) * k2 + first2 +   \
                              t2 * next2                                                           \
                        : -1;                                                                      \
        cell[48 * (side) + (slot)] = (k) < depth ? -t0 * back0 : -0x40000000;                      \
        cell[48 * (side) + 16 + (slot)] = -t1 * back1;                                             \
        cell[48 * (side) + 32 + (slot)] = -t2 * back2;                                             \
    }
#define CONV_DX_FETCH_W(k, side)                                                                   \
    for (int i = 0; i < 4 * ROWS; i++) {                                                           \
        qn_long row = row0 + i / 4 * 64 + lid % 16 * 4 + i % 4, to = wat[16 * (side) + lid / 16];  \
        bool in = row < cg && to >= 0;                                                             \
        va[i] = in ? qn_load(w, group * mg * cg * k0 * k1 * k2 + to + row * k0 * k1 * k2) : 0.0f;  \
    }
#define CONV_DX_FETCH_DY(side)                                                                     \
    qn_conv_fetch(vb, dy, base, at + 16 * (side), cell + 48 * (side), col < cols,                  \
                  start0 + o / places2 / places1, start1 + o / places2 % places1,                  \
                  start2 + o % places2, (int)o0, (int)o1, (int)o2)
#define CONV_DX_TILE(R)                                                                            \
    enum { ROWS = R };                                                                             \
    CONV_SHARED(R) QN_SHARED qn_long wat[32];                                                      \
    const int lid = qn_lid(), phase = (int)(qn_group() % (s0 * s1 * s2));                          \
    const int r0 = phase / (int)s2 / (int)s1, r1 = phase / (int)s2 % (int)s1,                      \
              r2 = phase % (int)s2;                                                                \
    const qn_long block = qn_group() / (s0 * s1 * s2);                                             \
    CONV_DX_AXIS(0)                                                                                \
    CONV_DX_AXIS(1)                                                                                \
    CONV_DX_AXIS(2)                                                                                \
    const int taps = taps0 * taps1 * taps2, places = places0 * places1 * places2;                  \
    const qn_long mg = m / groups, cg = c / groups, depth = mg * taps, windows = o0 * o1 * o2;     \
    const qn_long cols = n * places, tiles = (cg + 64 * R - 1) / (64 * R);                         \
    const qn_long row0 = block % tiles * (64 * R), group = block / tiles % groups;                 \
    const qn_long col0 = block / tiles / groups * 64, col = col0 + lid % 64;                       \
    const qn_long base = (col / places * m + group * mg) * windows;                                \
    const int o = (int)(col % places);                                                             \
    CONV_PRODUCT(R, 0, depth, CONV_DX_DECODE, CONV_DX_FETCH_W, false, CONV_DX_FETCH_DY, false)     \
    TILE_EACH(i, 16 * R)                                                                           \
    {                                                                                              \
        qn_long row = row0 + i / 16 * 64 + TILE_Y + i / 4 % 4, z = col0 + TILE_X + i % 4;          \
        int q = (int)(z % places), a = q / places2 / places1 * (int)s0 + r0;                       \
        int b = q / places2 % places1 * (int)s1 + r1, d = q % places2 * (int)s2 + r2;              \
        qn_long plane = z / places * c + group * cg + row;                                         \
        if (row < cg && z < cols && a < i0 && b < i1 && d < i2)                                    \
            qn_store(dx, ((plane * i0 + a) * i1 + b) * i2 + d, acc[i]);                            \
    }

QN_KERNEL conv_dx_tile(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *w,
                       CONV_ARGS){ CONV_DX_TILE(1) }

QN_KERNEL
    conv_dx_wide(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *w, CONV_ARGS)
{
    CONV_DX_TILE(2)
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
    static const char *const kernels[] = { "conv_dx_direct", "conv_dx_tile", "conv_dx_wide" };
    QnConvGeom g = conv_dx_geom(n);
    int64_t cells = 1, places = 1, phases = 1, cg = g.c / QN_MAX(g.groups, 1);
    int wide = qn_window_conv_rows(cg);
    QN_TRY(qn_window_conv_device("conv_dx", &g));
    for (int d = 0; d < 3; d++) {
        cells *= g.w.in[d];
        phases *= g.w.stride[d];
        places *= (g.w.in[d] + g.w.stride[d] - 1) / g.w.stride[d];
    }
    *c = (QnDeviceCall){ .kernel = kernels[wide],
                         .n_groups = g.n * g.c * ((cells + QN_GROUP - 1) / QN_GROUP),
                         .group_size = QN_GROUP };
    if (wide)
        c->n_groups =
            phases * g.groups * ((cg + 64 * wide - 1) / (64 * wide)) * ((g.n * places + 63) / 64);
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

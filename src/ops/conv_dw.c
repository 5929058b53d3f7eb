/* Gradient of a convolution by its weights: dy (N,M,out...), x (N,C,in...) to dw (M,C/groups,k...);
 * dw[m,c,t] = sum over n, o of dy[n,m,o] * x[n, c, o*stride - pad + t*dilation]. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/tile.h"
#include "ops/conv_tile.h"

/* The windows of all images are cut into `splits` parts of `share` windows. With one part its sums
 * are dw; else work, (splits, M, C/groups, k...), gets those of each, and conv_dw_sum adds them,
 * `lanes` items a weight. */
#define CONV_DW_ARGS CONV_ARGS, qn_long splits, qn_long share, qn_long lanes
#define CONV_DW_PUT(number, i, v)                                                                  \
    {                                                                                              \
        if (splits > 1)                                                                            \
            work[(number) * (m * (c / groups) * k0 * k1 * k2) + (i)] = v;                          \
        else                                                                                       \
            qn_store(dw, i, v);                                                                    \
    }

/* For groups of few weights. A work group: nine taps of one channel of dy and one of x over a
 * part, each item a strided share of the windows, then a tree. */
#define CONV_DW_TAPS 9
QN_KERNEL conv_dw_direct(QN_GLOBAL QN_T *dw, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                         QN_GLOBAL float *work, CONV_DW_ARGS)
{
    QN_SHARED float part[256 * CONV_DW_TAPS];
    QN_SHARED int tap[3 * CONV_DW_TAPS];
    const int lid = qn_lid(), taps = (int)(k0 * k1 * k2);
    const int chunks = (taps + CONV_DW_TAPS - 1) / CONV_DW_TAPS;
    const int tap0 = (int)(qn_group() % chunks) * CONV_DW_TAPS;
    const qn_long cg = c / groups, windows = o0 * o1 * o2, depth = n * windows;
    const qn_long pair = qn_group() / chunks % (m * cg), number = qn_group() / chunks / (m * cg);
    const qn_long f = pair / cg, ch = f / (m / groups) * cg + pair % cg;
    const qn_long to = (number + 1) * share < depth ? (number + 1) * share : depth;
    if (lid < CONV_DW_TAPS) { /* those beyond the last meet nothing */
        int t = tap0 + lid;
        tap[lid] = t < taps ? t / (int)k2 / (int)k1 * (int)d0 : -0x40000000;
        tap[lid + CONV_DW_TAPS] = t / (int)k2 % (int)k1 * (int)d1;
        tap[lid + 2 * CONV_DW_TAPS] = t % (int)k2 * (int)d2;
    }
    QN_SYNC();
    float s[CONV_DW_TAPS];
    for (int t = 0; t < CONV_DW_TAPS; t++)
        s[t] = 0.0f;
    if (number * share + lid < to) {
        const qn_long images = 256 / windows, rest = 256 % windows;
        qn_long image = (number * share + lid) / windows, o = (number * share + lid) % windows;
        for (qn_long j = number * share + lid; j < to; j += 256) {
            const float d = qn_load(dy, (image * m + f) * windows + o);
            const int row = (int)o / (int)o2, h = ((int)o - row * (int)o2) * (int)s2 - (int)p2;
            const int e = row / (int)o1 * (int)s0 - (int)p0, g = row % (int)o1 * (int)s1 - (int)p1;
            const qn_long plane = (image * c + ch) * (i0 * i1 * i2);
            for (int t = 0; t < CONV_DW_TAPS; t++) {
                const int u = e + tap[t], v = g + tap[t + CONV_DW_TAPS];
                const int z = h + tap[t + 2 * CONV_DW_TAPS];
                if (u >= 0 && u < i0 && v >= 0 && v < i1 && z >= 0 && z < i2)
                    s[t] += d * qn_load(x, plane + (u * i1 + v) * i2 + z);
            }
            image += images;
            o += rest;
            if (o >= windows) {
                o -= windows;
                image++;
            }
        }
    }
    for (int t = 0; t < CONV_DW_TAPS; t++)
        part[256 * t + lid] = s[t];
    QN_SYNC();
    for (int h = 128; h > 0; h /= 2) {
        for (int i = lid; i < h * CONV_DW_TAPS; i += 256)
            part[i / h * 256 + i % h] += part[i / h * 256 + i % h + h];
        QN_SYNC();
    }
    if (lid < CONV_DW_TAPS && tap0 + lid < taps)
        CONV_DW_PUT(number, pair * taps + tap0 + lid, part[256 * lid])
}

/* dw as a product of blocks: 64 R channels of dy by 64 columns, each a channel of x and a tap,
 * folded over windows. */
#define CONV_DW_DECODE(k, slot, side)                                                              \
    {                                                                                              \
        const qn_long image = qn_div(k, windows);                                                  \
        const int o = (int)((k)-image * windows), row = o / (int)o2;                               \
        at[16 * (side) + (slot)] = image * c * cells;                                              \
        dy_at[16 * (side) + (slot)] = (k) < depth ? image * m * windows + o : -1;                  \
        cell[48 * (side) + (slot)] =                                                               \
            (k) < depth ? row / (int)o1 * (int)s0 - (int)p0 : -0x40000000;                         \
        cell[48 * (side) + 16 + (slot)] = row % (int)o1 * (int)s1 - (int)p1;                       \
        cell[48 * (side) + 32 + (slot)] = (o - row * (int)o2) * (int)s2 - (int)p2;                 \
    }

/* An item's 4 R numbers of the slice: four neighbours along k, as qn_tile_fetch's where it is deep,
 * but k goes on from image to image. */
TILE_FN void qn_conv_dw_fetch(float *v, int R, QN_GLOBAL const QN_T *p, qn_long base, qn_long row0,
                              qn_long rows, qn_long windows, QN_LOCAL const qn_long *at)
{
    int first = qn_lid() % 4 * 4;
    for (int r = 0; r < R; r++) {
        qn_long row = row0 + 64 * r + qn_lid() / 4, line = base + row * windows;
        if ((windows & 3) == 0 && row < rows && at[first] >= 0) {
            qn_tile_load4(v + 4 * r, p, line + at[first]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                bool in = row < rows && at[first + j] >= 0;
                v[4 * r + j] = in ? qn_load(p, line + at[first + j]) : 0.0f;
            }
        }
    }
}

#define CONV_DW_FETCH_DY(k, side)                                                                  \
    qn_conv_dw_fetch(va, ROWS, dy, group *mg *windows, row0, mg, windows, dy_at + 16 * (side))
#define CONV_DW_FETCH_X(side)                                                                      \
    qn_conv_fetch_deep(vb, x, at + 16 * (side), cell + 48 * (side), column_at, column, (int)i0,    \
                       (int)i1, (int)i2)
#define CONV_DW_TILE(R)                                                                            \
    enum { ROWS = R };                                                                             \
    CONV_SHARED(R) QN_SHARED qn_long dy_at[32], column_at[64];                                     \
    QN_SHARED int column[192];                                                                     \
    const int lid = qn_lid(), taps = (int)(k0 * k1 * k2);                                          \
    const qn_long mg = m / groups, cg = c / groups, cols = cg * taps, cells = i0 * i1 * i2;        \
    const qn_long windows = o0 * o1 * o2, depth = n * windows;                                     \
    const qn_long tiles = (mg + 64 * R - 1) / (64 * R), blocks = (cols + 63) / 64;                 \
    const qn_long row0 = qn_group() % tiles * (64 * R), col0 = qn_group() / tiles % blocks * 64;   \
    const qn_long group = qn_group() / tiles / blocks % groups;                                    \
    const qn_long number = qn_group() / tiles / blocks / groups, from = number * share;            \
    const qn_long to = from + share < depth ? from + share : depth;                                \
    if (lid < 64) {                                                                                \
        const int q = (int)col0 + lid, t = q % taps, row = t / (int)k2;                            \
        column_at[lid] = (group * cg + q / taps) * cells;                                          \
        column[lid] = q < cols ? row / (int)k1 * (int)d0 : -0x40000000;                            \
        column[lid + 64] = row % (int)k1 * (int)d1;                                                \
        column[lid + 128] = t % (int)k2 * (int)d2;                                                 \
    }                                                                                              \
    CONV_PRODUCT(R, from, to, CONV_DW_DECODE, CONV_DW_FETCH_DY, true, CONV_DW_FETCH_X, true)       \
    TILE_EACH(i, 16 * R)                                                                           \
    {                                                                                              \
        qn_long row = row0 + i / 16 * 64 + TILE_Y + i / 4 % 4, z = col0 + TILE_X + i % 4;          \
        if (row < mg && z < cols) {                                                                \
            CONV_DW_PUT(number, (group * mg + row) * cols + z, acc[i])                             \
        }                                                                                          \
    }

QN_KERNEL conv_dw_tile(QN_GLOBAL QN_T *dw, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                       QN_GLOBAL float *work, CONV_DW_ARGS){ CONV_DW_TILE(1) }

QN_KERNEL conv_dw_wide(QN_GLOBAL QN_T *dw, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                       QN_GLOBAL float *work, CONV_DW_ARGS){ CONV_DW_TILE(2) }

QN_KERNEL conv_dw_sum(QN_GLOBAL QN_T *dw, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                      QN_GLOBAL const float *work, CONV_DW_ARGS)
{
    QN_SHARED float part[256];
    const int lid = qn_lid(), width = 256 / (int)lanes, lane = lid / width;
    const qn_long i = qn_group() * width + lid % width, count = m * (c / groups) * k0 * k1 * k2;
    float s = 0.0f;
    for (qn_long p = lane; p < splits && i < count; p += lanes)
        s += work[p * count + i];
    part[lid] = s;
    QN_SYNC();
    for (int h = (int)lanes / 2; h > 0; h /= 2) {
        if (lane < h)
            part[lid] += part[lid + h * width];
        QN_SYNC();
    }
    if (lane == 0 && i < count)
        qn_store(dw, i, part[lid]);
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

/* Of long sums many parts, so that `groups` work groups a part fill a large GPU: each of a multiple
 * of `unit` windows, `least` at least, so that reading its sums again is little. */
static void conv_dw_split(QnDeviceCall *c, int64_t groups, int64_t depth, int64_t unit,
                          int64_t least, int64_t weights)
{
    enum { FULL = 512, LANES = 32, EACH = 4 };
    int64_t most = groups ? FULL / groups : 1, lanes = 1;
    int64_t splits = QN_MAX(QN_MIN(most, depth / least), 1);
    int64_t share = QN_MAX((depth + splits - 1) / splits, 1);
    share = (share + unit - 1) / unit * unit;
    splits = QN_MAX((depth + share - 1) / share, 1);
    while (lanes < LANES && lanes * EACH < splits)
        lanes *= 2;
    c->n_groups = groups * splits;
    c->group_size = QN_GROUP;
    c->has_work = true;
    if (splits > 1) {
        int64_t width = QN_GROUP / lanes;
        c->then = "conv_dw_sum";
        c->then_groups = (weights + width - 1) / width;
        c->work_bytes = splits * weights * 4;
    }
    qn_device_int(c, splits);
    qn_device_int(c, share);
    qn_device_int(c, lanes);
}

static QnStatus conv_dw_call(const QnNode *n, QnDeviceCall *c)
{
    enum { TAPS = 9, SLICE = 16 }; /* as in the text */
    QnConvGeom g = conv_dw_geom(n);
    int64_t mg = g.m / g.groups, cg = g.c / g.groups, depth = g.n, taps = 1;
    QN_TRY(qn_window_conv_device("conv_dw", &g));
    for (int d = 0; d < 3; d++) {
        depth *= g.w.out[d];
        taps *= g.w.k[d];
    }
    int64_t rows = QN_MAX(qn_window_conv_rows(mg), 1), weights = g.m * cg * taps;
    int64_t blocks = g.groups * ((mg + 64 * rows - 1) / (64 * rows)) * ((cg * taps + 63) / 64);
    bool empty = 8 * weights < 64 * 64 * rows * blocks; /* the most of what blocks would hold */
    *c = (QnDeviceCall){ .kernel = empty      ? "conv_dw_direct"
                                   : rows > 1 ? "conv_dw_wide"
                                              : "conv_dw_tile" };
    qn_window_conv_args(c, &g);
    if (empty)
        conv_dw_split(c, g.m * cg * ((taps + TAPS - 1) / TAPS), depth, QN_GROUP, 8 * QN_GROUP,
                      weights);
    else
        conv_dw_split(c, blocks, depth, SLICE, 16 * SLICE, weights);
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

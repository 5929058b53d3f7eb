/* A matrix x (M,N) times a scale in 8-bit floats, as the products of tensor cores want it: as it
 * lies (y), transposed (N,M), or both, with adjacent elements to be summed over. With a history of
 * largest elements also what becomes of that: x's is put in front, the last one goes; where x's is
 * infinite or NaN, the largest of the history in its place. One pass over x. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/f8_tile.h"

#define QUANTIZE_TILE  64
#define QUANTIZE_PITCH 68 /* bytes from column to column of a tile in shared memory */

/* A group does a tile: an item four neighbours in each of four rows. */
QN_SCALAR void quantize_f8_tile(QN_GLOBAL qn_u8 *y, QN_GLOBAL qn_u8 *turned,
                                QN_GLOBAL float *largest, QN_GLOBAL const QN_T *x, float scale,
                                qn_long rows, qn_long cols, int e4m3, QN_LOCAL qn_u8 *codes,
                                QN_LOCAL float *part)
{
    const qn_long across = (cols + QUANTIZE_TILE - 1) / QUANTIZE_TILE;
    const qn_long row0 = qn_group() / across * QUANTIZE_TILE;
    const qn_long col0 = qn_group() % across * QUANTIZE_TILE;
    const int lid = qn_lid(), line = lid / 16, at = lid % 16 * 4;
    float a = 0.0f;
    for (int i = line; i < QUANTIZE_TILE; i += 16) {
        const qn_long row = row0 + i, col = col0 + at, first = row * cols + col;
        float v[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
        qn_u8 code[4];
        if (row < rows && cols % 4 == 0 && col < cols) {
            qn_get4(x, first, rows * cols, v);
        } else {
            QN_EACH4(if (row < rows && col + u < cols) v[u] = qn_load(x, first + u))
        }
        for (int u = 0; u < 4; u++) {
            a = qn_f8_larger(a, qn_absf(v[u]));
            code[u] = e4m3 ? qn_f8e4m3fn_of(v[u] * scale) : qn_f8e5m2_of(v[u] * scale);
            codes[(at + u) * QUANTIZE_PITCH + i] = code[u];
        }
        if (y && row < rows && cols % 4 == 0 && col < cols) {
            uchar4 q;
            QN_GATHER4(q, code);
            QN_STORE4(uchar4, q, y + first);
        } else if (y && row < rows) {
            QN_EACH4(if (col + u < cols) y[first + u] = code[u])
        }
    }
    part[lid] = a;
    if (largest)
        qn_f8_fold(part);
    else
        QN_SYNC();
    if (largest && lid == 0)
        largest[qn_group()] = part[0];
    for (int i = line; turned && i < QUANTIZE_TILE; i += 16) {
        const qn_long col = col0 + i, row = row0 + at, first = col * rows + row;
        QN_LOCAL const qn_u8 *code = codes + i * QUANTIZE_PITCH + at;
        if (col < cols && rows % 4 == 0 && row < rows) {
            uchar4 q;
            QN_GATHER4(q, code);
            QN_STORE4(uchar4, q, turned + first);
        } else if (col < cols) {
            QN_EACH4(if (row + u < rows) turned[first + u] = code[u])
        }
    }
}

/* The history after this step, by one group, from the largest elements of the tiles. */
QN_SCALAR void quantize_f8_next(QN_GLOBAL float *next, QN_GLOBAL const float *history,
                                QN_GLOBAL const float *largest, qn_long tiles, qn_long n,
                                QN_LOCAL float *part)
{
    const int lid = qn_lid();
    float a = 0.0f, seen = history[0];
    for (qn_long i = lid; i < tiles; i += 256)
        a = qn_f8_larger(a, largest[i]);
    for (qn_long i = 1; i < n; i++)
        seen = qn_f8_larger(seen, history[i]);
    part[lid] = a;
    qn_f8_fold(part);
    for (qn_long i = lid; i < n; i += 256)
        next[i] = i ? history[i - 1] : QN_F8_IS_SOUND(part[0]) ? part[0] : seen;
}

/* NAME##_once gives y, its transpose or both; NAME##_next and then NAME##_last the history as well.
 */
#define QUANTIZE_F8(NAME, OUT, Y, TURNED)                                                          \
    QN_KERNEL NAME##_once(OUT, QN_GLOBAL const QN_T *x, QN_GLOBAL const float *scale,              \
                          qn_long rows, qn_long cols, qn_long e4m3)                                \
    {                                                                                              \
        QN_SHARED qn_u8 codes[QUANTIZE_TILE * QUANTIZE_PITCH];                                     \
        QN_SHARED float part[256];                                                                 \
        quantize_f8_tile(Y, TURNED, 0, x, scale[0], rows, cols, (int)e4m3, codes, part);           \
    }                                                                                              \
    QN_KERNEL NAME##_next(OUT, QN_GLOBAL float *next, QN_GLOBAL const QN_T *x,                     \
                          QN_GLOBAL const float *scale, QN_GLOBAL const float *history,            \
                          QN_GLOBAL float *work, qn_long rows, qn_long cols, qn_long e4m3,         \
                          qn_long tiles, qn_long n)                                                \
    {                                                                                              \
        QN_SHARED qn_u8 codes[QUANTIZE_TILE * QUANTIZE_PITCH];                                     \
        QN_SHARED float part[256];                                                                 \
        quantize_f8_tile(Y, TURNED, work, x, scale[0], rows, cols, (int)e4m3, codes, part);        \
    }                                                                                              \
    QN_KERNEL NAME##_last(OUT, QN_GLOBAL float *next, QN_GLOBAL const QN_T *x,                     \
                          QN_GLOBAL const float *scale, QN_GLOBAL const float *history,            \
                          QN_GLOBAL float *work, qn_long rows, qn_long cols, qn_long e4m3,         \
                          qn_long tiles, qn_long n)                                                \
    {                                                                                              \
        QN_SHARED float part[256];                                                                 \
        quantize_f8_next(next, history, work, tiles, n, part);                                     \
    }

#define QUANTIZE_Y      QN_GLOBAL qn_u8 *y
#define QUANTIZE_TURNED QN_GLOBAL qn_u8 *turned
#define QUANTIZE_BOTH   QN_GLOBAL qn_u8 *y, QN_GLOBAL qn_u8 *turned

QUANTIZE_F8(quantize_f8_y, QUANTIZE_Y, y, 0)
QUANTIZE_F8(quantize_f8_turned, QUANTIZE_TURNED, 0, turned)
QUANTIZE_F8(quantize_f8_both, QUANTIZE_BOTH, y, turned)
#endif

#ifdef QN_HOST
#include "ops/f8.h"
#include "ops/util.h"

typedef struct Attr {
    QnDtype dtype;
    bool straight, turned;
} Attr;

static const QnAttrField quantize_f8_fields[] = {
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .def = QN_DTYPE_F8E4M3FN,
      .doc = "of the result: f8e4m3fn or f8e5m2" },
    { .name = "straight",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, straight),
      .def = 1,
      .doc = "the first output is the matrix as it lies" },
    { .name = "turned",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, turned),
      .doc = "an output, the second or the only one of the matrix, is its transpose" },
};

static QnStatus quantize_f8_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *s = &c->in[0]->shape;
    int n = 0;
    QN_TRY(qn_f8_check("quantize_f8", a->dtype, c->in[0]));
    if (s->rank != 2)
        return qn_fail(QN_ESHAPE, "quantize_f8: x must be a matrix, not of rank %d", s->rank);
    if (c->in[1]->dtype != QN_DTYPE_F32 || c->in[1]->shape.rank)
        return qn_fail(QN_EDTYPE, "quantize_f8: the scale must be a scalar in f32");
    if (!a->straight && !a->turned)
        return qn_fail(QN_EARG, "quantize_f8: neither the matrix nor its transpose is asked for");
    if (c->n_in > 2)
        QN_TRY(qn_f8_check_history("quantize_f8", c->in[2]));
    if (a->straight)
        c->out[n++] = (QnType){ .dtype = a->dtype, .shape = *s };
    if (a->turned)
        c->out[n++] = (QnType){ .dtype = a->dtype, .shape = QN_SHAPE(s->dim[1], s->dim[0]) };
    if (c->n_in > 2)
        c->out[n++] = *c->in[2];
    c->n_out = n;
    return QN_OK;
}

static QnCost quantize_f8_cost(const QnNode *n)
{
    QnCost c = { .flops = 3 * (double)qn_shape_count(&n->in[0]->type.shape) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

static QnValue *quantize_f8_history(QnGraph *g, QnValue *x, QnValue *history)
{
    QnValue *now = qn_f8_largest(g, x), *seen = qn_reduce_max(g, history, QN_ALL_AXES, false);
    now = qn_where(g, qn_f8_is_sound(g, now), now, seen);
    QnValue *moved[2] = { qn_reshape(g, now, &QN_SHAPE(1)) };
    QnDim n = history->type.shape.dim[0];
    if (n == 1)
        return moved[0];
    moved[1] = qn_slice_axis(g, history, 0, 0, n - 1);
    return qn_concat(g, moved, 2, 0);
}

static void quantize_f8_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnValue *x = n->in[0];
    QnValue *y = qn_cast(g, qn_mul(g, x, qn_cast(g, n->in[1], x->type.dtype)), a->dtype);
    if (a->straight)
        *out++ = y;
    if (a->turned)
        *out++ = qn_swap_axes(g, y, 0, 1);
    if (n->n_in > 2)
        *out = quantize_f8_history(g, x, n->in[2]);
}

static QnStatus quantize_f8_call(const QnNode *n, QnDeviceCall *c)
{
    enum { TILE = 64 };
    static const char *const kernels[3][3] = {
        { "quantize_f8_y_once", "quantize_f8_y_next", "quantize_f8_y_last" },
        { "quantize_f8_turned_once", "quantize_f8_turned_next", "quantize_f8_turned_last" },
        { "quantize_f8_both_once", "quantize_f8_both_next", "quantize_f8_both_last" },
    };
    const Attr *a = n->attr;
    const QnShape *s = &n->in[0]->type.shape;
    const char *const *k = kernels[a->straight && a->turned ? 2 : a->turned];
    int64_t tiles = (s->dim[0] + TILE - 1) / TILE * ((s->dim[1] + TILE - 1) / TILE);
    bool next = n->n_in > 2;
    *c = (QnDeviceCall){ .kernel = k[next], .n_groups = tiles, .group_size = QN_GROUP };
    qn_device_int(c, s->dim[0]);
    qn_device_int(c, s->dim[1]);
    qn_device_int(c, a->dtype == QN_DTYPE_F8E4M3FN);
    if (!next)
        return QN_OK;
    c->then = k[2];
    c->then_groups = 1;
    c->has_work = true;
    c->work_bytes = tiles * (int64_t)sizeof(float);
    qn_device_int(c, tiles);
    qn_device_int(c, n->in[2]->type.shape.dim[0]);
    return QN_OK;
}

static const QnSample quantize_f8_samples[] = {
    { .in = { { 2, { 5, 7 }, .lo = -200, .hi = 200 },
              { .rank = 0, .lo = 4, .hi = 4 },
              { 1, { 16 }, .lo = 0, .hi = 9 } },
      .n_in = 3,
      .attr = &(Attr){ QN_DTYPE_F8E4M3FN, true, true },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY }, /* steps */
    { .in = { { 2, { 68, 132 }, .lo = -1, .hi = 1 },
              { .rank = 0, .lo = 32768, .hi = 32768 },
              { 1, { 3 }, .lo = 0, .hi = 1 } },
      .n_in = 3,
      .attr = &(Attr){ QN_DTYPE_F8E5M2, true, true },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 2, { 3, 130 } }, { .rank = 0, .lo = 1, .hi = 1 } },
      .n_in = 2,
      .attr = &(Attr){ QN_DTYPE_F8E5M2, true, false },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 2, { 66, 20 } },
              { .rank = 0, .lo = 0.5, .hi = 0.5 },
              { 1, { 1 }, .lo = 0, .hi = 1 } },
      .n_in = 3,
      .attr = &(Attr){ QN_DTYPE_F8E4M3FN, false, true },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 2, { 4, 65 } }, { .rank = 0, .lo = 0.25, .hi = 0.25 } },
      .n_in = 2,
      .attr = &(Attr){ QN_DTYPE_F8E4M3FN, false, true },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 2, { 64, 64 } }, { .rank = 0, .lo = 2, .hi = 2 }, { 1, { 2 }, .lo = 0, .hi = 1 } },
      .n_in = 3,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 2, { 7, 9 } }, { .rank = 0, .lo = 2, .hi = 2 } },
      .n_in = 2,
      .attr = &(Attr){ QN_DTYPE_F8E4M3FN, true, true },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* Outputs: the matrix if straight, its transpose if turned, with a history (may be NULL) the next
 * one. */
QN_API QnNode *qn_quantize_f8(QnGraph *g, QnValue *x, QnValue *scale, QnValue *history,
                              QnDtype dtype, bool straight, bool turned)
{
    return qn_emit(g, &qn_op_quantize_f8, &(Attr){ dtype, straight, turned },
                   (QnValue *[]){ x, scale, history }, history ? 3 : 2);
}

const QnOp qn_op_quantize_f8 = {
    .name = "quantize_f8",
    .version = 1,
    .doc = "matrix times a scale in 8-bit floats, also transposed, and the history of its largest",
    .n_in = 2,
    .n_in_max = 3,
    .n_out = -1,
    .traits = QN_ANY_DTYPE | QN_NO_GRAD | QN_TEXT_F8,
    QN_ATTRS(Attr, quantize_f8_fields),
    .infer = quantize_f8_infer,
    .cost = quantize_f8_cost,
    .lower = quantize_f8_lower,
    .device = QN_TEXT(quantize_f8),
    .call = quantize_f8_call,
    QN_SAMPLES(quantize_f8_samples),
};
#endif

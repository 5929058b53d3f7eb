/* Matrix product: y (…,M,N) = a (…,M,K) * b (…,K,N) + bias; with trans_a a is (…,K,M), with trans_b
 * b is (…,N,K). Leading axes broadcast; the bias broadcasts to y. Sums in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/tile.h"

/* d: batch axes of y, outermost first; a0.., b0..: strides of a and b along them; am, ak, bk, bn:
 * along rows and columns. */
#define MATMUL_ARGS                                                                                \
    qn_long d0, qn_long d1, qn_long d2, qn_long d3, qn_long d4, qn_long d5, qn_long a0,            \
        qn_long a1, qn_long a2, qn_long a3, qn_long a4, qn_long a5, qn_long b0, qn_long b1,        \
        qn_long b2, qn_long b3, qn_long b4, qn_long b5, qn_long m, qn_long n, qn_long k,           \
        qn_long am, qn_long ak, qn_long bk, qn_long bn
#define MATMUL_BIAS_ARGS                                                                           \
    qn_long c0, qn_long c1, qn_long c2, qn_long c3, qn_long c4, qn_long c5, qn_long cm, qn_long cn

/* Where matrix `batch` of a and b lies. */
#define MATMUL_AT                                                                                  \
    qn_long i5 = batch % d5, i4 = batch / d5 % d4, i3 = batch / d5 / d4 % d3;                      \
    qn_long i2 = batch / d5 / d4 / d3 % d2, i1 = batch / d5 / d4 / d3 / d2 % d1;                   \
    qn_long i0 = batch / d5 / d4 / d3 / d2 / d1;                                                   \
    qn_long ao = i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3 + i4 * a4 + i5 * a5;                        \
    qn_long bo = i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3 + i4 * b4 + i5 * b5;
#define MATMUL_NO_BIAS     0.0f
#define MATMUL_PUT(v)      qn_store(y, (batch * m + row) * n + col, v);
#define MATMUL_PUT_BIAS(v) qn_store(y, (batch * m + row) * n + col, (v) + MATMUL_BIAS_AT);
#define MATMUL_BIAS_AT                                                                             \
    qn_load(bias, i0 *c0 + i1 * c1 + i2 * c2 + i3 * c3 + i4 * c4 + i5 * c5 + row * cm + col * cn)

/* One work group a block of 64 R rows and 64 W columns of y. */
#define MATMUL_TILE(R, W, PUT)                                                                     \
    QN_SHARED float ta[TILE_FLOATS(R)], tb[TILE_FLOATS(W)];                                        \
    qn_long tiles_n = (n + 64 * W - 1) / (64 * W), tiles_m = (m + 64 * R - 1) / (64 * R);          \
    qn_long batch = qn_group() / tiles_n / tiles_m, tile = qn_group() / tiles_n % tiles_m;         \
    qn_long row0 = tile * (64 * R), col0 = qn_group() % tiles_n * (64 * W);                        \
    MATMUL_AT                                                                                      \
    float acc[16 * R * W];                                                                         \
    for (int i = 0; i < 16 * R * W; i++)                                                           \
        acc[i] = 0.0f;                                                                             \
    qn_tile_product(acc, R, W, ta, tb, a, ao, row0, m, am, ak, b, bo, col0, n, bn, bk, 0, k);      \
    TILE_EACH(i, 4 * R)                                                                            \
    {                                                                                              \
        TILE_EACH(j, 4 * W)                                                                        \
        {                                                                                          \
            qn_long row = row0 + i / 4 * 64 + TILE_Y + i % 4;                                      \
            qn_long col = col0 + j / 4 * 64 + TILE_X + j % 4;                                      \
            if (row < m && col < n) {                                                              \
                PUT(acc[i * 4 * W + j])                                                            \
            }                                                                                      \
        }                                                                                          \
    }

QN_KERNEL matmul_tile(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                      MATMUL_ARGS){ MATMUL_TILE(1, 1, MATMUL_PUT) }

QN_KERNEL matmul_tile_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                           QN_GLOBAL const QN_T *bias, MATMUL_ARGS,
                           MATMUL_BIAS_ARGS){ MATMUL_TILE(1, 1, MATMUL_PUT_BIAS) }

QN_KERNEL matmul_wide(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                      MATMUL_ARGS){ MATMUL_TILE(2, 2, MATMUL_PUT) }

QN_KERNEL matmul_wide_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                           QN_GLOBAL const QN_T *bias, MATMUL_ARGS,
                           MATMUL_BIAS_ARGS){ MATMUL_TILE(2, 2, MATMUL_PUT_BIAS) }

/* Matrices of few rows or columns: one work group 16x16 elements of y, one an item. */
#define MATMUL_SMALL(BIAS)                                                                         \
    QN_SHARED float ta[256], tb[256];                                                              \
    qn_long tiles_n = (n + 15) / 16, tiles_m = (m + 15) / 16,                                      \
            batch = qn_group() / tiles_n / tiles_m;                                                \
    int r = qn_lid() / 16, c = qn_lid() % 16;                                                      \
    qn_long row = qn_group() / tiles_n % tiles_m * 16 + r, col = qn_group() % tiles_n * 16 + c;    \
    MATMUL_AT                                                                                      \
    float s = 0.0f;                                                                                \
    for (qn_long t = 0; t < k; t += 16) {                                                          \
        ta[r * 16 + c] = row < m && t + c < k ? qn_load(a, ao + row * am + (t + c) * ak) : 0.0f;   \
        tb[r * 16 + c] = col < n && t + r < k ? qn_load(b, bo + (t + r) * bk + col * bn) : 0.0f;   \
        QN_SYNC();                                                                                 \
        for (int j = 0; j < 16; j++)                                                               \
            s += ta[r * 16 + j] * tb[j * 16 + c];                                                  \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    if (row < m && col < n)                                                                        \
        qn_store(y, (batch * m + row) * n + col, s + BIAS);

QN_KERNEL matmul_small(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                       MATMUL_ARGS){ MATMUL_SMALL(MATMUL_NO_BIAS) }

QN_KERNEL matmul_small_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                            QN_GLOBAL const QN_T *bias, MATMUL_ARGS,
                            MATMUL_BIAS_ARGS){ MATMUL_SMALL(MATMUL_BIAS_AT) }

/* Up to four vectors (rows of a, or of b's transpose) times a long matrix, read once: a group does
 * 8 of its rows with 32 items each, where k is what lies together, else 32 rows with 8 items each,
 * so that neighbours read neighbours. */
#define MATMUL_THIN(BIAS)                                                                          \
    QN_SHARED float part[256];                                                                     \
    bool swap = n <= 4, deep = (swap ? ak : bk) == 1;                                              \
    qn_long lines = swap ? m : n, few = swap ? n : m, wide = deep ? 8 : 32;                        \
    qn_long blocks = (lines + wide - 1) / wide, batch = qn_group() / blocks;                       \
    int lid = qn_lid(), lane = deep ? lid % 32 : lid / 32, lanes = deep ? 32 : 8;                  \
    qn_long line = qn_group() % blocks * wide + (deep ? lid / 32 : lid % 32);                      \
    MATMUL_AT                                                                                      \
    QN_GLOBAL const QN_T *lp = swap ? a : b, *fp = swap ? b : a;                                   \
    qn_long lo = (swap ? ao : bo) + line * (swap ? am : bn), lk = swap ? ak : bk;                  \
    qn_long fo = swap ? bo : ao, fs = swap ? bn : am, fk = swap ? bk : ak;                         \
    float s[4] = { 0.0f, 0.0f, 0.0f, 0.0f };                                                       \
    if (deep && ((lo | k) & 3) == 0 && line < lines) {                                             \
        for (qn_long t = lane * 4; t < k; t += 128) {                                              \
            float v[4];                                                                            \
            qn_tile_load4(v, lp, lo + t);                                                          \
            for (int f = 0; f < 4; f++) {                                                          \
                for (int j = 0; j < 4 && f < few; j++)                                             \
                    s[f] += v[j] * qn_load(fp, fo + f * fs + (t + j) * fk);                        \
            }                                                                                      \
        }                                                                                          \
    } else {                                                                                       \
        for (qn_long t = lane; t < k && line < lines; t += lanes) {                                \
            float v = qn_load(lp, lo + t * lk);                                                    \
            for (int f = 0; f < 4; f++)                                                            \
                s[f] += f < few ? v * qn_load(fp, fo + f * fs + t * fk) : 0.0f;                    \
        }                                                                                          \
    }                                                                                              \
    for (int f = 0; f < 4; f++) {                                                                  \
        part[lid] = s[f];                                                                          \
        QN_SYNC();                                                                                 \
        for (int h = lanes / 2; h > 0; h /= 2) {                                                   \
            if (lane < h)                                                                          \
                part[lid] += part[lid + (deep ? h : 32 * h)];                                      \
            QN_SYNC();                                                                             \
        }                                                                                          \
        qn_long row = swap ? line : f, col = swap ? f : line;                                      \
        if (lane == 0 && line < lines && f < few)                                                  \
            qn_store(y, (batch * m + row) * n + col, part[lid] + BIAS);                            \
    }

QN_KERNEL matmul_thin(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                      MATMUL_ARGS){ MATMUL_THIN(MATMUL_NO_BIAS) }

QN_KERNEL matmul_thin_bias(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                           QN_GLOBAL const QN_T *bias, MATMUL_ARGS,
                           MATMUL_BIAS_ARGS){ MATMUL_THIN(MATMUL_BIAS_AT) }

/* The bias of one row in every row of y, for libraries that add their product to it. */
QN_KERNEL matmul_spread(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *bias, qn_long count, qn_long n)
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, qn_load(bias, i % n));
}

#ifdef QN_BODY_RUN /* of matmul_map: rt/devtext_product.c */
#define MATMUL_PUT_MAP(v) QN_BODY_RUN(v, batch, row, col, m, n)
QN_KERNEL matmul_tile_map(QN_BODY_OUT, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                          QN_BODY_IN MATMUL_ARGS)
{
    MATMUL_TILE(1, 1, MATMUL_PUT_MAP)
}
#endif
#endif

#ifdef QN_HOST
#include "ops/matmul.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/util.h"
#include "ops/whole.h"

typedef QnMatmulAttr Attr;

static const QnAttrField matmul_fields[] = {
    { .name = "trans_a",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, trans_a),
      .doc = "the last two axes of a are swapped" },
    { .name = "trans_b",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, trans_b),
      .doc = "the last two axes of b are swapped" },
};

static bool matmul_has_bias(const QnNode *n)
{
    return n->n_in > 2 && n->in[2];
}

static QnStatus matmul_mismatch(const QnShape *a, const QnShape *b, const Attr *attr)
{
    char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
    return qn_fail(QN_ESHAPE, "matmul: %s%s and %s%s do not fit; want (…,M,K) and (…,K,N)",
                   qn_shape_text(a, x), attr->trans_a ? " transposed" : "", qn_shape_text(b, y),
                   attr->trans_b ? " transposed" : "");
}

/* Whether shape s broadcasts to y as far as its concrete dims tell. */
static bool matmul_broadcasts(const QnShape *s, const QnShape *y)
{
    for (int i = 1; i <= s->rank; i++) {
        QnDim from = s->dim[s->rank - i], to = i <= y->rank ? y->dim[y->rank - i] : 1;
        if (from != 1 && from != to && from >= 0 && to >= 0)
            return false;
    }
    return s->rank <= y->rank;
}

static QnStatus matmul_infer(QnInfer *c)
{
    const Attr *attr = c->attr;
    const QnShape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    for (int i = 0; i < c->n_in; i++) {
        QnDtype d = c->in[i]->dtype;
        if (i == 2 && d == QN_DTYPE_COUNT)
            continue;
        if (d == QN_DTYPE_BOOL || d != c->in[0]->dtype)
            return qn_fail(QN_EDTYPE, "matmul: operand %d is %s; all must be of one number type", i,
                           qn_dtype_name(d));
    }
    if (a->rank < 2 || b->rank < 2)
        return matmul_mismatch(a, b, attr);
    QnDim m = a->dim[a->rank - 2], k = a->dim[a->rank - 1];
    QnDim kb = b->dim[b->rank - 2], n = b->dim[b->rank - 1];
    QnDim ka = attr->trans_a ? m : k;
    m = attr->trans_a ? k : m;
    QnDim nb = attr->trans_b ? kb : n;
    kb = attr->trans_b ? n : kb;
    if (ka != kb && ka >= 0 && kb >= 0)
        return matmul_mismatch(a, b, attr);
    QnShape *y = &c->out[0].shape;
    y->rank = QN_MAX(a->rank, b->rank);
    for (int i = 3; i <= y->rank; i++) {
        QnDim p = i <= a->rank ? a->dim[a->rank - i] : 1;
        QnDim q = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (p != q && p != 1 && q != 1 && p >= 0 && q >= 0)
            return matmul_mismatch(a, b, attr);
        y->dim[y->rank - i] = p == 1 || (p < 0 && q > 1) ? q : p;
    }
    y->dim[y->rank - 2] = m;
    y->dim[y->rank - 1] = nb;
    c->out[0].dtype = c->in[0]->dtype;
    if (c->n_in > 2 && c->in[2]->dtype != QN_DTYPE_COUNT &&
        !matmul_broadcasts(&c->in[2]->shape, y)) {
        char t[QN_TYPE_TEXT_BYTES], u[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "matmul: the bias %s does not broadcast to %s",
                       qn_shape_text(&c->in[2]->shape, t), qn_shape_text(y, u));
    }
    return QN_OK;
}

/* Length of the folded axis. */
static int64_t matmul_k(const QnNode *n)
{
    return qn_matmul_length(n, ((const Attr *)n->attr)->trans_a);
}

static QnCost matmul_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->out[0].type.shape);
    QnCost c = { .flops = 2 * count * (double)matmul_k(n) + (matmul_has_bias(n) ? count : 0),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    return c;
}

static void matmul_swap(int64_t *s, int rank)
{
    int64_t t = s[rank - 1];
    s[rank - 1] = s[rank - 2];
    s[rank - 2] = t;
}

/* Element i of the product of integers: k products of elements from x and w on. */
static void matmul_whole(const QnRefArgs *r, int64_t i, int64_t k, const int64_t at[3],
                         int64_t step_a, int64_t step_b)
{
    int64_t s = matmul_has_bias(r->node) ? qn_whole_at(r, 2, at[2]) : 0;
    for (int64_t j = 0; j < k; j++)
        s = qn_whole_add(s, qn_whole_mul(qn_whole_at(r, 0, at[0] + j * step_a),
                                         qn_whole_at(r, 1, at[1] + j * step_b)));
    qn_whole_put(r, 0, i, s);
}

static QnStatus matmul_ref(const QnRefArgs *r)
{
    const Attr *attr = r->attr;
    const QnShape *y = &r->out_type[0]->shape;
    int64_t a[QN_MAX_RANK], b[QN_MAX_RANK], c[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    int rank = y->rank;
    qn_util_spread_strides(&r->in_type[0]->shape, rank, a);
    qn_util_spread_strides(&r->in_type[1]->shape, rank, b);
    if (attr->trans_a)
        matmul_swap(a, rank);
    if (attr->trans_b)
        matmul_swap(b, rank);
    int64_t step_a = a[rank - 1], step_b = b[rank - 2];
    a[rank - 1] = b[rank - 2] = 0;
    if (matmul_has_bias(r->node))
        qn_util_spread_strides(&r->in_type[2]->shape, rank, c);
    for (int64_t i = 0, n = qn_shape_count(y), k = matmul_k(r->node); i < n; i++) {
        int64_t at[3] = { qn_util_offset(rank, index, a), qn_util_offset(rank, index, b),
                          matmul_has_bias(r->node) ? qn_util_offset(rank, index, c) : 0 };
        qn_util_next(y, index);
        if (qn_whole_is(r)) {
            matmul_whole(r, i, k, at, step_a, step_b);
            continue;
        }
        const double *x = r->in[0] + at[0], *w = r->in[1] + at[1];
        double s = matmul_has_bias(r->node) ? r->in[2][at[2]] : 0;
        for (int64_t j = 0; j < k; j++)
            s += x[j * step_a] * w[j * step_b];
        r->out[0][i] = s;
    }
    return QN_OK;
}

static void matmul_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *t = n->attr;
    QnValue *a = n->in[0], *b = n->in[1], *d = dy[0];
    QnValue *da = t->trans_a ? qn_matmul(g, b, d, NULL, t->trans_b, true)
                             : qn_matmul(g, d, b, NULL, false, !t->trans_b);
    QnValue *db = t->trans_b ? qn_matmul(g, d, a, NULL, true, t->trans_a)
                             : qn_matmul(g, a, d, NULL, !t->trans_a, false);
    dx[0] = qn_sum_to(g, da, &a->type.shape);
    dx[1] = qn_sum_to(g, db, &b->type.shape);
    if (matmul_has_bias(n))
        dx[2] = qn_sum_to(g, d, &n->in[2]->type.shape);
}

/* Kernel and number of groups of the launch; together: along k, elements of the larger operand are
 * neighbours. */
static void matmul_choose(QnDeviceCall *c, bool bias, int64_t batch, int64_t m, int64_t n,
                          int64_t k, bool together)
{
    enum { FULL = 256 }; /* groups that fill a large GPU */
    int64_t wide = batch * ((m + 127) / 128) * ((n + 127) / 128);
    if (QN_MIN(m, n) <= 4 && k >= 32) {
        int64_t lines = n <= 4 ? m : n, block = together ? 8 : 32;
        c->kernel = bias ? "matmul_thin_bias" : "matmul_thin";
        c->n_groups = batch * ((lines + block - 1) / block);
    } else if (QN_MIN(m, n) <= 16) {
        c->kernel = bias ? "matmul_small_bias" : "matmul_small";
        c->n_groups = batch * ((m + 15) / 16) * ((n + 15) / 16);
    } else if (wide >= FULL && QN_MIN(m, n) > 64) {
        c->kernel = bias ? "matmul_wide_bias" : "matmul_wide";
        c->n_groups = wide;
    }
}

static QnStatus matmul_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    const QnShape *y = &n->out[0].type.shape;
    bool bias = matmul_has_bias(n);
    QN_TRY(
        qn_matmul_tiles(n, a->trans_a, a->trans_b, bias ? "matmul_tile_bias" : "matmul_tile", c));
    int64_t rows = y->dim[y->rank - 2], cols = y->dim[y->rank - 1], batch = 1;
    int64_t step = c->arg[c->n_arg - (cols <= 4 ? 3 : 2)].i; /* ak or bk */
    for (int i = 0; i < y->rank - 2; i++)
        batch *= y->dim[i];
    matmul_choose(c, bias, batch, rows, cols, qn_matmul_length(n, a->trans_a), step == 1);
    if (bias)
        qn_matmul_tiles_bias(n, c);
    return QN_OK;
}

static const QnSample matmul_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 7, 3 } }, { 1, { 3 } } }, .n_in = 3 },
    { .in = { { 2, { 130, 5 } }, { 2, { 19, 130 } } }, .n_in = 2, .attr = &(Attr){ true, true } },
    { .in = { { 4, { 2, 1, 4, 5 } }, { 3, { 3, 6, 5 } }, { 3, { 3, 1, 6 } } },
      .n_in = 3,
      .attr = &(Attr){ false, true } },
    { .in = { { 3, { 2, 5, 4 } }, { 2, { 5, 1 } } }, .n_in = 2, .attr = &(Attr){ true, false } },
    { .in = { { 2, { 3, 4 }, QN_DTYPE_I32, -9, 9 },
              { 2, { 4, 5 }, QN_DTYPE_I32, -9, 9 },
              { 1, { 5 }, QN_DTYPE_I32, -9, 9 } },
      .n_in = 3,
      .flags = QN_SAMPLE_NO_GRAD }, /* integers */
};

/* a * b + bias; bias may be NULL. A batch of matrices times one matrix becomes one tall product,
 * which also keeps b's gradient free of a batch. */
QN_API QnValue *qn_matmul(QnGraph *g, QnValue *a, QnValue *b, QnValue *bias, bool trans_a,
                          bool trans_b)
{
    if (!a || !b || qn_value_is_poison(a) || qn_value_is_poison(b))
        return qn_graph_poison(g);
    QnShape s = a->type.shape, flat = { 2, { 0 } };
    bool tall =
        s.rank > 2 && b->type.shape.rank == 2 && !trans_a && (!bias || bias->type.shape.rank <= 1);
    if (tall) {
        flat.dim[0] = qn_shape_product(g, &s, 0, s.rank - 1);
        flat.dim[1] = s.dim[s.rank - 1];
        a = qn_reshape(g, a, &flat);
    }
    QnValue *y = qn_emitn(g, &qn_op_matmul, &(Attr){ trans_a, trans_b },
                          (QnValue *[]){ a, b, bias }, bias ? 3 : 2);
    if (!tall || qn_value_is_poison(y))
        return y;
    s.dim[s.rank - 1] = y->type.shape.dim[1];
    return qn_reshape(g, y, &s);
}

static QnStatus matmul_import(QnOnnxNode *n)
{
    const QnType *a = qn_onnx_type(n, 0), *b = qn_onnx_type(n, 1);
    if (!a || !b || !a->shape.rank || !b->shape.rank)
        return qn_fail(QN_ESHAPE, "its operands must be tensors of numbers, no scalars");
    bool row = a->shape.rank == 1, column = b->shape.rank == 1;
    QnValue *x = qn_onnx_in(n, 0), *w = qn_onnx_in(n, 1);
    x = row ? qn_unsqueeze(n->g, x, 0) : x;
    w = column ? qn_unsqueeze(n->g, w, 1) : w;
    QnValue *y = qn_matmul(n->g, x, w, NULL, false, false);
    y = column ? qn_squeeze(n->g, y, -1) : y;
    return qn_onnx_out0(n, row ? qn_squeeze(n->g, y, column ? -1 : -2) : y);
}

/* Integers are scaled as f64. */
static QnStatus matmul_import_gemm(QnOnnxNode *n)
{
    const QnType *a = qn_onnx_type(n, 0);
    double alpha = qn_onnx_float(n, "alpha", 1), beta = qn_onnx_float(n, "beta", 1);
    bool trans_a = qn_onnx_int(n, "transA", 0) != 0, trans_b = qn_onnx_int(n, "transB", 0) != 0;
    if (qn_onnx_rank(n, 0) != 2 || qn_onnx_rank(n, 1) != 2)
        return qn_fail(QN_ESHAPE, "operands of rank %d and %d; both must be matrices",
                       qn_onnx_rank(n, 0), qn_onnx_rank(n, 1));
    bool has_c = qn_onnx_has(n, 2) && beta != 0, scales = alpha != 1 || (has_c && beta != 1);
    QnDtype t = a->dtype, as = scales && !qn_dtype_is_float(t) ? QN_DTYPE_F64 : t;
    QnValue *x = qn_cast(n->g, qn_onnx_in(n, 0), as), *w = qn_cast(n->g, qn_onnx_in(n, 1), as);
    QnValue *c = has_c ? qn_cast(n->g, qn_onnx_in(n, 2), as) : NULL;
    if (c && beta != 1)
        c = qn_mul_scalar(n->g, c, beta);
    QnValue *y = qn_matmul(n->g, x, w, alpha == 1 ? c : NULL, trans_a, trans_b);
    if (alpha != 1) {
        y = qn_mul_scalar(n->g, y, alpha);
        y = c ? qn_add(n->g, y, c) : y;
    }
    return qn_onnx_out0(n, qn_cast(n->g, y, t));
}

static const QnOnnxMap matmul_onnx[] = {
    { .name = "MatMul", .since = 1, .import = matmul_import },
    { .name = "Gemm", .since = 1, .import = matmul_import_gemm },
};

static const char *matmul_put_side(QnOnnxPut *p, const QnValue *v, bool trans)
{
    const char *name = qn_put_value(p, v);
    int64_t perm[QN_MAX_RANK];
    int r = v->type.shape.rank;
    if (!trans)
        return name;
    for (int i = 0; i < r; i++)
        perm[i] = i < r - 2 ? i : i == r - 2 ? r - 1 : r - 2;
    const char *turned = qn_put_fresh(p, "transposed");
    qn_put_attr_ints(p, qn_put_node(p, "Transpose", &name, 1, &turned, 1), "perm", perm, r);
    return turned;
}

/* Gemm for matrices, which has both transpositions and the bias; MatMul and Add otherwise. */
static QnStatus matmul_put(QnOnnxPut *p, const QnNode *n)
{
    const Attr *a = n->attr;
    bool bias = n->n_in > 2 && n->in[2];
    if (n->in[0]->type.shape.rank == 2 && n->in[1]->type.shape.rank == 2) {
        QnOnnxDef *d = qn_put_same(p, n, "Gemm");
        qn_put_attr_int(p, d, "transA", a->trans_a);
        qn_put_attr_int(p, d, "transB", a->trans_b);
        return qn_put_status(p);
    }
    const char *in[] = { matmul_put_side(p, n->in[0], a->trans_a),
                         matmul_put_side(p, n->in[1], a->trans_b) };
    if (!bias) {
        qn_put_as(p, &n->out[0], "MatMul", in, 2);
    } else {
        const char *sum[] = { qn_put_1(p, "MatMul", in, 2), qn_put_value(p, n->in[2]) };
        qn_put_as(p, &n->out[0], "Add", sum, 2);
    }
    return qn_put_status(p);
}

const QnOp qn_op_matmul = {
    .name = "matmul",
    .version = 1,
    .doc = "matrix product over the last two axes",
    .n_in = 2,
    .n_in_max = 3,
    .traits = QN_WHOLE,
    QN_ATTRS(Attr, matmul_fields),
    .infer = matmul_infer,
    .cost = matmul_cost,
    .ref = matmul_ref,
    .grad = matmul_grad,
    .device = QN_TEXT(matmul),
    .call = matmul_call,
    QN_ONNX(matmul_onnx),
    .onnx_put = matmul_put,
    .onnx_writes = "Add,Gemm,MatMul,Transpose",
    QN_SAMPLES(matmul_samples),
};
#endif

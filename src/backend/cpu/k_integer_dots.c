/* matmul_integer and conv_integer: operands without their zero points as 16-bit integers, rows of
 * one by rows of the other. Sums are exact, so that any order of them gives the same. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/dots.h"
#include "ops/ops.h"
#include "ops/util.h"
#include "ops/window.h"

enum { TILE_ROWS = 32, TILE_COLUMNS = 64, TILE_PIXELS = 64 };

/* Elements of an operand, less a zero point. */
typedef struct Bytes {
    const void *p;
    bool is_signed;
} Bytes;

static int byte_at(const Bytes *b, int64_t i)
{
    return b->is_signed ? ((const int8_t *)b->p)[i] : ((const uint8_t *)b->p)[i];
}

static Bytes bytes_of(const QnNode *n, const void *const *in, int i)
{
    bool given = i < n->n_in && n->in[i];
    return (Bytes){ given ? in[i] : NULL, given && n->in[i]->type.dtype == QN_DTYPE_I8 };
}

/* Offset under strides of place `flat` of a row-major array. */
static int64_t strided(int64_t flat, int axes, const int64_t *dim, const int64_t *stride)
{
    int64_t o = 0;
    for (int i = axes - 1; i >= 0; flat /= dim[i--])
        o += flat % dim[i] * stride[i];
    return o;
}

/* ---- matmul_integer ---- */

typedef struct MatmulRun {
    QnDotsFn *fn;
    const QnShape *a_shape, *b_shape, *y_shape;
    Bytes a, b, a_zero, b_zero;
    int64_t a_stride[QN_MAX_RANK], b_stride[QN_MAX_RANK];   /* along y's axes */
    int64_t za_stride[QN_MAX_RANK], zb_stride[QN_MAX_RANK]; /* along their operands' axes */
    int64_t m, n, k, b_batches, row_tiles, column_tiles;
    int16_t *a16, *b16; /* a's rows; b's columns as rows */
    int32_t *y;
} MatmulRun;

static int64_t matmul_k(const QnNode *n)
{
    const QnShape *a = &n->in[0]->type.shape;
    return a->dim[a->rank - 1];
}

static const char *matmul_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (matmul_k(n) > QN_DOTS_MOST)
        return "sums of more than 32,768 products may leave 32 bits";
    return qn_dots_find(env->isa) ? qn_cpu_need_plain(n) : "no such instruction set";
}

static QnStatus matmul_prepare(QnPrepared *p)
{
    int64_t elements =
        qn_shape_count(&p->node->in[0]->type.shape) + qn_shape_count(&p->node->in[1]->type.shape);
    p->workspace_bytes = (size_t)elements * sizeof(int16_t);
    return QN_OK;
}

static void matmul_widen_a(void *ctx, int64_t tile)
{
    const MatmulRun *r = ctx;
    const QnShape *s = r->a_shape;
    int64_t rows = qn_shape_count(s) / r->k, end = QN_MIN((tile + 1) * TILE_ROWS, rows);
    for (int64_t i = tile * TILE_ROWS; i < end; i++) {
        int64_t z = r->a_zero.p ? strided(i, s->rank - 1, s->dim, r->za_stride) : 0;
        int zero = r->a_zero.p ? byte_at(&r->a_zero, z) : 0;
        for (int64_t t = 0; t < r->k; t++)
            r->a16[i * r->k + t] = (int16_t)(byte_at(&r->a, i * r->k + t) - zero);
    }
}

static void matmul_widen_b(void *ctx, int64_t unit)
{
    const MatmulRun *r = ctx;
    const QnShape *s = r->b_shape;
    int64_t batch = unit / r->column_tiles, first = unit % r->column_tiles * TILE_COLUMNS;
    int64_t end = QN_MIN(first + TILE_COLUMNS, r->n), base = batch * r->k * r->n;
    int64_t zb = r->b_zero.p ? strided(batch, s->rank - 2, s->dim, r->zb_stride) : 0;
    for (int64_t j = first; j < end; j++) {
        int zero = r->b_zero.p ? byte_at(&r->b_zero, zb + j * r->zb_stride[s->rank - 1]) : 0;
        for (int64_t t = 0; t < r->k; t++)
            r->b16[base + j * r->k + t] = (int16_t)(byte_at(&r->b, base + t * r->n + j) - zero);
    }
}

static void matmul_unit(void *ctx, int64_t unit)
{
    const MatmulRun *r = ctx;
    int64_t j = unit % r->column_tiles * TILE_COLUMNS, rest = unit / r->column_tiles;
    int64_t i = rest % r->row_tiles * TILE_ROWS, batch = rest / r->row_tiles;
    const QnShape *y = r->y_shape;
    const int16_t *a = r->a16 + strided(batch, y->rank - 2, y->dim, r->a_stride);
    const int16_t *b = r->b16 + strided(batch, y->rank - 2, y->dim, r->b_stride);
    r->fn(a + i * r->k, QN_MIN(TILE_ROWS, r->m - i), b + j * r->k, QN_MIN(TILE_COLUMNS, r->n - j),
          r->k, r->y + (batch * r->m + i) * r->n + j, r->n);
}

static void matmul_zeros(const QnNode *n, int operand, int64_t stride[QN_MAX_RANK])
{
    if (operand + 2 >= n->n_in || !n->in[operand + 2])
        return;
    QnShape z = n->in[operand + 2]->type.shape;
    if (operand == 0 && z.rank == 1)
        z = QN_SHAPE(z.dim[0], 1);
    qn_util_spread_strides(&z, n->in[operand]->type.shape.rank, stride);
}

static QnStatus matmul_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const QnNode *n = p->node;
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    const QnShape *y = &n->out[0].type.shape;
    MatmulRun r = { .fn = qn_dots_find(p->env->isa), .a_shape = a, .b_shape = b, .y_shape = y };
    int64_t count = qn_shape_count(y);
    int threads = qn_cpu_threads(p);
    r.m = y->dim[y->rank - 2];
    r.n = y->dim[y->rank - 1];
    r.k = matmul_k(n);
    r.y = out[0];
    if (count == 0)
        return QN_OK;
    if (r.k == 0) {
        memset(out[0], 0, (size_t)count * sizeof *r.y);
        return QN_OK;
    }
    r.a = bytes_of(n, in, 0);
    r.b = bytes_of(n, in, 1);
    r.a_zero = bytes_of(n, in, 2);
    r.b_zero = bytes_of(n, in, 3);
    r.a16 = workspace;
    r.b16 = r.a16 + qn_shape_count(a);
    qn_util_spread_strides(a, y->rank, r.a_stride);
    qn_util_spread_strides(b, y->rank, r.b_stride);
    matmul_zeros(n, 0, r.za_stride);
    matmul_zeros(n, 1, r.zb_stride);
    r.row_tiles = (r.m + TILE_ROWS - 1) / TILE_ROWS;
    r.column_tiles = (r.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    r.b_batches = qn_shape_count(b) / (r.k * r.n);
    int64_t rows = qn_shape_count(a) / r.k;
    qn_cpu_parallel(threads, (rows + TILE_ROWS - 1) / TILE_ROWS, matmul_widen_a, &r);
    qn_cpu_parallel(threads, r.b_batches * r.column_tiles, matmul_widen_b, &r);
    qn_cpu_parallel(threads, count / (r.m * r.n) * r.row_tiles * r.column_tiles, matmul_unit, &r);
    return QN_OK;
}

/* ---- conv_integer ---- */

typedef struct ConvRun {
    QnDotsFn *fn;
    QnConvGeom g;
    Bytes x, w, x_zero, w_zero;
    int64_t k, pixels, tiles; /* k: products of an output element */
    int16_t *w16, *columns;   /* columns: TILE_PIXELS of k, for each worker */
    int32_t *y;
} ConvRun;

static QnConvGeom conv_geom(const QnNode *n)
{
    return qn_window_conv(n->attr, &n->in[0]->type.shape, &n->in[1]->type.shape,
                          &n->out[0].type.shape);
}

static int64_t conv_k(const QnConvGeom *g)
{
    return g->c / g->groups * g->w.k[0] * g->w.k[1] * g->w.k[2];
}

static const char *conv_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnConvGeom g = conv_geom(n);
    if (conv_k(&g) > QN_DOTS_MOST)
        return "sums of more than 32,768 products may leave 32 bits";
    return qn_dots_find(env->isa) ? qn_cpu_need_plain(n) : "no such instruction set";
}

static QnStatus conv_prepare(QnPrepared *p)
{
    QnConvGeom g = conv_geom(p->node);
    int64_t k = conv_k(&g);
    p->workspace_bytes = (size_t)(g.m * k + p->env->n_threads * TILE_PIXELS * k) * sizeof(int16_t);
    return QN_OK;
}

/* What the taps of output pixel o read, of the image and group whose planes begin at `base`. */
static void conv_column(const ConvRun *r, int64_t base, int64_t o, int16_t *to)
{
    const QnWindow *w = &r->g.w;
    int zero = r->x_zero.p ? byte_at(&r->x_zero, 0) : 0;
    int64_t at[3] = { o / w->out[2] / w->out[1], o / w->out[2] % w->out[1], o % w->out[2] };
    for (int64_t c = 0; c < r->g.c / r->g.groups; c++) {
        int64_t plane = base + c * w->in[0] * w->in[1] * w->in[2];
        for (int64_t i = 0; i < w->k[0]; i++) {
            int64_t z = qn_window_at(w, 0, at[0], i);
            for (int64_t j = 0; j < w->k[1]; j++) {
                int64_t y = qn_window_at(w, 1, at[1], j);
                bool in = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
                for (int64_t t = 0; t < w->k[2]; t++) {
                    int64_t x = qn_window_at(w, 2, at[2], t);
                    int64_t from = plane + (z * w->in[1] + y) * w->in[2] + x;
                    *to++ =
                        in && x >= 0 && x < w->in[2] ? (int16_t)(byte_at(&r->x, from) - zero) : 0;
                }
            }
        }
    }
}

static void conv_unit(void *ctx, int worker, int64_t unit)
{
    const ConvRun *r = ctx;
    const QnConvGeom *g = &r->g;
    int64_t first = unit % r->tiles * TILE_PIXELS, image = unit / r->tiles / g->groups;
    int64_t group = unit / r->tiles % g->groups, mg = g->m / g->groups;
    int64_t n = QN_MIN(TILE_PIXELS, r->pixels - first);
    int64_t cells = g->w.in[0] * g->w.in[1] * g->w.in[2];
    int64_t base = (image * g->c + group * (g->c / g->groups)) * cells;
    int16_t *columns = r->columns + worker * TILE_PIXELS * r->k;
    for (int64_t i = 0; i < n; i++)
        conv_column(r, base, first + i, columns + i * r->k);
    r->fn(r->w16 + group * mg * r->k, mg, columns, n, r->k,
          r->y + (image * g->m + group * mg) * r->pixels + first, r->pixels);
}

static QnStatus conv_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const QnNode *n = p->node;
    ConvRun r = { .fn = qn_dots_find(p->env->isa), .g = conv_geom(n), .y = out[0] };
    r.k = conv_k(&r.g);
    r.pixels = r.g.w.out[0] * r.g.w.out[1] * r.g.w.out[2];
    r.tiles = (r.pixels + TILE_PIXELS - 1) / TILE_PIXELS;
    r.x = bytes_of(n, in, 0);
    r.w = bytes_of(n, in, 1);
    r.x_zero = bytes_of(n, in, 2);
    r.w_zero = bytes_of(n, in, 3);
    r.w16 = workspace;
    r.columns = r.w16 + r.g.m * r.k;
    bool several = r.w_zero.p && qn_shape_count(&n->in[3]->type.shape) > 1;
    for (int64_t m = 0; m < r.g.m; m++) {
        int zero = r.w_zero.p ? byte_at(&r.w_zero, several ? m : 0) : 0;
        for (int64_t t = 0; t < r.k; t++)
            r.w16[m * r.k + t] = (int16_t)(byte_at(&r.w, m * r.k + t) - zero);
    }
    qn_cpu_units(qn_cpu_threads(p), r.g.n * r.g.groups * r.tiles, conv_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_matmul_integer_dots = {
    .name = "cpu.matmul_integer.dots",
    .backend = "cpu",
    .op = &qn_op_matmul_integer,
    .rank = 50,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .run = matmul_run,
};

const QnKernel qn_kernel_conv_integer_dots = {
    .name = "cpu.conv_integer.dots",
    .backend = "cpu",
    .op = &qn_op_conv_integer,
    .rank = 50,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
};

/* Gradient of a convolution by its weights, dw = dy^T * columns: for a band of output pixels the
 * columns (tap, channel) are gathered panel by panel, and each panel is multiplied with all of dy's
 * channels. */
#include "backend/cpu/isa/conv_band.h"

#include <string.h>

static int64_t align(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* Whether rows of windows are multiplied where they lie (conv_dw_rows.c); the sums then are
 * [column][m], and one unit has them all. */
static bool by_rows_of(const QnConvDw *d)
{
    return qn_band_is_padded(&d->pass) && d->pass.m % VW == 0 && d->n_blocks == 1;
}

static int64_t band_pixels(const QnConvPass *p)
{
    return p->band * qn_conv_inner(p, false);
}

int64_t QN_ISA_NAME(qn_conv_dw_scratch)(const QnConvDw *d);
void QN_ISA_NAME(qn_conv_dw_block)(const QnConvDw *d, const float *x, const float *dy, float *sums,
                                   int64_t unit, float *scratch);
void QN_ISA_NAME(qn_conv_dw_finish)(const QnConvDw *d, const float *sums, float *dw, int64_t unit);

int64_t QN_ISA_NAME(qn_conv_dw_scratch)(const QnConvDw *d)
{
    const QnConvPass *p = &d->pass;
    int64_t n =
        by_rows_of(d) ? align(qn_band_padded_size(p)) : align(band_pixels(p) * NR) + align(p->c);
    n += p->in_plain ? align(p->band_in * qn_conv_inner(p, true) * p->c) : 0;
    return n + (p->out_plain ? align(band_pixels(p) * p->m) : 0);
}

/* What the second-level cache is to have for the next band, called for by a few bytes a step: rows
 * of dy and of x. */
typedef struct Ahead {
    const char *dy, *x;
    int64_t dy_step, x_step;
} Ahead;

/* ---- the register tile: s[i][j] += sum over n pixels of a[pixel][i] * b[pixel][j] ---- */

/* Rows of dy lie far apart: they are called into the first-level cache a few steps ahead, few
 * enough for the ways of a set. */
QN_INLINE void tile(int mr, int nv, int64_t n, const float *a, int64_t a_step, const float *b,
                    float *sums, Ahead next)
{
    enum { NEAR = 8 };
    QnVec s[MR][NV];
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] = qn_vec_load(sums + i * NR + j * VW);
    }
    for (int64_t t = 0; t < n; t++, a += a_step, b += NR) {
        QnVec y[NV];
        qn_prefetch(a + NEAR * a_step);
        qn_prefetch(a + NEAR * a_step + mr - 1);
        qn_prefetch_far(next.dy);
        qn_prefetch_far(next.x);
        next.dy += next.dy_step;
        next.x += next.x_step;
        QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(b + j * VW);
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QnVec x = qn_vec_set(a[i]);
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += x * y[j];
        }
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_store(sums + i * NR + j * VW, s[i][j]);
    }
}

typedef void TileFn(int64_t n, const float *a, int64_t a_step, const float *b, float *sums,
                    Ahead next);

#define TILE(m, v)                                                                                 \
    static void tile_##m##_##v(int64_t n, const float *a, int64_t a_step, const float *b,          \
                               float *sums, Ahead next)                                            \
    {                                                                                              \
        tile(QN_MIN(m, MR), QN_MIN(v, NV), n, a, a_step, b, sums, next);                           \
    }
TILE(1, 1)
TILE(1, 2)
TILE(1, 3)
TILE(4, 1)
TILE(4, 2)
TILE(4, 3)
TILE(8, 1)
TILE(8, 2)
TILE(8, 3)
TILE(12, 1)
TILE(12, 2)
TILE(12, 3)

static TileFn *const tiles[][3] = { { tile_1_1, tile_1_2, tile_1_3 },
                                    { tile_4_1, tile_4_2, tile_4_3 },
                                    { tile_8_1, tile_8_2, tile_8_3 },
                                    { tile_12_1, tile_12_2, tile_12_3 } };
static const int tile_rows[] = { 1, 4, 8, 12 };

/* All m rows of a panel's sums: in tiles that never read beyond dy's channels. */
static void multiply(int64_t m, int nv, int64_t n, const float *dy, int64_t step, const float *b,
                     float *sums, Ahead next)
{
    for (int64_t i = 0; i < m;) {
        int f = 3;
        while (f > 0 && (tile_rows[f] > MR || tile_rows[f] > m - i))
            f--;
        if (MR < 8 && m - i >= MR)
            f = tile_rows[1] == MR ? 1 : 2; /* clipped to MR rows */
        int rows = QN_MIN(tile_rows[f], MR);
        tiles[f][nv - 1](n, dy + i, step, b, sums + i * NR, next);
        i += rows;
        next.dy += n * next.dy_step;
        next.x += n * next.x_step;
    }
}

/* ---- a band ---- */

typedef struct Columns {
    const QnConvPass *p;
    const float *x;
    int64_t step;
    int64_t begin, end; /* rows along p->first */
} Columns;

/* Columns j0..j0+n of one tap and channels c0.. for all pixels of the band. */
static void gather_tap(const Columns *g, int64_t tap, int64_t c0, int64_t n, float *to)
{
    const QnConvAxis *a = g->p->axis;
    int64_t t2 = tap % a[2].k, t1 = tap / a[2].k % a[1].k, t0 = tap / a[2].k / a[1].k;
    int64_t lo[3] = { 0 }, hi[3] = { a[0].out, a[1].out, a[2].out };
    lo[g->p->first] = g->begin;
    hi[g->p->first] = g->end;
    for (int64_t o0 = lo[0]; o0 < hi[0]; o0++) {
        int64_t e = a[0].from[o0 * a[0].k + t0];
        for (int64_t o1 = lo[1]; o1 < hi[1]; o1++) {
            int64_t f = a[1].from[o1 * a[1].k + t1];
            const float *row = g->x + ((e * a[1].in + f) * a[2].in) * g->step + c0;
            const int32_t *from = a[2].from + t2;
            for (int64_t o2 = lo[2]; o2 < hi[2]; o2++, to += NR) {
                int64_t at = from[o2 * a[2].k];
                if ((e | f | at) < 0)
                    memset(to, 0, (size_t)n * sizeof *to);
                else if (n == NR)
                    memcpy(to, row + at * g->step, NR * sizeof *to);
                else if (n == 1)
                    to[0] = row[at * g->step];
                else
                    memcpy(to, row + at * g->step, (size_t)n * sizeof *to);
            }
        }
    }
}

/* All columns, which fit one panel, pixel by pixel. */
static void gather_dense(const Columns *g, float *to)
{
    const QnConvAxis *a = g->p->axis;
    int64_t lo[3] = { 0 }, hi[3] = { a[0].out, a[1].out, a[2].out }, o[3];
    lo[g->p->first] = g->begin;
    hi[g->p->first] = g->end;
    for (o[0] = lo[0]; o[0] < hi[0]; o[0]++) {
        for (o[1] = lo[1]; o[1] < hi[1]; o[1]++) {
            for (o[2] = lo[2]; o[2] < hi[2]; o[2]++, to += NR)
                qn_band_gather(g->p, g->x, g->step, o, to);
        }
    }
}

static void gather_panel(const Columns *g, int64_t panel, float *to)
{
    int64_t c = g->p->c, n = qn_conv_taps(g->p) * c, j0 = panel * NR;
    int64_t j1 = QN_MIN(n, j0 + NR), pixels = band_pixels(g->p);
    if (j1 - j0 < NR)
        memset(to, 0, (size_t)(pixels * NR) * sizeof *to);
    if (n <= NR && qn_band_is_dense(g->p)) {
        gather_dense(g, to);
        return;
    }
    for (int64_t j = j0; j < j1;) {
        int64_t run = QN_MIN(c - j % c, j1 - j);
        gather_tap(g, j / c, j % c, run, to + (j - j0));
        j += run;
    }
}

static int64_t tiles_of(int64_t m)
{
    return (m + MR - 1) / MR;
}

/* The band behind this one, in shares of all steps that its tiles make; of images in the plain
 * layout what was turned is in the cache already. */
static Ahead next_band(const QnConvDw *d, const float *dy, const Columns *g, int64_t pixels,
                       int64_t step)
{
    const QnConvPass *p = &d->pass;
    Ahead next = { (const char *)dy, (const char *)dy, 0, 0 };
    int64_t shares = tiles_of(p->m) * d->block_panels, bytes = sizeof(float);
    if (p->in_plain || p->out_plain || qn_conv_taps(p) > 1)
        return next;
    const QnConvAxis *axis = &p->axis[p->first];
    int64_t row = g->end < axis->out ? axis->from[g->end] : axis->in;
    next.dy = (const char *)(dy + pixels * step);
    next.dy_step = (step * bytes + shares - 1) / shares;
    next.x = (const char *)(g->x + row * qn_conv_inner(p, true) * g->step);
    next.x_step = (g->step * bytes + shares - 1) / shares;
    return next;
}

void QN_ISA_NAME(qn_conv_dw_block)(const QnConvDw *d, const float *x, const float *dy, float *sums,
                                   int64_t unit, float *scratch)
{
    const QnConvPass *p = &d->pass;
    int64_t block = unit % d->n_blocks, group = unit / d->n_blocks % p->groups;
    int64_t split = unit / d->n_blocks / p->groups;
    int64_t first = block * d->block_panels, last = QN_MIN(first + d->block_panels, d->n_panels);
    bool by_rows = by_rows_of(d);
    float *columns = scratch, *in = columns + (by_rows ? align(qn_band_padded_size(p))
                                                       : align(band_pixels(p) * NR) + align(p->c));
    float *rows = in + (p->in_plain ? align(p->band_in * qn_conv_inner(p, true) * p->c) : 0);
    int64_t inner = qn_conv_inner(p, false), n_columns = qn_conv_taps(p) * p->c;
    sums += (split * p->groups + group) * d->n_panels * p->m * NR;
    memset(sums + first * p->m * NR, 0, (size_t)((last - first) * p->m * NR) * sizeof *sums);
    for (int64_t i = split * p->n / d->n_splits; i < (split + 1) * p->n / d->n_splits; i++) {
        for (int64_t k = 0; k < p->n_bands; k++) {
            QnBand b = qn_band_of(p, k);
            int64_t step, pixels = (b.end - b.begin) * inner;
            Columns g = { p, NULL, 0, b.begin, b.end };
            const float *a = qn_band_rows(dy, p->out_plain, i, p->axis[p->first].out, inner,
                                          p->groups, group, p->m, b.begin, b.end, rows, &step) +
                             b.begin * inner * (p->out_plain ? p->m : p->groups * p->m);
            g.x = qn_band_rows(x, p->in_plain, i, p->axis[p->first].in, qn_conv_inner(p, true),
                               p->groups, group, p->c, b.in_lo, b.in_hi, in, &g.step);
            if (by_rows) {
                qn_band_pad(p, &b, g.x, columns);
                QN_ISA_NAME(qn_conv_dw_rows)(p, &b, columns, a, step, sums);
                continue;
            }
            Ahead next = next_band(d, a, &g, pixels, step);
            for (int64_t j = first; j < last; j++) {
                int64_t left = QN_MIN((int64_t)NR, n_columns - j * NR);
                gather_panel(&g, j, columns);
                multiply(p->m, (int)((left + VW - 1) / VW), pixels, a, step, columns,
                         sums + j * p->m * NR, next);
                next.dy += tiles_of(p->m) * pixels * next.dy_step;
                next.x += tiles_of(p->m) * pixels * next.x_step;
            }
        }
    }
}

void QN_ISA_NAME(qn_conv_dw_finish)(const QnConvDw *d, const float *sums, float *dw, int64_t unit)
{
    const QnConvPass *p = &d->pass;
    int64_t group = unit / d->n_panels, panel = unit % d->n_panels, taps = qn_conv_taps(p);
    int64_t n = QN_MIN((int64_t)NR, taps * p->c - panel * NR);
    int64_t split_step = p->groups * d->n_panels * p->m * NR;
    bool by_rows = by_rows_of(d); /* of one group, so that units are panels */
    if (!by_rows)
        sums += unit * p->m * NR;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < n; j++) {
            int64_t column = panel * NR + j, c = column % p->c, t = column / p->c;
            float s = 0;
            for (int64_t k = 0; k < d->n_splits; k++)
                s += sums[k * split_step + (by_rows ? column * p->m + i : i * NR + j)];
            dw[((group * p->m + i) * p->c + c) * taps + t] = s;
        }
    }
}

/* Convolution as a product whose left operand is gathered by pointers: a register tile of ROWS
 * pixels by VECS vectors of output channels walks the taps, and for each the channels of ROWS input
 * pixels. */
#include "backend/cpu/isa/conv_band.h"

#include <string.h>

/* Where a vector register is wide, tiles of few rows by many columns: a pointer a row stays in a
 * register, and a vector of weights is read for several of them. */
#if defined(__AVX512F__)
enum { ROWS = 6 };
#else
enum { ROWS = MR };
#endif
enum { VECS = QN_CONV_VECS, COLUMNS = QN_CONV_COLUMNS, MOST_ROWS = MR };
enum { BLOCK = 96 / ROWS }; /* tiles that share a panel of weights while it is in the cache */

/* Few output channels leave registers for more rows. */
QN_INLINE int rows_of(const QnConvPass *p)
{
    return p->m <= 2 * VW ? MOST_ROWS : ROWS;
}

typedef struct Tile {
    int n_rows, n_taps;
    int64_t c; /* channels of a tap */
    float *out[MOST_ROWS];
    int32_t *tap;       /* taps that at least one pixel has */
    const float **rows; /* [n_taps][MOST_ROWS] */
    float *own;         /* of a dense pass: the rows themselves */
    bool past;          /* rows of out are whole cache lines, and too many for the caches */
} Tile;

/* Scratch of a worker, cut up. */
typedef struct Room {
    float *zeros, *in, *out, *padded;
    Tile tile[BLOCK];
} Room;

static int64_t align(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static int64_t conv_scratch(const QnConvPass *p)
{
    int64_t taps = qn_conv_taps(p), n = align(p->c);
    n += p->in_plain ? align(p->band_in * qn_conv_inner(p, true) * p->c) : 0;
    n += p->out_plain ? align(p->band * qn_conv_inner(p, false) * p->m) : 0;
    n += align(qn_band_padded_size(p));
    n += qn_band_is_dense(p) ? BLOCK * align(MOST_ROWS * taps * p->c) : 0;
    return n + BLOCK * (align(taps) + align(taps * MOST_ROWS * (int64_t)(sizeof(void *) / 4)));
}

static Room room_of(const QnConvPass *p, float *at)
{
    Room r = { .zeros = at };
    int64_t taps = qn_conv_taps(p);
    at += align(p->c);
    r.in = at;
    at += p->in_plain ? align(p->band_in * qn_conv_inner(p, true) * p->c) : 0;
    r.out = at;
    at += p->out_plain ? align(p->band * qn_conv_inner(p, false) * p->m) : 0;
    r.padded = at;
    at += align(qn_band_padded_size(p));
    for (int i = 0; i < BLOCK; i++) {
        r.tile[i].tap = (int32_t *)(void *)at;
        at += align(taps);
        r.tile[i].rows = (const float **)(void *)at;
        at += align(taps * MOST_ROWS * (int64_t)(sizeof(void *) / 4));
        r.tile[i].own = at;
        at += qn_band_is_dense(p) ? align(MOST_ROWS * taps * p->c) : 0;
    }
    memset(r.zeros, 0, (size_t)p->c * sizeof(float));
    return r;
}

static void conv_pack(const QnConvPass *p, const float *w, const float *bias, float *packed,
                      int64_t unit)
{
    int64_t panels = (p->m + COLUMNS - 1) / COLUMNS, group = unit / panels,
            j0 = unit % panels * COLUMNS;
    int64_t taps = qn_conv_taps(p), n = QN_MIN((int64_t)COLUMNS, p->m - j0);
    float *to = packed + unit * qn_conv_panel(p, COLUMNS);
    memset(to, 0, (size_t)qn_conv_panel(p, COLUMNS) * sizeof *to);
    w += group * p->wg + j0 * p->wm;
    for (int64_t c = 0; c < p->c; c++) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t t = 0; t < taps; t++)
                to[(t * p->c + c) * COLUMNS + j] = w[c * p->wc + j * p->wm + t];
        }
    }
    to += taps * p->c * COLUMNS;
    for (int64_t j = 0; bias && j < n; j++)
        to[j] = bias[group * p->m + j0 + j];
}

/* ---- the register tile ---- */

/* One tap: its channels q0..q1 of mr rows by nv vectors of weights. */
QN_INLINE void add_channels(int mr, int nv, int64_t q0, int64_t q1, const float *const *x,
                            const float *w, QnVec s[MOST_ROWS][VECS])
{
    w += q0 * COLUMNS;
    for (int64_t q = q0; q < q1; q++, w += COLUMNS) {
        QnVec y[VECS];
        QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(w + j * VW);
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QnVec a = qn_vec_set(x[i][q]);
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += a * y[j];
        }
    }
}

/* next: rows of a tile of one tap that are called for meanwhile, or NULL. */
QN_INLINE void gather(int mr, int nv, const Tile *t, const float *b, const float *bias, int64_t at,
                      int64_t columns, const float *const *next)
{
    enum { LINE = 16 };
    const int64_t c = t->c;
    QnVec s[MOST_ROWS][VECS];
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] = qn_vec_load(bias + j * VW);
    }
    for (int64_t q = 0; next && q < c; q += LINE) {
        QN_UNROLL for (int i = 0; i < mr; i++) qn_prefetch(next[i] + q);
        add_channels(mr, nv, q, QN_MIN(q + LINE, c), t->rows, b + t->tap[0] * c * COLUMNS, s);
    }
    for (int k = next ? 1 : 0; k < t->n_taps; k++)
        add_channels(mr, nv, 0, c, t->rows + k * MOST_ROWS, b + t->tap[k] * c * COLUMNS, s);
    if (columns == nv * VW && t->past) {
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QN_UNROLL for (int j = 0; j < nv; j++) if (i < t->n_rows)
                qn_vec_stream(t->out[i] + at + j * VW, s[i][j]);
        }
        return;
    }
    if (columns == nv * VW) {
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QN_UNROLL for (int j = 0; j < nv; j++) if (i < t->n_rows)
                qn_vec_store(t->out[i] + at + j * VW, s[i][j]);
        }
        return;
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) if (i < t->n_rows) qn_vec_store_lanes(
            t->out[i] + at + j * VW, s[i][j], QN_MIN(columns - j * VW, (int64_t)VW));
    }
}

typedef void GatherFn(const Tile *t, const float *b, const float *bias, int64_t at, int64_t columns,
                      const float *const *next);

#define GATHER(m, v)                                                                               \
    static void gather_##m##_##v(const Tile *t, const float *b, const float *bias, int64_t at,     \
                                 int64_t columns, const float *const *next)                        \
    {                                                                                              \
        gather(QN_MIN(m, v <= 2 ? MOST_ROWS : ROWS), QN_MIN(v, VECS), t, b, bias, at, columns,     \
               next);                                                                              \
    }
GATHER(2, 1)
GATHER(2, 2)
GATHER(2, 3)
GATHER(2, 4)
GATHER(4, 1)
GATHER(4, 2)
GATHER(4, 3)
GATHER(4, 4)
GATHER(8, 1)
GATHER(8, 2)
GATHER(8, 3)
GATHER(8, 4)
GATHER(12, 1)
GATHER(12, 2)
GATHER(12, 3)
GATHER(12, 4)

static GatherFn *const gathers[][4] = {
    { gather_2_1, gather_2_2, gather_2_3, gather_2_4 },
    { gather_4_1, gather_4_2, gather_4_3, gather_4_4 },
    { gather_8_1, gather_8_2, gather_8_3, gather_8_4 },
    { gather_12_1, gather_12_2, gather_12_3, gather_12_4 },
};

static GatherFn *gather_for(int rows, int nv)
{
    return gathers[rows <= 2 ? 0 : rows <= 4 ? 1 : rows <= 8 ? 2 : 3][nv - 1];
}

/* ---- a band ---- */

typedef struct BandRun {
    const QnConvPass *p;
    const float *x, *packed; /* of the group */
    float *y;                /* of the band */
    int64_t x_step, y_step, y_first;
    Room *room;
    int n_tiles;
    int64_t pixel[MOST_ROWS][3];
    int n_pixels;
    bool past;
} BandRun;

static void run_block(BandRun *r)
{
    const QnConvPass *p = r->p;
    int64_t panel = qn_conv_panel(p, COLUMNS);
    for (int64_t j = 0; j < p->m; j += COLUMNS) {
        const float *b = r->packed + j / COLUMNS * panel;
        int64_t columns = QN_MIN((int64_t)COLUMNS, p->m - j);
        int nv = (int)((columns + VW - 1) / VW);
        for (int i = 0; i < r->n_tiles; i++) {
            const Tile *t = &r->room->tile[i];
            bool more = !j && i + 1 < r->n_tiles && t->n_taps == 1 && t[1].n_taps == 1;
            gather_for(t->n_rows, nv)(t, b, b + panel - COLUMNS, j, columns,
                                      more ? t[1].rows : NULL);
        }
    }
    r->n_tiles = 0;
}

/* The input pixels of tap t for the collected output pixels; false: it has none. */
static bool find_rows(const BandRun *r, int64_t t, const float **rows)
{
    const QnConvAxis *a = r->p->axis;
    int64_t t2 = t % a[2].k, t1 = t / a[2].k % a[1].k, t0 = t / a[2].k / a[1].k;
    bool any = false;
    for (int i = 0; i < r->n_pixels; i++) {
        const int64_t *o = r->pixel[i];
        int64_t e = a[0].from[o[0] * a[0].k + t0], f = a[1].from[o[1] * a[1].k + t1];
        int64_t g = a[2].from[o[2] * a[2].k + t2];
        bool inside = (e | f | g) >= 0;
        rows[i] = inside ? r->x + ((e * a[1].in + f) * a[2].in + g) * r->x_step : r->room->zeros;
        any |= inside;
    }
    for (int i = r->n_pixels; any && i < MOST_ROWS; i++)
        rows[i] = r->room->zeros;
    return any;
}

/* One tap of all that the collected pixels read. */
static void fill_dense(const BandRun *r, Tile *t)
{
    const QnConvPass *p = r->p;
    t->c = qn_conv_taps(p) * p->c;
    t->n_taps = 1;
    t->tap[0] = 0;
    for (int i = 0; i < r->n_pixels; i++)
        qn_band_gather(p, r->x, r->x_step, r->pixel[i], t->own + i * t->c);
    for (int i = 0; i < MOST_ROWS; i++) /* what a tile has too many is read and not stored */
        t->rows[i] = t->own + (i < r->n_pixels ? i : 0) * t->c;
}

static void fill_sparse(const BandRun *r, Tile *t)
{
    t->c = r->p->c;
    t->n_taps = 0;
    for (int64_t k = 0, taps = qn_conv_taps(r->p); k < taps; k++) {
        t->tap[t->n_taps] = (int32_t)k;
        t->n_taps += find_rows(r, k, t->rows + (int64_t)t->n_taps * MOST_ROWS);
    }
}

static void end_tile(BandRun *r)
{
    if (!r->n_pixels)
        return;
    const QnConvAxis *a = r->p->axis;
    Tile *t = &r->room->tile[r->n_tiles++];
    t->n_rows = r->n_pixels;
    t->past = r->past;
    if (qn_band_is_dense(r->p))
        fill_dense(r, t);
    else
        fill_sparse(r, t);
    for (int i = 0; i < r->n_pixels; i++) {
        const int64_t *o = r->pixel[i];
        int64_t pixel = (o[0] * a[1].out + o[1]) * a[2].out + o[2] - r->y_first;
        t->out[i] = r->y + pixel * r->y_step;
    }
    r->n_pixels = 0;
    if (r->n_tiles == BLOCK)
        run_block(r);
}

/* All pixels of the band of one phase, tile by tile. */
static void run_phase(BandRun *r, const QnBand *b, const int64_t *phase)
{
    const QnConvPass *p = r->p;
    const int rows = rows_of(p);
    int64_t lo[3] = { 0 }, hi[3];
    for (int d = 0; d < 3; d++)
        hi[d] = p->axis[d].out;
    lo[p->first] = b->begin;
    hi[p->first] = b->end;
    for (int d = 0; d < 3; d++)
        lo[d] += ((phase[d] - lo[d]) % p->axis[d].phase + p->axis[d].phase) % p->axis[d].phase;
    for (int64_t o0 = lo[0]; o0 < hi[0]; o0 += p->axis[0].phase) {
        for (int64_t o1 = lo[1]; o1 < hi[1]; o1 += p->axis[1].phase) {
            for (int64_t o2 = lo[2]; o2 < hi[2]; o2 += p->axis[2].phase) {
                int64_t *to = r->pixel[r->n_pixels++];
                to[0] = o0;
                to[1] = o1;
                to[2] = o2;
                if (r->n_pixels == rows)
                    end_tile(r);
            }
        }
    }
    end_tile(r);
}

static void run_phases(BandRun *r, const QnBand *b)
{
    const QnConvAxis *a = r->p->axis;
    int64_t ph[3];
    for (ph[0] = 0; ph[0] < a[0].phase; ph[0]++) {
        for (ph[1] = 0; ph[1] < a[1].phase; ph[1]++) {
            for (ph[2] = 0; ph[2] < a[2].phase; ph[2]++)
                run_phase(r, b, ph);
        }
    }
    run_block(r);
}

static void run_group(const QnConvPass *p, const float *x, const float *packed, float *y,
                      int64_t image, int64_t group, const QnBand *b, Room *room)
{
    BandRun r = { .p = p, .room = room };
    int64_t inner = qn_conv_inner(p, false), rows = p->axis[p->first].out;
    int64_t panels = (p->m + COLUMNS - 1) / COLUMNS, all = p->groups * p->m;
    r.x = qn_band_rows(x, p->in_plain, image, p->axis[p->first].in, qn_conv_inner(p, true),
                       p->groups, group, p->c, b->in_lo, b->in_hi, room->in, &r.x_step);
    r.packed = packed + group * panels * qn_conv_panel(p, COLUMNS);
    r.y = p->out_plain ? room->out : y + image * rows * inner * all + group * p->m;
    r.y_step = p->out_plain ? p->m : all;
    r.y_first = p->out_plain ? b->begin * inner : 0;
    r.past = p->past_caches && (uintptr_t)r.y % 64 == 0;
    if (qn_band_is_padded(p)) {
        qn_band_pad(p, b, r.x, room->padded);
        float *first = r.y + (b->begin * inner - r.y_first) * r.y_step;
        QN_ISA_NAME(qn_conv_rows)(p, b, room->padded, r.packed, first, r.y_step, r.past);
    } else {
        run_phases(&r, b);
    }
    if (p->out_plain)
        qn_turn(room->out, p->m, (b->end - b->begin) * inner, p->m,
                y + (image * all + group * p->m) * rows * inner + b->begin * inner, rows * inner);
}

static void conv_band(const QnConvPass *p, const float *x, const float *packed, float *y,
                      int64_t unit, float *scratch)
{
    Room room = room_of(p, scratch);
    QnBand b = qn_band_of(p, unit % p->n_bands);
    for (int64_t g = 0; g < p->groups; g++)
        run_group(p, x, packed, y, unit / p->n_bands, g, &b, &room);
    qn_store_fence();
}

int64_t QN_ISA_NAME(qn_conv_dw_scratch)(const QnConvDw *d);
void QN_ISA_NAME(qn_conv_dw_block)(const QnConvDw *d, const float *x, const float *dy, float *sums,
                                   int64_t unit, float *scratch);
void QN_ISA_NAME(qn_conv_dw_finish)(const QnConvDw *d, const float *sums, float *dw, int64_t unit);

const QnConvFns QN_ISA_NAME(qn_conv_fns) = {
    .nr = COLUMNS,
    .dw_nr = NR,
    .scratch = conv_scratch,
    .pack = conv_pack,
    .band = conv_band,
    .dw_scratch = QN_ISA_NAME(qn_conv_dw_scratch),
    .dw_block = QN_ISA_NAME(qn_conv_dw_block),
    .dw_finish = QN_ISA_NAME(qn_conv_dw_finish),
};

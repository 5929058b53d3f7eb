/* A block of a matrix product from packed panels: register tiles of MR rows and NR columns, K block
 * by K block. Between K blocks the sums lie in an array of the block's own, tile by tile, since
 * rows of c a power of two apart would fight over few sets of the caches.
 *
 * What a step along k is belongs to the includer, which defines what is declared first. A packed
 * step is one float wide for each row and column, whatever lies in it; k0, k1 and the k of what
 * follows count packed steps. */
#ifndef QN_BACKEND_CPU_ISA_GEMM_BLOCKS_H
#define QN_BACKEND_CPU_ISA_GEMM_BLOCKS_H

#include "backend/cpu/gemm.h"
#include "backend/cpu/isa/gemm_pack.h"

#include <string.h>

/* ---- the includer's ---- */

static int64_t gemm_steps(const QnGemm *g); /* packed ones of k */
QN_INLINE QnVec gemm_add(QnVec sum, float a, QnVec b);
/* Rows m0..m1 of a, or columns n0..n1 of b, as panels of MR rows or NR columns. past: past the
 * caches. */
static void gemm_pack_rows(const QnGemm *g, int64_t m0, int64_t m1, int64_t k0, int64_t k1,
                           float *to);
static void gemm_pack_columns(const QnGemm *g, int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                              float *to, bool past);

/* ---- the register tile ---- */

/* Where a tile's sums come from and go to; the steps are between rows. */
typedef struct Sums {
    const float *from; /* NULL: zeros */
    float *to;
    int64_t from_step, to_step;
} Sums;

/* What the second-level cache is to have next, called for by a few bytes a step. */
typedef struct Ahead {
    const char *at;
    int64_t step;
} Ahead;

/* to[i][j] = from[i][j] + sum over k of a[k][i] * b[k][j]: mr x nv vectors in registers. */
QN_INLINE void tile(int mr, int nv, int64_t k, const float *a, const float *b, const Sums *c,
                    Ahead next)
{
    QnVec s[MR][NV];
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] = qn_vec_set(0);
    }
    for (int i = 0; c->from && i < mr; i++) {
        for (int j = 0; j < nv; j++)
            qn_prefetch(c->from + i * c->from_step + j * VW);
    }
    for (int64_t t = 0; t < k; t++, a += MR, b += NR, next.at += next.step) {
        QnVec y[NV];
        qn_prefetch_far(next.at);
        QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(b + j * VW);
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] = gemm_add(s[i][j], a[i], y[j]);
        }
    }
    if (c->from) {
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] +=
                qn_vec_load(c->from + i * c->from_step + j * VW);
        }
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++)
            qn_vec_store(c->to + i * c->to_step + j * VW, s[i][j]);
    }
}

typedef void TileFn(int64_t k, const float *a, const float *b, const Sums *c, Ahead next);

#define TILE(m, v)                                                                                 \
    static void tile_##m##_##v(int64_t k, const float *a, const float *b, const Sums *c,           \
                               Ahead next)                                                         \
    {                                                                                              \
        tile(QN_MIN(m, MR), QN_MIN(v, NV), k, a, b, c, next);                                      \
    }
TILE(1, 1)
TILE(1, 2)
TILE(1, 3)
TILE(2, 1)
TILE(2, 2)
TILE(2, 3)
TILE(4, 1)
TILE(4, 2)
TILE(4, 3)
TILE(6, 1)
TILE(6, 2)
TILE(6, 3)
TILE(8, 1)
TILE(8, 2)
TILE(8, 3)
TILE(12, 1)
TILE(12, 2)
TILE(12, 3)

static TileFn *const tiles[][3] = {
    { tile_1_1, tile_1_2, tile_1_3 }, { tile_2_1, tile_2_2, tile_2_3 },
    { tile_4_1, tile_4_2, tile_4_3 }, { tile_6_1, tile_6_2, tile_6_3 },
    { tile_8_1, tile_8_2, tile_8_3 }, { tile_12_1, tile_12_2, tile_12_3 },
};
static const int tile_rows[] = { 1, 2, 4, 6, 8, 12 };

/* The smallest tile with at least m rows. */
static int tile_for(int64_t m)
{
    int i = 0;
    while (tile_rows[i] < m)
        i++;
    return i;
}

/* ---- blocks ---- */

/* Rows m0..m1 and columns n0..n1 of c, and the array of sums between K blocks. */
typedef struct Block {
    const QnGemm *g;
    int64_t m0, m1, n0, n1;
    float *own; /* tile by tile, MR x NR each */
} Block;

/* What a K block adds. */
typedef struct Slice {
    int64_t k;
    const float *a, *b;
    const float *next_b; /* the next K block's panels; NULL: there is nothing to call for */
    int64_t ahead;       /* bytes that a tile calls for a step */
    bool first, last;
} Slice;

/* While the tiles of a panel of b run, the next panel is called for, a share by each tile. */
QN_INLINE Ahead ahead_of(const Block *c, const Slice *s, int64_t i0, int64_t j0)
{
    bool more = c->n0 + j0 + NR < c->n1;
    const float *next = more ? s->b + (j0 + NR) * s->k : s->next_b;
    if (!s->next_b)
        return (Ahead){ (const char *)s->b, 0 };
    return (Ahead){ (const char *)next + i0 / MR * s->k * s->ahead, s->ahead };
}

static void bias_tile(const Block *c, int64_t i0, int64_t j0, int64_t rows, int64_t cols, float *to)
{
    const QnGemm *g = c->g;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (c->m0 + i0 + i) * g->bias_m + (c->n0 + j0) * g->bias_n;
        for (int64_t j = 0; j < cols; j++)
            to[i * NR + j] = qn_gemm_load(g->dtype, g->bias, at + j * g->bias_n);
    }
}

/* The sums of c that a first K block begins with, in the tile's place among the own ones; false:
 * none. */
static bool begin_tile(const Block *c, int64_t i0, int64_t j0, int64_t rows, int64_t cols,
                       float *own)
{
    const QnGemm *g = c->g;
    if (g->bias)
        bias_tile(c, i0, j0, rows, cols, own);
    const float *from = (const float *)g->c + (c->m0 + i0) * g->cm + c->n0 + j0;
    for (int64_t i = 0; g->accumulate && i < rows; i++)
        memcpy(own + i * NR, from + i * g->cm, (size_t)cols * sizeof *own);
    return g->bias || g->accumulate;
}

static void end_tile(const Block *c, int64_t i0, int64_t j0, int64_t rows, int64_t cols,
                     const float *own)
{
    const QnGemm *g = c->g;
    int64_t at = (c->m0 + i0) * g->cm + c->n0 + j0;
    for (int64_t i = 0; i < rows; i++, at += g->cm) {
        if (g->dtype == QN_DTYPE_F32)
            memcpy((float *)g->c + at, own + i * NR, (size_t)cols * sizeof *own);
        else
            qn_dtype_from_f32(g->dtype, own + i * NR, (uint16_t *)g->c + at, cols);
    }
}

/* The tile at row i0 and column j0 of the block; its sums go straight to c where they can. */
QN_INLINE void add_tile(const Block *c, const Slice *s, int64_t i0, int64_t j0, float *own)
{
    const QnGemm *g = c->g;
    int64_t rows = QN_MIN((int64_t)MR, c->m1 - c->m0 - i0);
    int64_t cols = QN_MIN((int64_t)NR, c->n1 - c->n0 - j0);
    int nv = (int)((cols + VW - 1) / VW), f = tile_for(rows);
    bool direct = s->last && g->dtype == QN_DTYPE_F32 && rows == tile_rows[f] && cols == nv * VW;
    Sums sums = { own, own, NR, NR };
    if (s->first && !begin_tile(c, i0, j0, rows, cols, own))
        sums.from = NULL;
    if (direct) {
        sums.to = (float *)g->c + (c->m0 + i0) * g->cm + c->n0 + j0;
        sums.to_step = g->cm;
    }
    tiles[f][nv - 1](s->k, s->a + i0 * s->k, s->b + j0 * s->k, &sums, ahead_of(c, s, i0, j0));
    if (s->last && !direct)
        end_tile(c, i0, j0, rows, cols, own);
}

static void add_slice(const Block *c, Slice *s)
{
    int64_t at = 0, sharers = (c->m1 - c->m0 + MR - 1) / MR;
    s->ahead = NR * (int64_t)sizeof(float) / QN_MAX(sharers, 1);
    for (int64_t j = 0; j < c->n1 - c->n0; j += NR) {
        for (int64_t i = 0; i < c->m1 - c->m0; i += MR) {
            add_tile(c, s, i, j, c->own + at);
            at += s->first && s->last ? 0 : MR * NR; /* nothing is kept of a single K block */
        }
    }
}

static void gemm_block(const QnGemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                       float *scratch)
{
    float *a = scratch, *b = a + (QN_GEMM_M + MR) * QN_GEMM_K;
    Block c = { g, m0, m1, n0, n1, scratch + QN_GEMM_SCRATCH - QN_GEMM_OWN };
    int64_t k0 = 0, k = gemm_steps(g);
    do {
        int64_t k1 = QN_MIN(k0 + QN_GEMM_K, k);
        Slice s = { .k = k1 - k0, .a = a, .b = b, .first = k0 == 0, .last = k1 == k };
        gemm_pack_rows(g, m0, m1, k0, k1, a);
        gemm_pack_columns(g, n0, n1, k0, k1, b, false);
        add_slice(&c, &s);
        k0 = k1;
    } while (k0 < k);
}

static float *panel(const QnGemmPanels *p, int64_t k0, int64_t k1, int64_t column)
{
    return p->b + k0 * p->n + (column - p->n0) * (k1 - k0);
}

static void gemm_pack(const QnGemm *g, const QnGemmPanels *p, int64_t n0, int64_t n1)
{
    for (int64_t k0 = 0, k = gemm_steps(g); k0 < k; k0 += QN_GEMM_K) {
        int64_t k1 = QN_MIN(k0 + QN_GEMM_K, k);
        gemm_pack_columns(g, n0, n1, k0, k1, panel(p, k0, k1, n0), p->past_caches);
    }
}

static void gemm_panels(const QnGemm *g, const QnGemmPanels *p, int64_t m0, int64_t m1, int64_t n0,
                        int64_t n1, float *scratch)
{
    int64_t k0 = 0, k = gemm_steps(g);
    Block c = { g, m0, m1, n0, n1, scratch + (QN_GEMM_TALL + 8) * QN_MIN(k, QN_GEMM_K) };
    do {
        int64_t k1 = QN_MIN(k0 + QN_GEMM_K, k), k2 = QN_MIN(k1 + QN_GEMM_K, k);
        Slice s = { .k = k1 - k0, .a = scratch, .first = k0 == 0, .last = k1 == k };
        s.b = panel(p, k0, k1, n0);
        s.next_b = panel(p, s.last ? 0 : k1, s.last ? QN_MIN(k, QN_GEMM_K) : k2, n0);
        gemm_pack_rows(g, m0, m1, k0, k1, scratch);
        add_slice(&c, &s);
        k0 = k1;
    } while (k0 < k);
}

#endif

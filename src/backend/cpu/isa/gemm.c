/* A block of a matrix product. Operands are packed into panels of MR rows and NR columns, which
 * the register tile then walks with unit steps; packing also converts to f32 and fills up with
 * zeros, so that the tile knows neither types nor edges. */
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa/simd.h"
#include "base/half.h"

#include <string.h>

/* ---- packing ---- */

QN_INLINE float load(QnDtype d, const void *p, int64_t i)
{
    switch (d) {
    case QN_DTYPE_F16: return qn_f16_to_f32(((const uint16_t *)p)[i]);
    case QN_DTYPE_BF16: return qn_bf16_to_f32(((const uint16_t *)p)[i]);
    default: return ((const float *)p)[i];
    }
}

/* to[j][i] = x[i * si + j * sj] for i < n (zero up to width) and j < k, as one panel. */
QN_INLINE void pack_panel(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                          int64_t width, int64_t k, float *to)
{
    if (n < width)
        memset(to, 0, (size_t)(width * k) * sizeof *to);
    if (si == 1 && n == width) {
        for (int64_t j = 0; j < k; j++) {
            for (int64_t i = 0; i < width; i++)
                to[j * width + i] = load(d, x, at + i + j * sj);
        }
    } else if (si == 1) {
        for (int64_t j = 0; j < k; j++) {
            for (int64_t i = 0; i < n; i++)
                to[j * width + i] = load(d, x, at + i + j * sj);
        }
    } else if (sj == 1 && d == QN_DTYPE_F32) {
        qn_turn((const float *)x + at, si, n, k, to, width);
    } else {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < k; j++)
                to[j * width + i] = load(d, x, at + i * si + j * sj);
        }
    }
}

QN_INLINE void pack_typed(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                          int64_t width, int64_t k, float *to)
{
    for (int64_t i = 0; i < n; i += width)
        pack_panel(d, x, at + i * si, si, sj, QN_MIN(width, n - i), width, k, to + i * k);
}

static void pack_rows(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                      int64_t k, float *to)
{
    if (d == QN_DTYPE_F32)
        pack_typed(QN_DTYPE_F32, x, at, si, sj, n, MR, k, to);
    else if (d == QN_DTYPE_F16)
        pack_typed(QN_DTYPE_F16, x, at, si, sj, n, MR, k, to);
    else
        pack_typed(QN_DTYPE_BF16, x, at, si, sj, n, MR, k, to);
}

static void pack_columns(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                         int64_t k, float *to)
{
    if (d == QN_DTYPE_F32)
        pack_typed(QN_DTYPE_F32, x, at, si, sj, n, NR, k, to);
    else if (d == QN_DTYPE_F16)
        pack_typed(QN_DTYPE_F16, x, at, si, sj, n, NR, k, to);
    else
        pack_typed(QN_DTYPE_BF16, x, at, si, sj, n, NR, k, to);
}

/* ---- the register tile ---- */

/* c[i][j] (+)= sum over k of a[k][i] * b[k][j]: mr x nv vectors in registers. */
QN_INLINE void tile(int mr, int nv, int64_t k, const float *a, const float *b, float *c, int64_t cm,
                    bool add)
{
    QnVec s[MR][NV];
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] =
            add ? qn_vec_load(c + i * cm + j * VW) : qn_vec_set(0);
    }
    for (int64_t t = 0; t < k; t++, a += MR, b += NR) {
        QnVec y[NV];
        QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(b + j * VW);
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QnVec x = qn_vec_set(a[i]);
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += x * y[j];
        }
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_store(c + i * cm + j * VW, s[i][j]);
    }
}

typedef void TileFn(int64_t k, const float *a, const float *b, float *c, int64_t cm, bool add);

#define TILE(m, v)                                                                                 \
    static void tile_##m##_##v(int64_t k, const float *a, const float *b, float *c, int64_t cm,    \
                               bool add)                                                           \
    {                                                                                              \
        tile(QN_MIN(m, MR), QN_MIN(v, NV), k, a, b, c, cm, add);                                   \
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

/* One tile whose rows or columns stick out of c: through a buffer. */
static void edge(TileFn *fn, int64_t k, const float *a, const float *b, float *c, int64_t cm,
                 int64_t m, int64_t n, bool add)
{
    QN_ALIGNED(64) float t[MR * NR] = { 0 };
    for (int64_t i = 0; add && i < m; i++)
        memcpy(t + i * NR, c + i * cm, (size_t)n * sizeof *t);
    fn(k, a, b, t, NR, add);
    for (int64_t i = 0; i < m; i++)
        memcpy(c + i * cm, t + i * NR, (size_t)n * sizeof *t);
}

static void block(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c,
                  int64_t cm, bool add)
{
    for (int64_t j = 0; j < n; j += NR) {
        int64_t cols = QN_MIN((int64_t)NR, n - j);
        int nv = (int)((cols + VW - 1) / VW);
        for (int64_t i = 0; i < m; i += MR) {
            int64_t rows = QN_MIN((int64_t)MR, m - i);
            int f = tile_for(rows);
            bool fits = rows == tile_rows[f] && cols == nv * VW;
            float *to = c + i * cm + j;
            if (fits)
                tiles[f][nv - 1](k, a + i * k, b + j * k, to, cm, add);
            else
                edge(tiles[f][nv - 1], k, a + i * k, b + j * k, to, cm, rows, cols, add);
        }
    }
}

/* ---- the block of c ---- */

static void start(const QnGemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1, float *c,
                  int64_t cm)
{
    for (int64_t i = m0; i < m1; i++, c += cm) {
        int64_t at = i * g->bias_m + n0 * g->bias_n;
        for (int64_t j = 0; j < n1 - n0; j++)
            c[j] = g->bias ? load(g->dtype, g->bias, at + j * g->bias_n) : 0;
    }
}

static void finish(const QnGemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1, const float *c,
                   int64_t cm)
{
    for (int64_t i = m0; i < m1; i++, c += cm)
        qn_dtype_from_f32(g->dtype, c, (uint16_t *)g->c + i * g->cm + n0, n1 - n0);
}

QnGemmFn QN_ISA_NAME(qn_gemm);

void QN_ISA_NAME(qn_gemm)(const QnGemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                          float *scratch)
{
    float *a = scratch, *b = a + (QN_GEMM_M + MR) * QN_GEMM_K,
          *own = scratch + QN_GEMM_SCRATCH - QN_GEMM_M * QN_GEMM_N;
    bool direct = g->dtype == QN_DTYPE_F32;
    float *c = direct ? (float *)g->c + m0 * g->cm + n0 : own;
    int64_t cm = direct ? g->cm : QN_GEMM_N;
    bool add = g->bias || g->k == 0 || g->accumulate;
    if (add && !g->accumulate)
        start(g, m0, m1, n0, n1, c, cm);
    for (int64_t k0 = 0; k0 < g->k; k0 += QN_GEMM_K) {
        int64_t k = QN_MIN((int64_t)QN_GEMM_K, g->k - k0);
        pack_rows(g->dtype, g->a, m0 * g->am + k0 * g->ak, g->am, g->ak, m1 - m0, k, a);
        pack_columns(g->dtype, g->b, n0 * g->bn + k0 * g->bk, g->bn, g->bk, n1 - n0, k, b);
        block(m1 - m0, n1 - n0, k, a, b, c, cm, add);
        add = true;
    }
    if (!direct)
        finish(g, m0, m1, n0, n1, c, cm);
}

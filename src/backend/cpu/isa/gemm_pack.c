/* Operands of matrix products in panels of MR rows and NR columns, which the register tile walks
 * with unit steps. Packing also converts to f32 and fills up with zeros, so that the tile knows
 * neither types nor edges. */
#include "backend/cpu/isa/gemm_pack.h"

#include <string.h>

/* Widens a few steps of the rows at a time, then turns those. */
QN_INLINE void turn_widened(QnDtype d, const void *x, int64_t at, int64_t si, int64_t n,
                            int64_t width, int64_t k, float *to, bool past)
{
    enum { STEPS = 64, MOST = MR > (int)NR ? MR : (int)NR };
    QN_ALIGNED(64) float wide[MOST * STEPS];
    for (int64_t j0 = 0; j0 < k; j0 += STEPS) {
        int64_t steps = QN_MIN((int64_t)STEPS, k - j0);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < steps; j++)
                wide[i * STEPS + j] = qn_gemm_load(d, x, at + i * si + j0 + j);
        }
        qn_turn_to(wide, STEPS, n, steps, to + j0 * width, width, past);
    }
}

/* to[j][i] = x[i * si + j * sj] for i < n (zero up to width) and j < k, as one panel. */
QN_INLINE void pack_panel(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                          int64_t width, int64_t k, float *to, bool past)
{
    if (n < width)
        memset(to, 0, (size_t)(width * k) * sizeof *to);
    if (si == 1 && n == width && d == QN_DTYPE_F32 && past && width % VW == 0) {
        const float *from = (const float *)x + at;
        for (int64_t j = 0; j < k; j++, from += sj) {
            for (int64_t i = 0; i < width; i += VW)
                qn_vec_stream(to + j * width + i, qn_vec_load(from + i));
        }
    } else if (si == 1 && n == width) {
        for (int64_t j = 0; j < k; j++) {
            for (int64_t i = 0; i < width; i++)
                to[j * width + i] = qn_gemm_load(d, x, at + i + j * sj);
        }
    } else if (si == 1) {
        for (int64_t j = 0; j < k; j++) {
            for (int64_t i = 0; i < n; i++)
                to[j * width + i] = qn_gemm_load(d, x, at + i + j * sj);
        }
    } else if (sj == 1 && d == QN_DTYPE_F32) {
        qn_turn_to((const float *)x + at, si, n, k, to, width, past);
    } else if (sj == 1) {
        turn_widened(d, x, at, si, n, width, k, to, past);
    } else {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < k; j++)
                to[j * width + i] = qn_gemm_load(d, x, at + i * si + j * sj);
        }
    }
}

QN_INLINE void pack_typed(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                          int64_t width, int64_t k, float *to, bool past)
{
    for (int64_t i = 0; i < n; i += width)
        pack_panel(d, x, at + i * si, si, sj, QN_MIN(width, n - i), width, k, to + i * k, past);
}

QN_INLINE void pack(QnDtype d, const void *x, int64_t at, int64_t si, int64_t sj, int64_t n,
                    int64_t width, int64_t k, float *to, bool past)
{
    if (d == QN_DTYPE_F32)
        pack_typed(QN_DTYPE_F32, x, at, si, sj, n, width, k, to, past);
    else if (d == QN_DTYPE_F16)
        pack_typed(QN_DTYPE_F16, x, at, si, sj, n, width, k, to, past);
    else
        pack_typed(QN_DTYPE_BF16, x, at, si, sj, n, width, k, to, past);
}

void QN_ISA_NAME(qn_gemm_pack_rows)(const QnGemm *g, int64_t m0, int64_t m1, int64_t k0, int64_t k1,
                                    float *to)
{
    pack(g->dtype, g->a, m0 * g->am + k0 * g->ak, g->am, g->ak, m1 - m0, MR, k1 - k0, to, false);
}

void QN_ISA_NAME(qn_gemm_pack_columns)(const QnGemm *g, int64_t n0, int64_t n1, int64_t k0,
                                       int64_t k1, float *to, bool past)
{
    int64_t at = n0 * g->bn + k0 * g->bk;
    if (past) {
        pack(g->dtype, g->b, at, g->bn, g->bk, n1 - n0, NR, k1 - k0, to, true);
        qn_store_fence();
    } else {
        pack(g->dtype, g->b, at, g->bn, g->bk, n1 - n0, NR, k1 - k0, to, false);
    }
}

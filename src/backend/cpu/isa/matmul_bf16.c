/* Matrix products of bf16 by the instruction that adds two products to each f32 sum. A packed step
 * holds two steps of k, in 32 bits for each row or column: where k lies adjacent, as they lie. */
#include "backend/cpu/isa/simd.h"
#include "backend/cpu/matmul.h"

#if defined(__AVX512BF16__)
#include "backend/cpu/isa/gemm_blocks.h"

static int64_t gemm_steps(const QnGemm *g)
{
    return (g->k + 1) / 2;
}

QN_INLINE QnVec gemm_add(QnVec sum, float a, QnVec b)
{
    return (QnVec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(a), (__m512bh)b);
}

/* Of one operand: element (i, j) at i * step + j * k_step, one of which is 1. */
typedef struct Pairs {
    const uint16_t *at; /* of the first row or column and step asked for */
    int64_t step, k_step;
    int64_t k; /* steps of k from there on, up to the last one asked for */
} Pairs;

/* Rows or columns side by side: element i of a step to the low, of the next step to the high half
 * of lane i. */
QN_INLINE void pack_adjacent(const Pairs *x, int64_t n, int width, float *to, bool past)
{
    for (int64_t j = 0; j < x->k; j += 2, to += width) {
        const uint16_t *low = x->at + j * x->k_step, *high = low + x->k_step;
        QN_UNROLL for (int i = 0; i < width; i += VW)
        {
            int64_t lanes = QN_MAX(QN_MIN(n - i, VW), 0);
            __mmask16 some = (__mmask16)((1u << lanes) - 1), both = j + 1 < x->k ? some : 0;
            __m512i a = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, low + i));
            __m512i b = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(both, high + i));
            QnVec v = (QnVec)_mm512_or_si512(a, _mm512_slli_epi32(b, 16));
            if (past && width % VW == 0)
                qn_vec_stream(to + i, v);
            else
                qn_vec_store_lanes(to + i, v, QN_MIN(width - i, VW));
        }
    }
}

/* Each row's steps side by side, two being one number of 32 bits that is turned as it is; rows that
 * do not lie on such are copied, some steps at a time. */
QN_INLINE void pack_turned(const Pairs *x, int64_t n, int width, float *to, bool past)
{
    enum { SOME = 64, MOST = MR > (int)NR ? MR : (int)NR };
    QN_ALIGNED(64) float copy[MOST * SOME];
    int64_t pairs = x->k / 2;
    if (n < width)
        memset(to, 0, (size_t)(width * ((x->k + 1) / 2)) * sizeof *to);
    if (x->step % 2 == 0 && (uintptr_t)x->at % sizeof(float) == 0)
        qn_turn_to((const float *)(const void *)x->at, x->step / 2, n, pairs, to, width, past);
    else
        for (int64_t j = 0; j < pairs; j += SOME) {
            int64_t some = QN_MIN((int64_t)SOME, pairs - j);
            for (int64_t i = 0; i < n; i++)
                memcpy(copy + i * SOME, x->at + i * x->step + 2 * j, (size_t)some * sizeof *copy);
            qn_turn_to(copy, SOME, n, some, to + j * width, width, past);
        }
    for (int64_t i = 0; i < n && x->k % 2; i++) {
        const uint16_t last[2] = { x->at[i * x->step + x->k - 1], 0 };
        memcpy(to + pairs * width + i, last, sizeof last);
    }
}

QN_INLINE void pack_pairs(Pairs x, int64_t n, int width, float *to, bool past)
{
    int64_t step = (x.k + 1) / 2 * width;
    for (int64_t i = 0; i < n; i += width, x.at += width * x.step, to += step) {
        if (x.step == 1)
            pack_adjacent(&x, QN_MIN(width, n - i), width, to, past);
        else
            pack_turned(&x, QN_MIN(width, n - i), width, to, past);
    }
}

static void gemm_pack_rows(const QnGemm *g, int64_t m0, int64_t m1, int64_t k0, int64_t k1,
                           float *to)
{
    const uint16_t *a = (const uint16_t *)g->a + m0 * g->am + 2 * k0 * g->ak;
    pack_pairs((Pairs){ a, g->am, g->ak, QN_MIN(2 * k1, g->k) - 2 * k0 }, m1 - m0, MR, to, false);
}

static void gemm_pack_columns(const QnGemm *g, int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                              float *to, bool past)
{
    const uint16_t *b = (const uint16_t *)g->b + n0 * g->bn + 2 * k0 * g->bk;
    Pairs x = { b, g->bn, g->bk, QN_MIN(2 * k1, g->k) - 2 * k0 };
    if (past) {
        pack_pairs(x, n1 - n0, NR, to, true);
        qn_store_fence();
    } else {
        pack_pairs(x, n1 - n0, NR, to, false);
    }
}

const QnGemmFns QN_ISA_NAME(qn_matmul_bf16) = { gemm_block, gemm_pack, gemm_panels, MR, 2 };
#else
const QnGemmFns QN_ISA_NAME(qn_matmul_bf16) = { 0 };
#endif

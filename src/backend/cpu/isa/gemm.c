/* Matrix products in f32, to which packing (gemm_pack.c) widens the smaller types. */
#include "backend/cpu/isa/gemm_blocks.h"

static int64_t gemm_steps(const QnGemm *g)
{
    return g->k;
}

QN_INLINE QnVec gemm_add(QnVec sum, float a, QnVec b)
{
    return sum + qn_vec_set(a) * b;
}

static void gemm_pack_rows(const QnGemm *g, int64_t m0, int64_t m1, int64_t k0, int64_t k1,
                           float *to)
{
    QN_ISA_NAME(qn_gemm_pack_rows)(g, m0, m1, k0, k1, to);
}

static void gemm_pack_columns(const QnGemm *g, int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                              float *to, bool past)
{
    QN_ISA_NAME(qn_gemm_pack_columns)(g, n0, n1, k0, k1, to, past);
}

const QnGemmFns QN_ISA_NAME(qn_gemm) = { gemm_block, gemm_pack, gemm_panels, MR, 1 };

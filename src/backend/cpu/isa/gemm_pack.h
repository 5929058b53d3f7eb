/* Packing of the operands of matrix products; see gemm_pack.c. */
#ifndef QN_BACKEND_CPU_ISA_GEMM_PACK_H
#define QN_BACKEND_CPU_ISA_GEMM_PACK_H

#include "backend/cpu/gemm.h"
#include "backend/cpu/isa/simd.h"
#include "base/half.h"

/* Element i of a tensor of f32, f16 or bf16. */
QN_INLINE float qn_gemm_load(QnDtype d, const void *p, int64_t i)
{
    switch (d) {
    case QN_DTYPE_F16: return qn_f16_to_f32(((const uint16_t *)p)[i]);
    case QN_DTYPE_BF16: return qn_bf16_to_f32(((const uint16_t *)p)[i]);
    default: return ((const float *)p)[i];
    }
}

/* Rows m0..m1 of a or columns n0..n1 of b, steps k0..k1, as panels of MR rows or NR columns. past:
 * past the caches. */
void QN_ISA_NAME(qn_gemm_pack_rows)(const QnGemm *g, int64_t m0, int64_t m1, int64_t k0, int64_t k1,
                                    float *to);
void QN_ISA_NAME(qn_gemm_pack_columns)(const QnGemm *g, int64_t n0, int64_t n1, int64_t k0,
                                       int64_t k1, float *to, bool past);

#endif

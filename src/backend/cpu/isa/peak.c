/* What the core can do at most: multiply-adds on registers, of f32 and of pairs of bf16. The
 * yardstick of the benchmarks. */
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa/simd.h"

QnPeakFn QN_ISA_NAME(qn_peak);

double QN_ISA_NAME(qn_peak)(int64_t n, float *keep)
{
    enum { CHAINS = 12 };
    QnVec s[CHAINS];
    QnVec x = qn_vec_set(keep[0]), y = qn_vec_set(keep[1]), sum = qn_vec_set(0);
    QN_UNROLL for (int i = 0; i < CHAINS; i++) s[i] = qn_vec_set((float)i);
    for (int64_t t = 0; t < n; t++) {
        QN_UNROLL for (int i = 0; i < CHAINS; i++) s[i] = s[i] * x + y;
    }
    QN_UNROLL for (int i = 0; i < CHAINS; i++) sum += s[i];
    keep[2] = sum[0];
    return 2.0 * CHAINS * VW * (double)n;
}

QnPeakFn QN_ISA_NAME(qn_peak_bf16);

double QN_ISA_NAME(qn_peak_bf16)(int64_t n, float *keep)
{
#if defined(__AVX512BF16__)
    enum { CHAINS = 12 };
    QnVec s[CHAINS], sum = qn_vec_set(0);
    __m512bh x = (__m512bh)qn_vec_set(keep[0]), y = (__m512bh)qn_vec_set(keep[1]);
    QN_UNROLL for (int i = 0; i < CHAINS; i++) s[i] = qn_vec_set((float)i);
    for (int64_t t = 0; t < n; t++) {
        QN_UNROLL for (int i = 0; i < CHAINS; i++) s[i] =
            (QnVec)_mm512_dpbf16_ps((__m512)s[i], x, y);
    }
    QN_UNROLL for (int i = 0; i < CHAINS; i++) sum += s[i];
    keep[2] = sum[0];
    return 4.0 * CHAINS * VW * (double)n;
#else
    return QN_ISA_NAME(qn_peak)(n, keep); /* widened first */
#endif
}

/* What the core can do at most: multiply-adds on registers. The yardstick of the benchmarks. */
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

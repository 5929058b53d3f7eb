#include "backend/cpu/gemm.h"

#include <string.h>

const QnGemmFns *qn_gemm_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_gemm_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

QnPeakFn *qn_gemm_peak_find(const char *isa, QnDtype dtype)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return dtype == QN_DTYPE_BF16 ? qn_peak_bf16_##name : qn_peak_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

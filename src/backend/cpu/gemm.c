#include "backend/cpu/gemm.h"

#include <string.h>

QnGemmFn *qn_gemm_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_gemm_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

QnPeakFn *qn_gemm_peak_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_peak_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

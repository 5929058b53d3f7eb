#include "backend/cpu/attention.h"

#include "backend/cpu/gemm.h"

#include <string.h>

enum { MOST_SCORES = 1 << 16, MOST_QUERIES = 96 };

const QnAttentionFns *qn_attention_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_attention_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

void qn_attention_blocks(QnAttention *a)
{
    int64_t most = QN_MAX(12, MOST_SCORES / QN_MAX(a->h.s, 1));
    a->block = QN_MAX(1, QN_MIN(QN_MIN(most, MOST_QUERIES), a->h.t));
    a->n_blocks = (a->h.t + a->block - 1) / a->block;
}

int64_t qn_attention_scratch(const QnAttention *a, bool backward)
{
    int64_t scores = a->block * a->h.s * (backward ? 2 : 1);
    return QN_GEMM_SCRATCH + (scores + 15) / 16 * 16;
}

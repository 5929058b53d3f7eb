/* Scaled dot-product attention by blocks of queries: a block's scores against all its keys stay in
 * the worker's scratch memory, and no matrix of all queries by all keys is ever made. */
#ifndef QN_BACKEND_CPU_ATTENTION_H
#define QN_BACKEND_CPU_ATTENTION_H

#include "base/isa_list.h"
#include "ops/heads.h"

typedef struct QnAttention {
    QnHeads h;
    int64_t block, n_blocks; /* queries of a work unit; of a head */
} QnAttention;

typedef struct QnAttentionIn {
    const float *q, *k, *v, *mask; /* mask NULL: none */
    const float *dy, *lse, *delta; /* of the gradient */
} QnAttentionIn;

typedef struct QnAttentionFns {
    /* Unit of b * h * n_blocks: writes its rows of y and lse. */
    void (*forward)(const QnAttention *a, const QnAttentionIn *in, float *y, float *lse,
                    int64_t unit, float *scratch);
    /* Unit of b * hkv: writes dq of the heads that share these keys, dk and dv. */
    void (*backward)(const QnAttention *a, const QnAttentionIn *in, float *dq, float *dk, float *dv,
                     int64_t unit, float *scratch);
} QnAttentionFns;

#define QN_X(name) extern const QnAttentionFns qn_attention_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnAttentionFns *qn_attention_find(const char *isa);

/* Sets block and n_blocks. */
void qn_attention_blocks(QnAttention *a);
/* Floats of scratch that a worker needs. */
int64_t qn_attention_scratch(const QnAttention *a, bool backward);

#endif

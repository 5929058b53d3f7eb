/* What a step of training needs on one device under another stack than Quern's. */
#ifndef QN_PLAN_MEMORY_H
#define QN_PLAN_MEMORY_H

#include "plan/count.h"
#include "plan/fleet.h"

typedef enum QnMemoryStack {
    QN_MEMORY_QUERN, /* what the memory planner says */
    QN_MEMORY_EAGER, /* PyTorch: each operation keeps its inputs, attention writes its scores */
    QN_MEMORY_FUSED, /* compiled, attention as one kernel */
} QnMemoryStack;

typedef struct QnMemoryRequest {
    const QnCount *count; /* of a step, unfused for the eager stack */
    QnMemoryStack stack;
    const QnCard *card;
    bool low;       /* activations in 16 bits */
    bool images;    /* convolutions, whose maps are changed in place */
    bool detection; /* boxes are proposed, matched and sorted out beside the net */
    bool allocated; /* by tensors alone: no context, no cache of the allocator */
    int cards;      /* that divide large tables among each other; 0: 1 */
    bool full;      /* the batch is about the largest that fits: the allocator has taken all */
} QnMemoryRequest;

typedef struct QnMemoryTerms {
    double weights, gradients, optimizer, activations, workspace, context, slack, total;
} QnMemoryTerms;

QnMemoryTerms qn_memory_terms(const QnMemoryRequest *r, const QnFleet *f);

#endif

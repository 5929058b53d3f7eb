/* Published steps of parallel training, as the text beside a figure describes them. */
#ifndef QN_PLAN_PUBLISHED_H
#define QN_PLAN_PUBLISHED_H

#include "plan/parallel.h"

typedef struct QnPublished {
    QnSplit split;
    QnSharding sharding;
    QnTraining training;
} QnPublished;

typedef struct QnPublishedText {
    const QnModel *model;
    const QnCard *card;
    QnNumbers numbers;
    int n_cards;
    int64_t batch;         /* of one data-parallel device; 0: not said */
    int64_t sequence;      /* 0: the model's own */
    const char *framework; /* "Megatron-LM seq-par + selective recompute TP8 PP8" */
    const char *flag;      /* "global batch 64", "gbs=1536 h=12288" */
} QnPublishedText;

/* Whether the text says how devices share the model. */
bool qn_published_is_divided(const char *framework);
/* NULL, or why it cannot be read. The arena and the model live as long as counts. */
const char *qn_published_read(const QnPublishedText *t, QnArena *arena, QnCounts *counts,
                              QnPublished *out);
/* Where the text does not say how devices share it: the best layout that the planner finds, by the
 * software of today. global: sequences of a step. */
const char *qn_published_find(const QnPublishedText *t, int64_t global, QnArena *arena,
                              QnCounts *counts, const QnFleet *f, QnPublished *out);
/* The step's tokens, for throughput. */
double qn_published_tokens(const QnPublished *p);

#endif

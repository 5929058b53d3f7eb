/* A model as equal layers and what is around them: what can be divided among devices. Everything is
 * read off the counted graphs of two and of three layers. */
#ifndef QN_PLAN_SPLIT_H
#define QN_PLAN_SPLIT_H

#include "plan/counts.h"

/* Sums over kernels. Those that tensor parallelism divides, and those that every device of a tensor
 * group does in whole. */
typedef struct QnPart {
    double gemm;            /* flops of products and convolutions */
    double columns, depths; /* flops / depth of those split by columns, and by their depth */
    double attention;       /* flops; causal ones skip half */
    double attention_full;  /* the same without skipping */
    double scores;          /* elements that unfused attention writes */
    double bytes, bytes_whole;
    double kernels;
} QnPart;

/* Linear in the batch of sequences: base + slope * batch. */
typedef struct QnPartLine {
    QnPart base, slope;
} QnPartLine;

typedef struct QnSplit {
    const QnModel *model;
    int64_t layers;   /* 0: nothing is equal, it is all in the ends */
    int64_t sequence; /* tokens of an example; 0: images */
    double width;     /* of what goes from layer to layer, elements of a token */
    QnPartLine layer_forward, layer_backward, ends_forward, ends_backward;
    double layer_params, ends_params;
    double update_bytes;          /* of a parameter */
    double classes;               /* of the scores, each token's */
    double layer_kept, ends_kept; /* bytes that Quern keeps of an example for the gradients */
    double flops;                 /* of an example's step, attention in full, nothing twice */
} QnSplit;

/* low as in QnCountRequest. m and the arena must live as long as counts, which know models by where
 * they are. */
QnStatus qn_split_open(QnSplit *s, QnArena *arena, QnCounts *counts, const QnModel *m,
                       int64_t sequence, int low);
/* Of a micro-batch. */
QnPart qn_split_part(const QnPartLine *line, double batch);

#endif

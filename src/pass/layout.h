/* The order in memory of images: which tensors are better channels-last, decided once for the whole
 * graph. Runs after every pass that emits nodes, whose outputs are plain. */
#ifndef QN_PASS_LAYOUT_H
#define QN_PASS_LAYOUT_H

#include "ir/graph.h"

typedef struct QnLayoutOptions {
    /* Whether the device has a good kernel for n with its types as they stand now. NULL: for every
     * node that could be channels-last. */
    bool (*accepts)(void *ctx, const QnNode *n);
    void *ctx;
} QnLayoutOptions;

typedef struct QnLayoutReport {
    int64_t n_groups, n_nodes; /* turned channels-last */
    int64_t n_relayouts;       /* nodes put in at the borders */
} QnLayoutReport;

/* Sets layouts and inserts relayout nodes where that moves fewer bytes than the plain kernels would
 * turn inside. Inputs, states and graph outputs stay plain. A graph with symbolic dims is left
 * alone. report may be NULL. */
QnStatus qn_layout_run(QnGraph *g, const QnLayoutOptions *o, QnLayoutReport *report);

#endif

/* The passes over a graph, and the table of them that a graph goes through before it is planned. A
 * pass changes the graph in place, leaves it valid, and says in `report` what it did. */
#ifndef QN_PASS_PIPELINE_H
#define QN_PASS_PIPELINE_H

#include "ir/graph.h"
#include "quern/graph.h"

typedef QnStatus QnPass(QnGraph *g, const QnPipelineOptions *o);

typedef struct QnPassEntry {
    const char *name;
    QnPass *run;
    QnLevel level; /* the lowest at which it runs */
} QnPassEntry;

/* The table, in order; a pass may stand in it more than once. */
const QnPassEntry *qn_pipeline_passes(int *n);
/* NULL: no such pass. */
const QnPassEntry *qn_pipeline_find(const char *name);

QnPass qn_pass_lower;    /* composites become what they are made of, unless the device wants them */
QnPass qn_pass_fold;     /* constants are computed, arithmetic identities applied */
QnPass qn_pass_simplify; /* reshape, transpose, expand, cast: fewer of them */
QnPass qn_pass_cse;      /* equal computations are done once */
QnPass qn_pass_dce;      /* what no output needs goes */
QnPass qn_pass_trim;     /* results that nobody reads are not made */
QnPass qn_pass_fold_scale;     /* constant factors of channels go into constant weights */
QnPass qn_pass_epilogue;       /* an addition after matmul or conv becomes its bias */
QnPass qn_pass_fuse_loss;      /* cross-entropy and its gradient in one */
QnPass qn_pass_fuse_norm_grad; /* a layer norm's gradient takes in the sum with others */
QnPass qn_pass_fuse_norm;      /* a layer norm takes in the sum before it */
QnPass qn_pass_recompute; /* cheap values are computed again rather than kept, to fit a budget */
QnPass qn_pass_fuse_norm_relu; /* batch norm, ReLU and max pool backwards in one */
QnPass qn_pass_split_norm;     /* a batch norm before maps becomes statistics and maps */
QnPass qn_pass_fuse;           /* maps in one pass over memory */
QnPass qn_pass_fuse_sum;       /* a sum takes in the maps before it */
QnPass qn_pass_layout;         /* images become channels-last where that moves less memory */
QnPass qn_pass_fuse_conv;      /* a convolution takes in the maps after it */
QnPass qn_pass_fuse_matmul;    /* a matrix product likewise */
QnPass qn_pass_schedule;       /* the order of nodes with the lowest peak of memory */

#endif

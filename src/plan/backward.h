/* Gradients of functions of elements, each of which frameworks compute in one kernel. */
#ifndef QN_PLAN_BACKWARD_H
#define QN_PLAN_BACKWARD_H

#include "ir/graph.h"

/* By node ids, in the graph's arena. */
typedef struct QnBackward {
    const QnNode **kernel; /* the node whose kernel computes this one too; itself where none does */
    /* Bytes that a kernel of several nodes reads: what it does not compute itself, at most the
     * gradient and one value that was kept, from which frameworks compute the rest; else 0. */
    double *read;
} QnBackward;

/* Gradients are graphs of operations of their own here (that of silu: six), kernels in the
 * frameworks; sums of gradients are kernels of their own in both. */
QnStatus qn_backward_find(QnGraph *g, QnBackward *out);

#endif

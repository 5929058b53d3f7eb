/* Elements that are only put in another order for attention, or after it. Its kernels read and
 * write heads where they lie, so that frameworks move nothing there. */
#ifndef QN_PLAN_REORDER_H
#define QN_PLAN_REORDER_H

#include "ir/graph.h"

/* By node id, from the graph's arena; NULL: out of memory. The graph is numbered. */
const bool *qn_reorder_moved(QnGraph *g);

#endif

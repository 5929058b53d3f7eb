/* Reverse-mode automatic differentiation: appends gradient nodes to the graph. Gradients are graph,
 * so the gradient of a gradient is the same call again. Composite operators on the way are replaced
 * by what they lower to; on failure the graph is poisoned. */
#ifndef QN_PASS_GRAD_H
#define QN_PASS_GRAD_H

#include "ir/graph.h"

/* qn_grad and qn_grad_from are in quern/graph.h. */

/* Replaces a composite node by what it lowers to. */
QnStatus qn_lower_node(QnGraph *g, QnNode *n);

#endif

/* Reverse-mode automatic differentiation: appends gradient nodes to the graph. Gradients are graph,
 * so the gradient of a gradient is the same call again. */
#ifndef QN_PASS_GRAD_H
#define QN_PASS_GRAD_H

#include "ir/graph.h"

/* out[i] = d sum(y) / d wrt[i], of wrt[i]'s shape and dtype; zeros where y does not depend on it.
 * An operator on the way without a gradient is an error that lists all such nodes. On failure the
 * graph is poisoned. Composite operators on the way are replaced by what they lower to. */
QnStatus qn_grad(QnGraph *g, QnValue *y, QnValue *const *wrt, int n, QnValue **out);

/* The same from a given dy of y's type (NULL: ones). */
QnStatus qn_grad_from(QnGraph *g, QnValue *y, QnValue *dy, QnValue *const *wrt, int n,
                      QnValue **out);

/* Replaces a composite node by what it lowers to. */
QnStatus qn_lower_node(QnGraph *g, QnNode *n);

#endif

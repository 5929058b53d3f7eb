/* Multiply-adds of a graph: what papers count. */
#ifndef QN_PLAN_MACS_H
#define QN_PLAN_MACS_H

#include "ir/graph.h"

/* Of convolutions, matrix products and the two products of attention, without biases; not of
 * gradients. */
double qn_macs(const QnGraph *g);

#endif

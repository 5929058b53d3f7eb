/* The text form of a graph. Printing what ir/parse.h reads gives the same text again:
 *
 *   dims B, (B*4)                      the graph's symbolic dims, in the order of their making
 *   streams 3                          random streams handed out
 *   %0 = input() {name="x", dims=[B,10]} : f32[B,10]
 *   %1 = softmax(%0) {axis=1} "head.softmax" : f32[B,10]
 *   %2, %3 = topk(%1) {k=5} : f32[B,5], i64[B,5]
 *   output "probabilities" = %1
 *
 * Values are numbered in order. Attributes that have their default are left out; an absent input is
 * `_`, an operator whose version is not 1 is `name@2`, a comment runs from # to the line's end. */
#ifndef QN_IR_PRINT_H
#define QN_IR_PRINT_H

#include "base/str.h"
#include "ir/graph.h"

/* Adds the whole graph's text to *out. Renumbers nodes and values. */
QnStatus qn_graph_print(QnGraph *g, QnStr *out);
/* Adds one node's line, without its end. */
QnStatus qn_node_print(const QnGraph *g, const QnNode *n, QnStr *out);
/* Adds "{axis=1, keepdims=true}", nothing where all have their defaults; dims need the graph. */
QnStatus qn_attr_print(const QnGraph *g, const QnOp *op, const void *attr, QnStr *out);

#endif

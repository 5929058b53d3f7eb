/* The names of a graph: each is made once, and before it is used. */
#ifndef QN_IO_ONNX_ORDER_H
#define QN_IO_ONNX_ORDER_H

#include "io/onnx.h"

/* Sorts the nodes so that what a node reads stands before it; the files' order stays where it can
 * be. Refuses names made twice, and cycles. Names that nobody makes are left to the importer, as
 * they may be the enclosing graph's. */
QnStatus qn_onnx_order(QnArena *arena, const char *file, QnOnnxGraph *g);

#endif

/* Reads the text form of a graph; ir/print.h shows it. */
#ifndef QN_IR_PARSE_H
#define QN_IR_PARSE_H

#include "ir/graph.h"

/* Finds an operator by name, NULL where there is none: qn_op_find of ops/registry.h. */
typedef const QnOp *QnOpFind(const char *name);

/* n bytes of text, NULs refused. An error names line and column, counted from 1 and in bytes. Takes
 * memory in proportion to the text alone, whatever it says. */
QnStatus qn_graph_parse(const char *text, size_t n, QnOpFind *find, QnGraph **out);

#endif

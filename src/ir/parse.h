/* Reads the text form of a graph; ir/print.h shows it: qn_graph_parse of quern/graph.h. */
#ifndef QN_IR_PARSE_H
#define QN_IR_PARSE_H

#include "ir/graph.h"

#endif

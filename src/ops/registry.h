/* Every operator of the build, by name. */
#ifndef QN_OPS_REGISTRY_H
#define QN_OPS_REGISTRY_H

#include "ir/op.h"

/* All operators, sorted by name; static storage. */
const QnOp *const *qn_op_all(int *n);
/* NULL: no operator has that name. Fits qn_graph_parse's lookup. */
const QnOp *qn_op_find(const char *name);

#endif

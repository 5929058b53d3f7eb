/* Every operator of the build, by name: qn_op_all and qn_op_find of quern/graph.h. */
#ifndef QN_OPS_REGISTRY_H
#define QN_OPS_REGISTRY_H

#include "ir/op.h"

#endif

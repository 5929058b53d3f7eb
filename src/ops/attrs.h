/* Attribute structs that builders take stand in the public quern/attrs.h: add new ones there. */
#ifndef QN_OPS_ATTRS_H
#define QN_OPS_ATTRS_H

#include "ir/graph.h"
#include "quern/attrs.h"

#endif

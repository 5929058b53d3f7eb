/* Shapes: quern/types.h, and what only the library needs of them. */
#ifndef QN_IR_SHAPE_H
#define QN_IR_SHAPE_H

#include "ir/dtype.h"

/* Strides in elements by logical axis, the layout considered. */
void qn_type_strides(const QnType *t, int64_t stride[QN_MAX_RANK]);
/* Logical axes from slowest to fastest in memory. */
void qn_type_order(const QnType *t, int axis[QN_MAX_RANK]);
/* Negative axes count from the end. false: out of range. */
bool qn_shape_axis(const QnShape *s, int64_t axis, int *out);

#endif

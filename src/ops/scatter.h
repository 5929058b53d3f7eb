/* How scattered updates meet what is there: QnScatter, on every dtype. */
#ifndef QN_OPS_SCATTER_H
#define QN_OPS_SCATTER_H

#include "ir/op.h"
#include "quern/attrs.h"

extern const char *const qn_scatter_names[]; /* by QnScatter, NULL-terminated */

/* Element `from` of input 2 goes to element `at` of the output. Integers are exact and wrap. */
void qn_scatter_at(const QnRefArgs *a, int reduction, int64_t at, int64_t from);

#endif

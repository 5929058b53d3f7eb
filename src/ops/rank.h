/* Order of a row's elements, as sort and topk share it. */
#ifndef QN_OPS_RANK_H
#define QN_OPS_RANK_H

#include "ops/util.h"

/* Reference of both: the first k of each row in order (equal elements keep theirs, NaN counts as
 * the greatest), to values (outer,k,inner) and indices. */
QnStatus qn_rank_ref(const QnRefArgs *a, int axis, int64_t k, bool descending);

/* Gradient of both: dy's elements go back to where the values came from. */
QnValue *qn_rank_grad(QnGraph *g, QnNode *n, QnValue *dy, int64_t axis);

#endif

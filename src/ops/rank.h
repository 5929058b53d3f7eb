/* Order of a row's elements, as sort and topk share it. */
#ifndef QN_OPS_RANK_H
#define QN_OPS_RANK_H

#include "ops/util.h"

/* Puts the indices of x[0], x[stride], … x[(n-1)*stride] into order[0..n), smallest first or with
 * `descending` greatest first; equal elements keep their order, NaN counts as the greatest.
 * scratch: n entries. */
void qn_rank_sort(const double *x, int64_t n, int64_t stride, bool descending, int64_t *order,
                  int64_t *scratch);

/* Reference of both: the first k of each row in order, to values (outer,k,inner) and indices. */
QnStatus qn_rank_ref(const QnRefArgs *a, int axis, int64_t k, bool descending);

/* Gradient of both: dy's elements go back to where the values came from. */
QnValue *qn_rank_grad(QnGraph *g, QnNode *n, QnValue *dy, int64_t axis);

#endif

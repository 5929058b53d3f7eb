/* What one node of a plan computes and moves (qn_work_of, plan/count.h). */
#ifndef QN_PLAN_WORK_H
#define QN_PLAN_WORK_H

#include "plan/count.h"
#include "rt/plan.h"

/* What frameworks have in one kernel with other steps: the statistics of a batch norm, and where
 * its factors are no part of the convolution, its addition. */
bool qn_work_is_part_of_norm(const QnNode *node);

#endif

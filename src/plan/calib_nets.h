/* Small nets whose steps hold the kernels of common models in many sizes; no published model is
 * among them, so that those are predicted and not remembered. */
#ifndef QN_PLAN_CALIB_NETS_H
#define QN_PLAN_CALIB_NETS_H

#include "plan/count.h"

/* Net i and what a step of it takes; false: there is no i-th. Their order is such that the first
 * ones already hold every kind of kernel. */
bool qn_calib_net(int i, const QnModel **model, QnCountRequest *request);

#endif

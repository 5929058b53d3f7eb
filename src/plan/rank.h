/* How well predictions put devices in order. */
#ifndef QN_PLAN_RANK_H
#define QN_PLAN_RANK_H

#include "plan/score.h"

/* Fills what a score says of ranks, from rows of one device each. */
QnStatus qn_rank_devices(QnScore *s);

#endif

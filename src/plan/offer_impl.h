/* Shared by offer.c (time and money) and offer_power.c (memory and power). */
#ifndef QN_PLAN_OFFER_IMPL_H
#define QN_PLAN_OFFER_IMPL_H

#include "plan/advice.h"

/* Seconds more in each update, for this reason. */
void qn_offer_add_s(QnCostResult *c, QnLimit limit, double seconds);
void qn_offer_find_limit(QnCostResult *c);

/* The terms of memory under the job's stack; keys and values come on top. */
void qn_offer_memory(const QnJob *job, const QnFleet *f, const QnCount *held, QnOffer *o);
/* Power at the plug. Where the job has a limit, its devices are held to the most that keeps it;
 * where nothing does, to the least that there is. */
void qn_offer_power(const QnJob *job, const QnFleet *f, QnOffer *o);

#endif

/* Shared by offer.c (time and money), offer_share.c and offer_power.c (memory and power). */
#ifndef QN_PLAN_OFFER_IMPL_H
#define QN_PLAN_OFFER_IMPL_H

#include "plan/advice.h"

/* Seconds more in each update, for this reason. */
void qn_offer_add_s(QnCostResult *c, QnLimit limit, double seconds);
void qn_offer_find_limit(QnCostResult *c);

/* With o->shard in training: what of the count is spread over the devices. Returns seconds in
 * which the weights are gathered once more than gradients are summed. */
double qn_offer_spread(const QnJob *job, const QnFleet *f, const QnOffer *o, QnCount *c);
/* Of these, what the step does not hide: at least a layer's. */
double qn_offer_exposed(const QnJob *job, const QnCoefs *k, const QnCostResult *c, double gather);
/* Whether so many devices can share each step of serving; alone: the offer in which none does. */
bool qn_offer_can_share(const QnJob *job, const QnOffer *alone, int ways);
/* Groups of devices that have the layers in order, with o->shard in inference; else 1. */
int qn_offer_stages(const QnJob *job, const QnOffer *o);
/* One works at a time, each holds its part. */
void qn_offer_line_up(const QnJob *job, const QnFleet *f, double steps, QnOffer *o);

/* The terms of memory under the job's stack; keys and values come on top. */
void qn_offer_memory(const QnJob *job, const QnFleet *f, const QnCount *held, QnOffer *o);
/* Power at the plug. Where the job has a limit, its devices are held to the most that keeps it;
 * where nothing does, to the least that there is. */
void qn_offer_power(const QnJob *job, const QnFleet *f, QnOffer *o);

#endif

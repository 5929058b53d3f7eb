/* Which device to take: every candidate priced for one job, and the best of them. */
#ifndef QN_PLAN_ADVICE_H
#define QN_PLAN_ADVICE_H

#include "plan/cost.h"
#include "plan/counts.h"

typedef struct QnJob {
    const QnModel *model;
    bool train;
    bool any_numbers; /* each device's best: fp16-amp where it has a fast rate for it, else fp32 */
    QnNumbers numbers;
    QnTier tier;
    int64_t batch; /* of one device; 0: the fastest power of two that fits, up to 256 */
    int64_t image, sequence;
    double items; /* to go through, examples or (models of tokens) tokens; 0: not asked */
    double budget_usd, deadline_s; /* 0: none */
} QnJob;

typedef struct QnOffer {
    const QnCard *card;
    int n_cards;
    QnNumbers numbers;
    int64_t batch;
    QnCostResult cost;
    const QnCount *count;          /* of one device's step; lives as long as the counts */
    double items_s, low_s, high_s; /* of all cards together, and its interval */
    double hours, kwh, usd;        /* of the job; usd 0: neither rent nor price is known */
    double usd_per_hour;           /* of all cards; 0: neither rent nor price is known */
    bool rented;                   /* usd is rent; else purchase by the hour, and electricity */
    const char *term;              /* the largest part of its memory */
    char error[160];               /* why there is nothing of the above; "" otherwise */
} QnOffer;

/* Fails only where the model itself is at fault; what a device cannot do is in `error`. */
QnStatus qn_offer_price(QnCounts *counts, const QnJob *job, const QnCard *card, int n_cards,
                        const QnCoefs *k, QnOffer *out);

/* Indices among the offers, -1: none. With limits: the cheapest that meets the deadline within the
 * budget. */
typedef struct QnAdvice {
    int best, fastest, cheapest;
} QnAdvice;
QnAdvice qn_advice_of(const QnJob *job, const QnOffer *offers, int n);

#endif

/* Time, memory, energy and money of counted work on a device. */
#ifndef QN_PLAN_COST_H
#define QN_PLAN_COST_H

#include "plan/coef.h"
#include "plan/count.h"

typedef enum QnNumbers {
    QN_NUMBERS_FP32,
    QN_NUMBERS_TF32,
    QN_NUMBERS_FP16_AMP,
    QN_NUMBERS_BF16_AMP,
    QN_NUMBERS_FP16,
    QN_NUMBERS_BF16,
    QN_NUMBERS_INT8,
    QN_NUMBERS_FP8,
    QN_NUMBERS_COUNT
} QnNumbers;

const char *qn_numbers_name(QnNumbers p);
QnStatus qn_numbers_find(const char *name, QnNumbers *p);
int qn_numbers_low(QnNumbers p, bool train); /* for QnCountRequest.low */

/* What holds a step back most. */
typedef enum QnLimit {
    QN_LIMIT_COMPUTE,
    QN_LIMIT_MEMORY,
    QN_LIMIT_LAUNCH,
    QN_LIMIT_LINK,
    QN_LIMITS
} QnLimit;
const char *qn_limit_name(QnLimit limit);

typedef struct QnCostRequest {
    const QnCard *card;
    int n_cards; /* data-parallel; the count is of one card's batch */
    QnNumbers numbers;
    QnTier tier;
    bool train;
    bool no_update; /* forward and backward alone */
} QnCostRequest;

typedef struct QnCostResult {
    double step_s;              /* expected */
    double low_s, high_s;       /* 80 % of cases lie within */
    double by_limit[QN_LIMITS]; /* seconds attributed to each */
    QnLimit limit;
    double mfu;           /* flops / (step * peak) of one card */
    double peak_flops;    /* by the data sheet, 0: not known */
    double memory_bytes;  /* all terms and the reserve */
    double reserve_bytes; /* context, fragmentation */
    bool fits;
    double power_w; /* of all cards */
} QnCostResult;

/* An error says what the device cannot do. */
QnStatus qn_cost_step(const QnCount *c, const QnCostRequest *r, const QnCoefs *k,
                      QnCostResult *out);
/* One kernel of it, as qn_cost_step reckons; the device must have a peak rate. */
typedef struct QnWorkCost {
    double compute_s, memory_s, launch_s; /* each alone */
    double seconds;
    QnLimit limit;
} QnWorkCost;
QnWorkCost qn_cost_work(const QnWork *w, const QnCostRequest *r, const QnCoefs *k);
/* Peak rate of products, FLOP/s; 0: the data sheet has none. */
double qn_cost_peak(const QnCard *card, QnNumbers p);

#endif

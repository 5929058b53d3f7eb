/* Which device to take: every candidate priced for one job, and the best of them. */
#ifndef QN_PLAN_ADVICE_H
#define QN_PLAN_ADVICE_H

#include "plan/cost.h"
#include "plan/counts.h"
#include "plan/memory.h"
#include "plan/money.h"

/* How examples come to the device. */
typedef struct QnFeed {
    double bytes;   /* of an example; 0: not known, and no copy is reckoned */
    double workers; /* threads of a host that prepare examples; 0: never what limits */
    double rate;    /* examples a second that each prepares */
} QnFeed;

typedef struct QnJob {
    const QnModel *model;
    bool train;
    bool any_numbers; /* each device's best: fp16-amp where it has a fast rate for it, else fp32 */
    QnNumbers numbers;
    double weight_bits; /* of matrices in inference, where they are fewer than what is computed
                         * with; 0: they are not */
    QnTier tier;
    int64_t batch;      /* of one device; 0: the fastest power of two that fits */
    int64_t most_batch; /* where it is not given; 0: 256 */
    int64_t accumulate; /* micro-batches of `batch` an update; 0: 1 */
    bool recompute;     /* cheap activations are computed again rather than kept */
    bool offload;       /* the optimizer works in the host's memory */
    bool shard; /* weights, gradients and optimizer are spread over the devices; in inference each
                 * has a part of the layers. false: where nothing else fits */
    int ways;   /* devices that share each step of serving; 0: as many as serve fastest */
    int64_t image, sequence;
    int64_t prompt, generate; /* tokens that are answered to, and with; 0: all at once */
    const char *framework;    /* as published figures name it, or NULL */
    double items;      /* to go through, examples or (models of tokens) tokens; 0: not asked */
    double epochs;     /* that these are; 0: not said */
    double evaluation; /* time of evaluations over that of training */
    double budget_usd, deadline_s, power_w; /* 0: none */
    QnMoney money;                          /* years 0: qn_money_default */
    QnFeed feed;
    const QnFleet *fleet; /* of many devices, memory and power; NULL: the embedded table is read */
} QnJob;

typedef struct QnOffer {
    const QnCard *card;
    int n_cards;
    QnNumbers numbers;
    int64_t batch, accumulate;
    bool recompute, offload, shard;
    int ways;          /* devices that share each step of serving; 1: each serves on its own */
    double cache;      /* bytes of keys and values of one device */
    QnCostResult cost; /* of an update: all its micro-batches; power_w is that at the plug, with the
                        * machine around the devices, memory_bytes with what the stack keeps */
    const QnCount *count;          /* of one device's micro-batch; lives as long as the counts */
    double items_s, low_s, high_s; /* of all cards together, and its interval */
    double first_s, token_s;       /* generation: to the first token, and for each of the others */
    double hours, kwh, usd;        /* of the job; usd 0: neither rent nor price is known */
    double usd_per_hour;           /* of all cards; 0: neither rent nor price is known */
    bool rented;                   /* usd is rent; else purchase by the hour, and electricity */
    double
        cap; /* power limit of each device over its data sheet's, so that the job's is kept; 0: 1 */
    double busy_s;     /* of cost.step_s, what examples are not waited for; 0: all */
    double fed_s;      /* items_s, were examples never waited for */
    double outlay;     /* USD: rent of the job, or what is paid at once for bought devices, with the
                        * job's electricity; 0: not known */
    const char *waits; /* what keeps examples from coming: "loader"; NULL: they do come */
    QnMemoryTerms memory;           /* what cost.memory_bytes is made of, but for keys and values */
    double memory_low, memory_high; /* bytes, what cost.memory_bytes may turn out to be */
    const char *term;               /* the largest part of its memory */
    char error[160];                /* why there is nothing of the above; "" otherwise */
} QnOffer;

/* What the model of cost is asked for an offer. */
QnCostRequest qn_offer_request(const QnJob *job, const QnOffer *o);
/* Fails only where the model itself is at fault; what a device cannot do is in `error`. */
QnStatus qn_offer_price(QnCounts *counts, const QnJob *job, const QnCard *card, int n_cards,
                        const QnCoefs *k, QnOffer *out);
/* Bytes that all devices of the kind have, as reckoned with. */
double qn_offer_room(const QnOffer *o);
/* Fits by what is expected, but not by the upper end of its interval. */
bool qn_offer_is_tight(const QnOffer *o);
/* "compute", "memory bandwidth", "launches", "interconnect", "loader", "copies". */
const char *qn_offer_limit(const QnOffer *o);

/* Indices among the offers, -1: none. With limits: of those within all of them. What is tight in
 * memory is taken only where nothing else is there. */
typedef struct QnAdvice {
    int best, fastest, cheapest;
} QnAdvice;
QnAdvice qn_advice_of(const QnJob *job, const QnOffer *offers, int n);

/* How likely the offer meets the deadline, 0 to 1: times are spread as their interval says. */
double qn_advice_chance(const QnJob *job, const QnOffer *o);

/* What each limit would have to be for some offer, the others being kept; -1: none would do. */
typedef struct QnRelaxed {
    int deadline, budget, power; /* the offer that then is within all */
} QnRelaxed;
QnRelaxed qn_advice_relax(const QnJob *job, const QnOffer *offers, int n);

/* What makes a job that does not fit into a device fit, each tried and priced. */
enum { QN_REMEDIES = 8 };
typedef struct QnRemedy {
    char text[96]; /* "8 micro-batches of 4" */
    QnOffer offer; /* fits */
    QnJob job;     /* as priced */
} QnRemedy;
/* For an offer that does not fit; *n of QN_REMEDIES. */
QnStatus qn_advice_remedies(QnCounts *counts, const QnJob *job, const QnOffer *offer,
                            const QnCoefs *k, QnRemedy out[QN_REMEDIES], int *n);
/* The cheapest of 2, 4 and 8 devices of the offers' kinds that is within all limits; found false:
 * none is. */
QnStatus qn_advice_more_cards(QnCounts *counts, const QnJob *job, const QnOffer *offers, int n,
                              const QnCoefs *k, QnOffer *out, bool *found);

#endif

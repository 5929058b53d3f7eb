/* Memory and power of an offer. */
#include "plan/offer_impl.h"
#include "plan/power.h"

#include <math.h>
#include <string.h>

#define LEAST_CAP 0.4 /* of its limit, to which a device can be held */

static QnMemoryStack memory_stack(const QnJob *job)
{
    if (!job->train || job->tier == QN_TIER_QUERN)
        return QN_MEMORY_QUERN;
    return qn_tier_is_eager(job->tier) ? QN_MEMORY_EAGER : QN_MEMORY_FUSED;
}

void qn_offer_memory(const QnJob *job, const QnFleet *f, const QnCount *held, QnOffer *o)
{
    QnCount narrow = *held;
    if (!job->train && (o->numbers == QN_NUMBERS_INT8 || o->numbers == QN_NUMBERS_FP8)) {
        narrow.weights /= 2; /* 16 bits were counted */
        narrow.activations /= 2;
        narrow.cache /= 2;
    }
    if (!job->train) {
        double parts = QN_MAX(o->ways, 1) * qn_offer_stages(job, o);
        narrow.weights /= parts;
        narrow.cache /= parts;
    }
    QnMemoryRequest r = { .count = &narrow,
                          .cards = o->n_cards,
                          .stack = memory_stack(job),
                          .card = o->card,
                          .low = qn_numbers_low(o->numbers, job->train) == 1,
                          .images = job->model->family->image > 0 };
    o->cache = narrow.cache;
    double spread = exp(f->x[QN_FLEET_MEMORY_SPREAD]);
    QnCostResult *c = &o->cost;
    if (o->card->calib) { /* this machine: what the memory planner will allocate */
        o->memory = (QnMemoryTerms){ .weights = held->weights,
                                     .gradients = held->gradients,
                                     .optimizer = held->optimizer,
                                     .activations = held->activations,
                                     .context = c->reserve_bytes,
                                     .total = c->memory_bytes - held->cache };
        o->memory_low = o->memory_high = c->memory_bytes;
        return;
    }
    o->memory = qn_memory_terms(&r, f);
    c->memory_bytes = o->memory.total + o->cache;
    c->reserve_bytes = o->memory.context + o->memory.slack;
    c->fits = c->memory_bytes <= qn_offer_room(o);
    o->memory_low = c->memory_bytes / spread;
    o->memory_high = c->memory_bytes * spread;
}

/* A desktop holds two devices; more of them stand in a server. */
static QnPowerHost power_host(const QnCard *card, int local)
{
    return !strcmp(card->kind, "edge")                      ? QN_POWER_MODULE
           : !strcmp(card->kind, "datacenter") || local > 2 ? QN_POWER_SERVER
                                                            : QN_POWER_DESKTOP;
}

/* What a device is busy with while the step lasts, and how much of it waits. */
static void set_shares(const QnJob *job, const QnOffer *o, QnPowerRequest *r)
{
    const QnCostResult *c = &o->cost;
    bool images = job->model->family->image > 0;
    double whole = 0;
    for (int i = 0; i < QN_LIMITS; i++)
        whole += c->by_limit[i];
    whole = QN_MAX(whole, c->step_s);
    whole *= qn_offer_stages(job, o); /* one works at a time */
    double works = c->by_limit[QN_LIMIT_COMPUTE] + c->by_limit[QN_LIMIT_MEMORY];
    double gaps = QN_MAX(0, c->busy_s - works);
    r->share[images ? QN_POWER_CONV : QN_POWER_PRODUCTS] = c->by_limit[QN_LIMIT_COMPUTE] / whole;
    r->share[QN_POWER_MEMORY] = c->by_limit[QN_LIMIT_MEMORY] / whole;
    r->share[QN_POWER_LAUNCH] = gaps / whole;
    r->waits = QN_MAX(0, 1 - (works + gaps) / whole);
    r->fed = images && job->train ? (works + gaps) / whole : 0;
}

/* At the plug, of as many machines as it takes. */
static void set_power(const QnJob *job, const QnFleet *f, QnOffer *o)
{
    int local = QN_MIN(o->n_cards, 8);
    double nodes = o->n_cards / (double)local;
    QnPowerRequest r = { .card = o->card,
                         .n = local,
                         .host = power_host(o->card, local),
                         .cap = o->cap > 0 ? o->cap : 1,
                         .nodes = 1 }; /* the step says how long they wait */
    set_shares(job, o, &r);
    if (r.host == QN_POWER_SERVER && local < 8) { /* servers are shared */
        nodes = local / 8.0;
        r.n = 8;
    }
    double watts = nodes * qn_power_w(&r, f);
    if (watts > 0)
        o->cost.power_w = watts;
}

/* With each device held to this share of its limit: its clock falls, and what it computes. */
static void cap_power(const QnJob *job, const QnFleet *f, const QnCostResult *whole, double cap,
                      QnOffer *o)
{
    o->cost = *whole;
    o->cap = cap;
    qn_offer_add_s(&o->cost, QN_LIMIT_COMPUTE,
                   whole->by_limit[QN_LIMIT_COMPUTE] * (1 / qn_power_clock(cap) - 1));
    set_power(job, f, o);
}

/* The highest limit of its devices that keeps the job's; where none does, the least that there is.
 */
void qn_offer_power(const QnJob *job, const QnFleet *f, QnOffer *o)
{
    set_power(job, f, o);
    const QnCostResult whole = o->cost;
    double low = LEAST_CAP, high = 1;
    if (!(job->power_w > 0) || whole.power_w <= job->power_w || !(o->card->tdp_w > 0))
        return;
    for (int i = 0; i < 20; i++) {
        double cap = (low + high) / 2;
        cap_power(job, f, &whole, cap, o);
        if (o->cost.power_w <= job->power_w)
            low = cap;
        else
            high = cap;
    }
    cap_power(job, f, &whole, low, o);
    qn_offer_find_limit(&o->cost);
}

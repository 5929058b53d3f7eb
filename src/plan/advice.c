/* Choosing among offers, and what to change where there is nothing to choose from. */
#include "plan/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- limits ---- */

static bool is_usable(const QnOffer *o)
{
    return !o->error[0] && o->cost.fits;
}

static bool meets_deadline(const QnJob *job, const QnOffer *o)
{
    return !(job->deadline_s > 0) || o->hours * 3600 <= job->deadline_s;
}

static bool meets_budget(const QnJob *job, const QnOffer *o)
{
    return !(job->budget_usd > 0) || (o->outlay > 0 && o->outlay <= job->budget_usd);
}

static bool meets_power(const QnJob *job, const QnOffer *o)
{
    return !(job->power_w > 0) || (o->cost.power_w > 0 && o->cost.power_w <= job->power_w);
}

static bool is_within(const QnJob *job, const QnOffer *o)
{
    return is_usable(o) && meets_deadline(job, o) && meets_budget(job, o) && meets_power(job, o);
}

/* What an item costs; 0: not known. */
static double usd_an_item(const QnOffer *o)
{
    return o->items_s > 0 ? o->usd_per_hour / (3600 * o->items_s) : 0;
}

/* tight: also those that may turn out not to fit. */
static QnAdvice choose(const QnJob *job, const QnOffer *offers, int n, bool tight)
{
    QnAdvice a = { -1, -1, -1 };
    for (int i = 0; i < n; i++) {
        const QnOffer *o = &offers[i];
        if (!is_within(job, o) || (!tight && qn_offer_is_tight(o)))
            continue;
        if (a.fastest < 0 || o->items_s > offers[a.fastest].items_s)
            a.fastest = i;
        if (usd_an_item(o) > 0 &&
            (a.cheapest < 0 || usd_an_item(o) < usd_an_item(&offers[a.cheapest])))
            a.cheapest = i;
    }
    a.best = a.cheapest >= 0 ? a.cheapest : a.fastest;
    return a;
}

QnAdvice qn_advice_of(const QnJob *job, const QnOffer *offers, int n)
{
    QnAdvice a = choose(job, offers, n, false);
    return a.best >= 0 ? a : choose(job, offers, n, true);
}

double qn_advice_chance(const QnJob *job, const QnOffer *o)
{
    /* 80 % of a normal distribution lie within 1.2816 deviations */
    double deviation = log(o->high_s / o->low_s) / (2 * 1.2816);
    if (!(job->deadline_s > 0) || !(o->hours > 0))
        return 1;
    double late = log(3600 * o->hours / job->deadline_s);
    return deviation > 0 ? 0.5 * erfc(late / (deviation * sqrt(2))) : late <= 0;
}

QnRelaxed qn_advice_relax(const QnJob *job, const QnOffer *offers, int n)
{
    QnRelaxed r = { -1, -1, -1 };
    for (int i = 0; i < n; i++) {
        const QnOffer *o = &offers[i];
        if (!is_usable(o))
            continue;
        bool time = meets_deadline(job, o), money = meets_budget(job, o),
             power = meets_power(job, o);
        if (!time && money && power && (r.deadline < 0 || o->hours < offers[r.deadline].hours))
            r.deadline = i;
        if (time && !money && power && o->outlay > 0 &&
            (r.budget < 0 || o->outlay < offers[r.budget].outlay))
            r.budget = i;
        if (time && money && !power && o->cost.power_w > 0 &&
            (r.power < 0 || o->cost.power_w < offers[r.power].cost.power_w))
            r.power = i;
    }
    return r;
}

QnStatus qn_advice_more_cards(QnCounts *counts, const QnJob *job, const QnOffer *offers, int n,
                              const QnCoefs *k, QnOffer *out, bool *found)
{
    *found = false;
    for (int i = 0; i < n; i++) {
        if (offers[i].n_cards > 1 || offers[i].error[0])
            continue; /* what does not fit alone may be shared */
        for (int cards = 2; cards <= 8; cards *= 2) {
            QnOffer o;
            QN_TRY(qn_offer_price(counts, job, offers[i].card, cards, k, &o));
            if (!is_within(job, &o))
                continue;
            bool tight = qn_offer_is_tight(&o),
                 cheaper = o.usd > 0 && out->usd > 0 ? o.usd < out->usd : o.items_s > out->items_s;
            bool better = !*found || (tight != qn_offer_is_tight(out) ? !tight : cheaper);
            if (better)
                *out = o;
            *found = true;
        }
    }
    return QN_OK;
}

/* ---- what makes it fit ---- */

typedef struct Search {
    QnCounts *counts;
    const QnJob *job;
    const QnOffer *offer;
    const QnCoefs *k;
    QnRemedy *out;
    int n;
} Search;

/* Notes the job if it fits; *fits (may be NULL) says whether. */
static QnStatus try_job(Search *s, const QnJob *job, int cards, const char *text, bool *fits)
{
    QnRemedy r = { .job = *job };
    QN_TRY(qn_offer_price(s->counts, job, s->offer->card, cards, s->k, &r.offer));
    bool does = is_usable(&r.offer);
    snprintf(r.text, sizeof r.text, "%s", text);
    if (does && s->n < QN_REMEDIES)
        s->out[s->n++] = r;
    if (fits)
        *fits = does;
    return QN_OK;
}

/* The largest batch below the offer's that fits; 0: none does. */
static QnStatus largest_batch(const Search *s, const QnJob *from, int64_t *out)
{
    int64_t fits = 0, more = s->offer->batch;
    while (more - fits > 1) {
        QnJob job = *from;
        QnOffer o;
        job.batch = fits + (more - fits) / 2;
        QN_TRY(qn_offer_price(s->counts, &job, s->offer->card, s->offer->n_cards, s->k, &o));
        if (is_usable(&o))
            fits = job.batch;
        else
            more = job.batch;
    }
    *out = fits;
    return QN_OK;
}

/* A micro-batch is the largest that fits and divides the batch, which stays the same. */
static QnStatus try_micro(Search *s, const QnJob *from, const char *also)
{
    char text[96];
    int64_t batch = s->offer->batch, micro;
    QnJob job = *from;
    QN_TRY(largest_batch(s, from, &micro));
    while (from->train && micro > 0 && batch % micro)
        micro--;
    if (!micro)
        return QN_OK;
    job.batch = micro;
    job.accumulate = from->train ? s->offer->accumulate * (batch / micro) : 1;
    if (from->train)
        snprintf(text, sizeof text, "%lld micro-batches of %lld%s", (long long)job.accumulate,
                 (long long)micro, also);
    else
        snprintf(text, sizeof text, "a batch of %lld%s", (long long)micro, also);
    return try_job(s, &job, s->offer->n_cards, text, NULL);
}

/* Fewer bits, from the most on. */
static QnStatus try_precision(Search *s, const QnJob *from)
{
    static const struct {
        const char *name;
        bool train;
        QnNumbers numbers;
        double weight_bits;
    } lower[] = { { "bf16-amp", true, QN_NUMBERS_BF16_AMP, 0 },
                  { "fp16-amp", true, QN_NUMBERS_FP16_AMP, 0 },
                  { "fp16", false, QN_NUMBERS_FP16, 0 },
                  { "int8", false, QN_NUMBERS_INT8, 0 },
                  { "int4", false, QN_NUMBERS_FP16, 4.25 } };
    bool fits = from->weight_bits > 0;
    for (int i = 0; i < QN_COUNT(lower) && !fits; i++) {
        QnJob job = *from;
        job.numbers = lower[i].numbers;
        job.weight_bits = lower[i].weight_bits;
        job.any_numbers = false;
        if (lower[i].train != from->train ||
            (job.numbers == s->offer->numbers && !(job.weight_bits > 0)))
            continue;
        QN_TRY(try_job(s, &job, s->offer->n_cards, lower[i].name, &fits));
    }
    return QN_OK;
}

/* More devices, which share what they must. */
static QnStatus try_shards(Search *s, const QnJob *from, const char *also)
{
    for (int cards = QN_MAX(2, 2 * s->offer->n_cards); cards <= 1024; cards *= 2) {
        QnRemedy r = { .job = *from };
        QN_TRY(qn_offer_price(s->counts, &r.job, s->offer->card, cards, s->k, &r.offer));
        if (!is_usable(&r.offer))
            continue;
        r.job.shard = r.offer.shard;
        r.job.ways = r.offer.ways;
        if (from->train)
            snprintf(r.text, sizeof r.text, "%s among them%s",
                     r.offer.shard ? "weights, gradients and optimizer shared"
                                   : "large tables divided",
                     also);
        else if (r.offer.shard)
            snprintf(r.text, sizeof r.text, "the layers in order on them%s", also);
        else
            snprintf(r.text, sizeof r.text, "each step shared by %d of them%s", r.offer.ways, also);
        if (s->n < QN_REMEDIES)
            s->out[s->n++] = r;
        break;
    }
    return QN_OK;
}

/* One change alone where that does, else all that a single device can do, at the least batch. */
QnStatus qn_advice_remedies(QnCounts *counts, const QnJob *job, const QnOffer *offer,
                            const QnCoefs *k, QnRemedy out[QN_REMEDIES], int *n)
{
    Search s = { counts, job, offer, k, out, 0 };
    QnJob one = *job, both;
    one.batch = offer->batch;
    one.accumulate = offer->accumulate;
    QN_TRY(try_micro(&s, &one, ""));
    one.batch = job->batch; /* the best for each, where it is left open */
    if (job->train) {
        QnJob again = one, host = one;
        again.recompute = true;
        QN_TRY(try_job(&s, &again, offer->n_cards, "recomputed activations", NULL));
        host.offload = true;
        QN_TRY(try_job(&s, &host, offer->n_cards, "the optimizer in the host's memory", NULL));
    }
    QN_TRY(try_precision(&s, &one));
    if (job->train && !s.n) {
        both = one;
        both.recompute = both.offload = true;
        both.batch = offer->batch;
        if (s.offer->batch == 1)
            QN_TRY(try_job(&s, &both, offer->n_cards,
                           "recomputed activations and the optimizer in the host's memory", NULL));
        QN_TRY(try_micro(&s, &both, ", recomputed, optimizer in the host's memory"));
    }
    QN_TRY(try_shards(&s, &one, ""));
    *n = s.n;
    return QN_OK;
}

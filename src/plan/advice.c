#include "plan/advice.h"

#include <stdio.h>
#include <string.h>

/* ---- one offer ---- */

static const char *largest_term(const QnCount *c)
{
    const struct {
        const char *name;
        double bytes;
    } terms[] = { { "weights", c->weights },
                  { "gradients", c->gradients },
                  { "optimizer", c->optimizer },
                  { "activations", c->activations } };
    int best = 0;
    for (int i = 1; i < QN_COUNT(terms); i++)
        best = terms[i].bytes > terms[best].bytes ? i : best;
    return terms[best].name;
}

/* Rent, or what a bought device costs an hour: it keeps 30 % of its price over three years at half
 * of their hours, in a host that doubles the price, with electricity at 0.15 USD a kWh. */
static double usd_per_hour(const QnCard *card, double kw, bool *rented)
{
    *rented = card->cloud_usd > 0;
    if (*rented)
        return card->cloud_usd;
    if (!(card->price_usd > 0))
        return 0;
    return 2 * card->price_usd * 0.7 / (3 * 8760 * 0.5) + 0.15 * kw;
}

static void set_money(const QnJob *job, QnOffer *c)
{
    double kw = 1e-3 * c->cost.power_w, seconds = job->items / c->items_s;
    c->usd_per_hour = c->n_cards * usd_per_hour(c->card, kw / c->n_cards, &c->rented);
    c->hours = seconds / 3600;
    c->kwh = kw * c->hours;
    c->usd = c->usd_per_hour * c->hours;
}

static QnStatus price_batch(QnCounts *counts, const QnJob *job, int64_t batch, const QnCoefs *k,
                            QnOffer *out)
{
    QnCountRequest r = { .train = job->train,
                         .low = qn_numbers_low(out->numbers, job->train),
                         .batch = batch,
                         .image = job->image,
                         .sequence = job->sequence };
    QnCostRequest q = { out->card, out->n_cards, out->numbers, job->tier, job->train, false };
    const QnCount *count;
    QN_TRY(qn_counts_get(counts, job->model, &r, &count));
    if (qn_cost_step(count, &q, k, &out->cost) != QN_OK) {
        snprintf(out->error, sizeof out->error, "%.150s", qn_error_last()->text);
        return QN_OK;
    }
    double items = out->n_cards * (count->tokens > 0 ? count->tokens : count->examples);
    out->batch = batch;
    out->count = count;
    out->term = largest_term(count);
    out->items_s = items / out->cost.step_s;
    out->low_s = items / out->cost.high_s;
    out->high_s = items / out->cost.low_s;
    set_money(job, out);
    return QN_OK;
}

QnStatus qn_offer_price(QnCounts *counts, const QnJob *job, const QnCard *card, int n_cards,
                        const QnCoefs *k, QnOffer *out)
{
    QnNumbers p = job->numbers;
    if (job->any_numbers)
        p = qn_cost_peak(card, QN_NUMBERS_FP16) > 1.5 * qn_cost_peak(card, QN_NUMBERS_FP32)
                ? QN_NUMBERS_FP16_AMP
                : QN_NUMBERS_FP32;
    *out = (QnOffer){ .card = card, .n_cards = n_cards, .numbers = p };
    if (job->batch)
        return price_batch(counts, job, job->batch, k, out);
    for (int64_t batch = 1; batch <= 256; batch *= 2) {
        QnOffer more = *out;
        QN_TRY(price_batch(counts, job, batch, k, &more));
        if (batch > 1 && (!more.cost.fits || more.items_s < out->items_s))
            break;
        *out = more;
        if (more.error[0] || !more.cost.fits)
            break;
    }
    return QN_OK;
}

/* ---- the best ---- */

static bool is_within(const QnJob *job, const QnOffer *c)
{
    return (!(job->deadline_s > 0) || c->hours * 3600 <= job->deadline_s) &&
           (!(job->budget_usd > 0) || (c->usd > 0 && c->usd <= job->budget_usd));
}

QnAdvice qn_advice_of(const QnJob *job, const QnOffer *offers, int n)
{
    QnAdvice a = { -1, -1, -1 };
    for (int i = 0; i < n; i++) {
        const QnOffer *c = &offers[i];
        if (c->error[0] || !c->cost.fits || !is_within(job, c))
            continue;
        if (a.fastest < 0 || c->items_s > offers[a.fastest].items_s)
            a.fastest = i;
        /* without a job, the price of an item decides */
        double usd = c->usd > 0 ? c->usd : 0;
        if (usd > 0 && (a.cheapest < 0 || usd < offers[a.cheapest].usd))
            a.cheapest = i;
    }
    a.best = a.cheapest >= 0 ? a.cheapest : a.fastest;
    return a;
}

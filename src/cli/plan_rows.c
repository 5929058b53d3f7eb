/* The table of quern plan as JSON, an object a line, or CSV. */
#include "cli/plan.h"
#include "cli/plan_sink.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_memory(QnSink *s, const QnOffer *o)
{
    const QnMemoryTerms *m = &o->memory;
    qn_sink_bool(s, "fits", o->cost.fits);
    qn_sink_bool(s, "tight", qn_offer_is_tight(o));
    qn_sink_bytes(s, "memory_bytes", o->cost.memory_bytes);
    qn_sink_bytes(s, "memory_low_bytes", o->memory_low);
    qn_sink_bytes(s, "memory_high_bytes", o->memory_high);
    qn_sink_bytes(s, "room_bytes", qn_offer_room(o));
    qn_sink_text(s, "largest_term", o->term);
    qn_sink_bytes(s, "weights_bytes", m->weights);
    qn_sink_bytes(s, "gradients_bytes", m->gradients);
    qn_sink_bytes(s, "optimizer_bytes", m->optimizer);
    qn_sink_bytes(s, "activations_bytes", m->activations);
    qn_sink_bytes(s, "cache_bytes", o->cache);
    qn_sink_bytes(s, "workspace_bytes", m->workspace);
    qn_sink_bytes(s, "reserve_bytes", o->cost.reserve_bytes);
}

static void put_job(QnSink *s, const QnJob *job, const QnOffer *o)
{
    qn_sink_number(s, "hours", o->hours);
    qn_sink_known(s, "kwh", o->kwh);
    qn_sink_known(s, "usd", o->usd);
    qn_sink_known(s, "outlay_usd", o->outlay);
    if (job->deadline_s > 0)
        qn_sink_number(s, "deadline_chance", qn_advice_chance(job, o));
    qn_sink_known(s, "usd_per_epoch", job->epochs > 0 ? o->usd / job->epochs : 0);
}

static void put_offer(QnSink *s, const QnJob *job, const QnOffer *o)
{
    static const QnCount none = { 0 };
    QnOffer blank = *o;
    if (s->how == QN_SINK_JSON && o->error[0]) {
        qn_sink_text(s, "error", o->error);
        return;
    }
    if (!o->count) {
        blank.count = &none;
        o = &blank;
    }
    qn_sink_text(s, "precision", qn_numbers_name(o->numbers));
    qn_sink_int(s, "batch", o->batch);
    qn_sink_int(s, "accumulate", o->accumulate);
    qn_sink_int(s, "tensor_parallel", QN_MAX(o->ways, 1));
    qn_sink_bool(s, "sharded", o->shard);
    put_memory(s, o);
    qn_sink_number(s, "step_ms", 1e3 * o->cost.step_s);
    qn_sink_number(s, "throughput", o->items_s);
    qn_sink_number(s, "throughput_low", o->low_s);
    qn_sink_number(s, "throughput_high", o->high_s);
    qn_sink_number(s, "mfu", o->cost.mfu);
    qn_sink_number(s, "peak_flops", o->cost.peak_flops); /* that this is a share of */
    qn_sink_text(s, "limit", o->error[0] ? "" : qn_offer_limit(o));
    qn_sink_number(s, "power_w", o->cost.power_w);
    qn_sink_number(s, "power_limit_w", (o->cap > 0 ? o->cap : 1) * o->card->tdp_w);
    qn_sink_known(s, "usd_per_hour", o->usd_per_hour);
    if (o->usd_per_hour > 0)
        qn_sink_bool(s, "rented", o->rented);
    else
        qn_sink_number(s, "rented", NAN);
    if (job->generate) {
        qn_sink_number(s, "first_token_ms", 1e3 * o->first_s);
        qn_sink_number(s, "token_ms", 1e3 * o->token_s);
    }
    if (job->items > 0)
        put_job(s, job, o);
    qn_sink_bool(s, "within_limits", qn_advice_of(job, o, 1).best == 0);
    if (s->how != QN_SINK_JSON)
        qn_sink_text(s, "error", o->error);
}

/* remedy: what was done so that it fits; "" where nothing was. */
static QnStatus put_row(QnSink *s, const QnJob *job, const QnOffer *o, const char *remedy)
{
    qn_sink_begin(s);
    if (s->how == QN_SINK_JSON)
        qn_sink_text(s, "type", "offer");
    qn_sink_text(s, "device", o->card->name);
    qn_sink_int(s, "count", o->n_cards);
    put_offer(s, job, o);
    if (s->how != QN_SINK_JSON || remedy[0])
        qn_sink_text(s, "remedy", remedy);
    return qn_sink_end(s);
}

static void put_best(QnSink *s, const QnJob *job, const QnOffer *o)
{
    char name[QN_PLAN_NAME];
    qn_sink_text(s, "best", qn_plan_name(o, name));
    qn_sink_text(s, "precision", qn_numbers_name(o->numbers));
    qn_sink_int(s, "batch", o->batch);
    qn_sink_int(s, "accumulate", o->accumulate);
    qn_sink_bool(s, "recompute", o->recompute);
    qn_sink_number(s, "throughput", o->items_s);
    if (job->items > 0)
        put_job(s, job, o);
}

/* The last line of JSON: what is recommended; "best" is "" where there is nothing. */
static QnStatus put_advice(const QnPlanTable *t)
{
    QnSink s = { .how = QN_SINK_JSON };
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    const QnOffer *best = qn_plan_best(t);
    char name[QN_PLAN_NAME];
    qn_sink_begin(&s);
    qn_sink_text(&s, "type", "advice");
    qn_sink_text(&s, "model", t->job.model->name);
    qn_sink_text(&s, "task", t->job.train ? "train" : "infer");
    qn_sink_text(&s, "stack", qn_tier_name(t->job.tier));
    if (best)
        put_best(&s, &t->job, best);
    else
        qn_sink_text(&s, "best", "");
    qn_sink_text(&s, "fastest", a.fastest < 0 ? "" : qn_plan_name(&t->offers[a.fastest], name));
    qn_sink_text(&s, "cheapest", a.cheapest < 0 ? "" : qn_plan_name(&t->offers[a.cheapest], name));
    return qn_sink_end(&s);
}

QnStatus qn_plan_rows(const QnArgs *a, const QnPlanTable *t)
{
    QnSink s = { .how = a->json ? QN_SINK_JSON : QN_SINK_HEAD };
    if (!a->json && t->n) {
        QN_TRY(put_row(&s, &t->job, &t->offers[0], ""));
        s.how = QN_SINK_CSV;
    }
    for (int i = 0; i < t->n; i++)
        QN_TRY(put_row(&s, &t->job, &t->offers[i], ""));
    if (t->more_found)
        QN_TRY(put_row(&s, &t->job, &t->more, ""));
    for (int i = 0; i < t->n_remedies; i++)
        QN_TRY(put_row(&s, &t->remedies[i].job, &t->remedies[i].offer, t->remedies[i].text));
    return a->json ? put_advice(t) : QN_OK;
}

/* What is recommended, and what speaks for it. */
#include "cli/plan.h"
#include "cli/plan_recipe.h"

#include <stdio.h>

#define GIB 1073741824.0

static void add_memory(QnStr *out, const QnOffer *o)
{
    const QnMemoryTerms *m = &o->memory;
    const struct {
        const char *name;
        double bytes;
    } terms[] = { { "weights", m->weights },       { "gradients", m->gradients },
                  { "optimizer", m->optimizer },   { "activations", m->activations },
                  { "keys and values", o->cache }, { "workspace", m->workspace },
                  { "context", m->context },       { "fragmentation", m->slack } };
    qn_str_printf(out, "  memory: %.3g GiB of %.4g (%.3g to %.3g)", o->cost.memory_bytes / GIB,
                  o->card->memory_gb, o->memory_low / GIB, o->memory_high / GIB);
    for (int i = 0, n = 0; i < QN_COUNT(terms); i++)
        if (terms[i].bytes > 0.0005 * GIB)
            qn_str_printf(out, "%s%s %.3g", n++ ? ", " : ": ", terms[i].name, terms[i].bytes / GIB);
    qn_str_add(out, "\n");
}

/* What several devices do together. */
static void add_sharing(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    int ways = QN_MAX(o->ways, 1), groups = o->n_cards / ways;
    if (t->job.train) {
        qn_str_printf(out, ", data parallel over %d%s", o->n_cards,
                      o->shard ? ", weights, gradients and optimizer shared among them" : "");
        return;
    }
    if (ways > 1)
        qn_str_printf(out, ", tensor parallel over %d", ways);
    if (groups > 1)
        qn_str_printf(out,
                      o->shard ? ", the layers in order on %d%s" : ", %d%s that serve on their own",
                      groups, ways > 1 ? " such groups" : " devices");
}

static void add_settings(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    qn_str_printf(out, "  with: batch %lld", (long long)o->batch);
    if (o->accumulate > 1)
        qn_str_printf(out, ", %lld micro-batches an update", (long long)o->accumulate);
    qn_str_printf(out, ", %s%s%s", qn_numbers_name(o->numbers),
                  o->recompute ? ", recomputed activations" : "",
                  o->offload ? ", optimizer in the host's memory" : "");
    if (t->job.weight_bits > 0)
        qn_str_printf(out, ", weights of %.3g bits", t->job.weight_bits);
    if (o->cap > 0 && o->cap < 1)
        qn_str_printf(out, ", each device held to %.0f W", o->cap * o->card->tdp_w);
    if (o->n_cards > 1)
        add_sharing(out, t, o);
    bool pictures = !t->subject.recipe || t->subject.recipe->data.format == QN_DATA_FOLDER;
    if (t->job.train && t->job.feed.workers == 0 && t->job.model->family->image && pictures)
        qn_str_printf(out, "; %.0f threads that decode %.0f pictures a second each keep it busy",
                      QN_MAX(1, o->items_s / t->job.feed.rate + 0.5), t->job.feed.rate);
    qn_str_add(out, "\n");
}

/* What its threads do, and what it would take that none waits for them. */
static void add_loader(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    const QnFeed *f = &t->job.feed;
    char is[QN_STR_NUMBER], would[QN_STR_NUMBER];
    int64_t needed = qn_plan_workers_needed(t, o);
    if (needed)
        qn_str_printf(out,
                      "  the loader limits it: %g thread%s prepare %s %s a second, %.4g each "
                      "(--loader-rate); the "
                      "device would do %s, which takes %lld (--workers %lld here, data.workers in "
                      "a recipe)\n",
                      f->workers, f->workers == 1 ? "" : "s", qn_str_si(is, o->items_s),
                      qn_plan_things(t), f->rate, qn_str_si(would, o->fed_s), (long long)needed,
                      (long long)needed);
}

/* More devices than the work is worth. */
static void add_doubts(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    double examples = (double)o->batch * (double)o->accumulate * o->n_cards;
    QnOffer one;
    char rate[QN_STR_NUMBER];
    if (t->job.train && t->samples > 0 && examples > t->samples)
        qn_str_printf(
            out,
            "  an update takes %.0f examples, the data set has %.0f: a smaller --batch or "
            "fewer devices\n",
            examples, t->samples);
    if (o->n_cards > 1 && !o->shard &&
        qn_offer_price(t->counts, &t->job, o->card, 1, &t->coefs, &one) == QN_OK && !one.error[0] &&
        one.cost.fits && one.items_s >= o->items_s)
        qn_str_printf(out, "  a single one is as fast: %s %s a second\n",
                      qn_str_si(rate, one.items_s), qn_plan_things(t));
}

/* A given recipe at these settings. */
static void add_train(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    char settings[QN_PLAN_SETTINGS][QN_PLAN_SETTING];
    if (!t->subject.recipe || !t->job.train)
        return;
    int n = qn_plan_recipe_settings(o, settings);
    qn_str_printf(out, "  quern train %s --set", t->subject.recipe->path);
    for (int i = 0; i < n; i++)
        qn_str_printf(out, " %s", settings[i]);
    qn_str_add(out, "\n");
}

static const char *why_best(const QnPlanTable *t, const QnOffer *o)
{
    const QnJob *job = &t->job;
    if (!(o->usd_per_hour > 0))
        return "the fastest; no price is known";
    if (job->deadline_s > 0)
        return job->budget_usd > 0 ? "the cheapest within deadline and budget"
                                   : "the cheapest that meets the deadline";
    if (job->budget_usd > 0)
        return "the cheapest within the budget";
    if (job->power_w > 0)
        return "the cheapest within the power";
    double fastest = 0;
    for (int i = 0; i < t->n; i++)
        if (qn_advice_of(job, &t->offers[i], 1).best == 0)
            fastest = QN_MAX(fastest, t->offers[i].items_s);
    return job->items > 0 && fastest > 4 * o->items_s
               ? "the cheapest, however long it takes (--deadline)"
               : "the cheapest";
}

/* A deadline that is only just met is missed as often as not. */
static void add_chance(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    const QnJob *job = &t->job;
    const QnOffer *safe = NULL;
    char name[QN_PLAN_NAME], usd[QN_STR_NUMBER];
    double chance = qn_advice_chance(job, o);
    if (!(job->deadline_s > 0))
        return;
    qn_str_printf(out, "  %.0f %% likely to meet the deadline", 100 * chance);
    for (int i = 0; i < t->n && chance < 0.9; i++) {
        const QnOffer *other = &t->offers[i];
        if (qn_advice_of(job, other, 1).best < 0 || qn_advice_chance(job, other) < 0.9)
            continue;
        if (!safe || (other->usd > 0 && other->usd < safe->usd))
            safe = other;
    }
    if (safe)
        qn_str_printf(out, "; %s is %.0f %%, for %s USD", qn_plan_name(safe, name),
                      100 * qn_advice_chance(job, safe), qn_plan_usd_text(safe->usd, usd));
    qn_str_add(out, "\n");
}

void qn_plan_add_best(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    char name[QN_PLAN_NAME], time[QN_STR_NUMBER], low[QN_STR_NUMBER], high[QN_STR_NUMBER],
        usd[QN_STR_NUMBER], kwh[QN_STR_NUMBER];
    double hours_low = o->hours * o->items_s / o->high_s,
           hours_high = o->hours * o->items_s / o->low_s;
    if (t->job.items > 0) {
        qn_str_printf(out, "\ntake %s: %s (%s to %s), %s kWh", qn_plan_name(o, name),
                      qn_plan_span(o->hours, time), qn_plan_span(hours_low, low),
                      qn_plan_span(hours_high, high), qn_plan_amount(o->kwh, kwh));
        if (o->usd > 0)
            qn_str_printf(out, ", %s USD (%s)", qn_plan_usd_text(o->usd, usd),
                          o->rented ? "rented" : "owned");
        if (o->outlay > o->usd)
            qn_str_printf(out, ", %s to pay at once", qn_plan_usd_text(o->outlay, usd));
    } else {
        qn_str_printf(out, "\ntake %s: %s %s a second", qn_plan_name(o, name),
                      qn_str_si(time, o->items_s), qn_plan_things(t));
        if (o->usd_per_hour > 0)
            qn_str_printf(out, ", %.3g USD a million (%s)", o->usd_per_hour / (3.6e-3 * o->items_s),
                          o->rented ? "rented" : "owned");
    }
    qn_str_printf(out, ": %s; limited by %s\n", why_best(t, o), qn_offer_limit(o));
    add_chance(out, t, o);
    if (qn_offer_is_tight(o))
        qn_str_printf(
            out,
            "  its memory is tight: up to %.3g GiB of %.4g may be needed; a smaller --batch is "
            "safer\n",
            o->memory_high / GIB, o->card->memory_gb);
    add_settings(out, t, o);
    add_loader(out, t, o);
    add_doubts(out, t, o);
    add_train(out, t, o);
    if (t->job.generate)
        qn_str_printf(
            out,
            "  answers of %lld tokens to prompts of %lld: the first token after %.3g ms, then one "
            "in %.3g ms for each of the batch\n",
            (long long)t->job.generate, (long long)t->job.prompt, 1e3 * o->first_s,
            1e3 * o->token_s);
    add_memory(out, o);
}

static void add_other(QnStr *out, const QnPlanTable *t, const char *what, const QnOffer *o)
{
    char name[QN_PLAN_NAME], text[QN_STR_NUMBER], usd[QN_STR_NUMBER];
    qn_str_printf(out, "%s is %s: %s %s a second", what, qn_plan_name(o, name),
                  qn_str_si(text, o->items_s), qn_plan_things(t));
    if (t->job.items > 0) {
        qn_str_printf(out, ", %s", qn_plan_span(o->hours, text));
        if (o->usd > 0)
            qn_str_printf(out, ", %s USD", qn_plan_usd_text(o->usd, usd));
    }
    qn_str_add(out, "\n");
}

/* The fastest; and where the best would have to be bought, the cheapest that can be rented. */
void qn_plan_add_others(QnStr *out, const QnPlanTable *t, const QnOffer *best)
{
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    const QnOffer *rented = NULL;
    for (int i = 0; i < t->n && best->usd_per_hour > 0 && !best->rented; i++) {
        const QnOffer *o = &t->offers[i];
        if (o->rented && qn_advice_of(&t->job, o, 1).best == 0 &&
            (!rented || o->usd_per_hour * rented->items_s < rented->usd_per_hour * o->items_s))
            rented = o;
    }
    if (rented)
        add_other(out, t, "the cheapest to rent", rented);
    if (a.fastest >= 0 && &t->offers[a.fastest] != best)
        add_other(out, t, t->job.budget_usd > 0 ? "the fastest within the budget" : "the fastest",
                  &t->offers[a.fastest]);
}

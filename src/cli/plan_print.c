/* The table of quern plan for people, and its recommendation. */
#include "cli/plan.h"
#include "cli/plan_columns.h"
#include "cli/plan_recipe.h"

#include <stdio.h>
#include <string.h>

#define GIB 1073741824.0

const QnOffer *qn_plan_best(const QnPlanTable *t)
{
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    return a.best >= 0 ? &t->offers[a.best] : t->more_found ? &t->more : NULL;
}

const char *qn_plan_things(const QnPlanTable *t)
{
    const QnFamily *f = t->job.model->family;
    return f->image ? "images" : f->sequence ? "tokens" : "examples";
}

/* ---- the table ---- */

enum {
    DEVICE,
    NUMBERS,
    BATCH,
    MEMORY,
    SPEED,
    RANGE,
    MFU,
    LIMIT,
    TIME,
    ENERGY,
    COST,
    EPOCH,
    COLUMNS
};

static const QnColumn columns[COLUMNS] = {
    [DEVICE] = { "device", 'l', 0 }, [NUMBERS] = { "precision", 'l', 5 },
    [BATCH] = { "batch", 'r', 4 },   [MEMORY] = { "memory", 'l', 1 },
    [SPEED] = { "speed", 'r', 0 },   [RANGE] = { "80 % interval", 'l', 6 },
    [MFU] = { "MFU", 'r', 8 },       [LIMIT] = { "limited by", 'l', 7 },
    [TIME] = { "time", 'r', 2 },     [ENERGY] = { "energy", 'r', 9 },
    [COST] = { "cost", 'r', 3 },     [EPOCH] = { "an epoch", 'r', 10 },
};

static void put_fit(QnStr *cell, const QnOffer *o)
{
    double part = o->cost.memory_bytes / qn_offer_room(o);
    if (o->cost.fits)
        qn_str_printf(cell, "%.0f %%%s", 100 * part, qn_offer_is_tight(o) ? " tight" : "");
    else
        qn_str_printf(cell, "no: %.3gx, %s", part, o->term);
}

/* "0.0012", "7.84", "12345" */
const char *qn_plan_usd_text(double usd, char out[QN_STR_NUMBER])
{
    snprintf(out, QN_STR_NUMBER, usd < 0.1 ? "%.2g" : usd < 1e4 ? "%.2f" : "%.0f", usd);
    return out;
}

static void put_money(QnStr *cell, double usd)
{
    char text[QN_STR_NUMBER];
    if (usd > 0)
        qn_str_printf(cell, "$%s", qn_plan_usd_text(usd, text));
    else
        qn_str_add(cell, "?");
}

static void put_job(QnStr *cell, const QnJob *job, const QnOffer *o)
{
    char text[QN_STR_NUMBER];
    qn_str_add(&cell[TIME], qn_plan_span(o->hours, text));
    qn_str_printf(&cell[ENERGY], "%.3g kWh", o->kwh);
    put_money(&cell[COST], o->usd);
    qn_str_add(&cell[COST], !(o->usd > 0) ? "" : o->rented ? " rent" : " own ");
    if (job->epochs > 1)
        put_money(&cell[EPOCH], o->usd > 0 ? o->usd / job->epochs : 0);
}

/* The row begins with the device's name already. */
static const char *why_not(const QnOffer *o)
{
    size_t n = strlen(o->card->name);
    bool repeats = !strncmp(o->error, o->card->name, n) && !strncmp(o->error + n, ": ", 2);
    return o->error + (repeats ? n + 2 : 0);
}

/* Without a job, an hour's price stands in place of its cost. */
static QnStatus add_row(QnColumns *c, const QnJob *job, const QnOffer *o, const QnOffer *best)
{
    char name[QN_PLAN_NAME], text[QN_STR_NUMBER], high[QN_STR_NUMBER];
    QnStr *cell = qn_columns_row(c,
                                 o == best                      ? QN_ROW_BEST
                                 : o->error[0] || !o->cost.fits ? QN_ROW_FAINT
                                                                : QN_ROW_PLAIN,
                                 o->error[0] ? why_not(o) : NULL);
    if (!cell)
        return QN_ENOMEM;
    qn_str_add(&cell[DEVICE], qn_plan_name(o, name));
    if (o->error[0])
        return QN_OK;
    qn_str_add(&cell[NUMBERS], qn_numbers_name(o->numbers));
    if (job->weight_bits > 0)
        qn_str_printf(&cell[NUMBERS], " w%.3g", job->weight_bits);
    qn_str_printf(&cell[BATCH], o->accumulate > 1 ? "%lld x %lld" : "%lld", (long long)o->batch,
                  (long long)o->accumulate);
    put_fit(&cell[MEMORY], o);
    if (!o->cost.fits) {
        c->row[c->rows - 1].last = MEMORY;
        return QN_OK;
    }
    qn_str_add(&cell[SPEED], qn_str_si(text, o->items_s));
    qn_str_printf(&cell[RANGE], "%s to %s", qn_str_si(text, o->low_s), qn_str_si(high, o->high_s));
    qn_str_printf(&cell[MFU], "%.1f %%", 100 * o->cost.mfu);
    qn_str_add(&cell[LIMIT], qn_offer_limit(o));
    if (job->items > 0) {
        put_job(cell, job, o);
    } else if (o->usd_per_hour > 0) {
        put_money(&cell[COST], o->usd_per_hour);
        qn_str_add(&cell[COST], o->rented ? "/h rent" : "/h own ");
    }
    return QN_OK;
}

static QnStatus print_table(const QnPlanTable *t)
{
    QnColumns c = { .column = columns, .n = COLUMNS, .least = 20 };
    const QnOffer *best = qn_plan_best(t);
    QnStatus st = QN_OK;
    if (t->more_found)
        st = add_row(&c, &t->job, &t->more, best);
    for (int i = 0; i < t->n && st == QN_OK; i++)
        st = add_row(&c, &t->job, &t->offers[i], best);
    if (st == QN_OK)
        st = qn_columns_print(&c, stdout);
    qn_columns_fini(&c);
    return st;
}

/* ---- what is recommended ---- */

static void print_memory(const QnOffer *o)
{
    const QnMemoryTerms *m = &o->memory;
    const struct {
        const char *name;
        double bytes;
    } terms[] = { { "weights", m->weights },       { "gradients", m->gradients },
                  { "optimizer", m->optimizer },   { "activations", m->activations },
                  { "keys and values", o->cache }, { "workspace", m->workspace },
                  { "context", m->context },       { "fragmentation", m->slack } };
    printf("  memory: %.3g GiB of %.4g (%.3g to %.3g)", o->cost.memory_bytes / GIB,
           o->card->memory_gb, o->memory_low / GIB, o->memory_high / GIB);
    for (int i = 0, n = 0; i < QN_COUNT(terms); i++)
        if (terms[i].bytes > 0)
            printf("%s%s %.3g", n++ ? ", " : ": ", terms[i].name, terms[i].bytes / GIB);
    printf("\n");
}

/* What several devices do together. */
static void print_sharing(const QnPlanTable *t, const QnOffer *o)
{
    int ways = QN_MAX(o->ways, 1), groups = o->n_cards / ways;
    if (t->job.train) {
        printf(", data parallel over %d%s", o->n_cards,
               o->shard ? ", weights, gradients and optimizer shared among them" : "");
        return;
    }
    if (ways > 1)
        printf(", tensor parallel over %d", ways);
    if (groups > 1)
        printf(o->shard ? ", the layers in order on %d%s" : ", %d%s that serve on their own",
               groups, ways > 1 ? " such groups" : " devices");
}

static void print_settings(const QnPlanTable *t, const QnOffer *o)
{
    printf("  with: batch %lld", (long long)o->batch);
    if (o->accumulate > 1)
        printf(", %lld micro-batches an update", (long long)o->accumulate);
    printf(", %s%s%s", qn_numbers_name(o->numbers), o->recompute ? ", recomputed activations" : "",
           o->offload ? ", optimizer in the host's memory" : "");
    if (o->cap > 0 && o->cap < 1)
        printf(", each device held to %.0f W", o->cap * o->card->tdp_w);
    if (o->n_cards > 1)
        print_sharing(t, o);
    bool pictures = !t->subject.recipe || t->subject.recipe->data.format == QN_DATA_FOLDER;
    if (t->job.train && t->job.feed.workers == 0 && t->job.model->family->image && pictures)
        printf("; %.0f threads that decode %.0f pictures a second each keep it busy",
               QN_MAX(1, o->items_s / t->job.feed.rate + 0.5), t->job.feed.rate);
    printf("\n");
}

/* What its threads do, and what it would take that none waits for them. */
static void print_loader(const QnPlanTable *t, const QnOffer *o)
{
    const QnFeed *f = &t->job.feed;
    char is[QN_STR_NUMBER], would[QN_STR_NUMBER];
    int64_t needed = qn_plan_workers_needed(t, o);
    if (needed)
        printf(
            "  the loader limits it: %g thread%s prepare %s %s a second; the device would do %s, "
            "which takes %lld (--workers %lld here, data.workers in a recipe)\n",
            f->workers, f->workers == 1 ? "" : "s", qn_str_si(is, o->items_s), qn_plan_things(t),
            qn_str_si(would, o->fed_s), (long long)needed, (long long)needed);
}

/* A given recipe at these settings. */
static void print_train(const QnPlanTable *t, const QnOffer *o)
{
    char settings[QN_PLAN_SETTINGS][QN_PLAN_SETTING];
    if (!t->subject.recipe || !t->job.train)
        return;
    int n = qn_plan_recipe_settings(o, settings);
    printf("  quern train %s --set", t->subject.recipe->path);
    for (int i = 0; i < n; i++)
        printf(" %s", settings[i]);
    printf("\n");
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
    return job->power_w > 0 ? "the cheapest within the power" : "the cheapest";
}

/* A deadline that is only just met is missed as often as not. */
static void print_chance(const QnPlanTable *t, const QnOffer *o)
{
    const QnJob *job = &t->job;
    const QnOffer *safe = NULL;
    char name[QN_PLAN_NAME], usd[QN_STR_NUMBER];
    double chance = qn_advice_chance(job, o);
    if (!(job->deadline_s > 0))
        return;
    printf("  %.0f %% likely to meet the deadline", 100 * chance);
    for (int i = 0; i < t->n && chance < 0.9; i++) {
        const QnOffer *other = &t->offers[i];
        if (qn_advice_of(job, other, 1).best < 0 || qn_advice_chance(job, other) < 0.9)
            continue;
        if (!safe || (other->usd > 0 && other->usd < safe->usd))
            safe = other;
    }
    if (safe)
        printf("; %s is %.0f %%, for %s USD", qn_plan_name(safe, name),
               100 * qn_advice_chance(job, safe), qn_plan_usd_text(safe->usd, usd));
    printf("\n");
}

static void print_best(const QnPlanTable *t, const QnOffer *o)
{
    char name[QN_PLAN_NAME], time[QN_STR_NUMBER], low[QN_STR_NUMBER], high[QN_STR_NUMBER],
        usd[QN_STR_NUMBER];
    double hours_low = o->hours * o->items_s / o->high_s,
           hours_high = o->hours * o->items_s / o->low_s;
    if (t->job.items > 0) {
        printf("\ntake %s: %s (%s to %s), %.3g kWh", qn_plan_name(o, name),
               qn_plan_span(o->hours, time), qn_plan_span(hours_low, low),
               qn_plan_span(hours_high, high), o->kwh);
        if (o->usd > 0)
            printf(", %s USD (%s)", qn_plan_usd_text(o->usd, usd), o->rented ? "rented" : "owned");
        if (o->outlay > o->usd)
            printf(", %s to pay at once", qn_plan_usd_text(o->outlay, usd));
    } else {
        printf("\ntake %s: %s %s a second", qn_plan_name(o, name), qn_str_si(time, o->items_s),
               qn_plan_things(t));
        if (o->usd_per_hour > 0)
            printf(", %.3g USD a million (%s)", o->usd_per_hour / (3.6e-3 * o->items_s),
                   o->rented ? "rented" : "owned");
    }
    printf(": %s; limited by %s\n", why_best(t, o), qn_offer_limit(o));
    print_chance(t, o);
    if (qn_offer_is_tight(o))
        printf("  its memory is tight: up to %.3g GiB of %.4g may be needed; a smaller --batch is "
               "safer\n",
               o->memory_high / GIB, o->card->memory_gb);
    print_settings(t, o);
    print_loader(t, o);
    print_train(t, o);
    if (t->job.generate)
        printf(
            "  answers of %lld tokens to prompts of %lld: the first token after %.3g ms, then one "
            "in %.3g ms for each of the batch\n",
            (long long)t->job.generate, (long long)t->job.prompt, 1e3 * o->first_s,
            1e3 * o->token_s);
    print_memory(o);
}

static void print_other(const QnPlanTable *t, const char *what, const QnOffer *o)
{
    char name[QN_PLAN_NAME], text[QN_STR_NUMBER], usd[QN_STR_NUMBER];
    printf("%s is %s: %s %s a second", what, qn_plan_name(o, name), qn_str_si(text, o->items_s),
           qn_plan_things(t));
    if (t->job.items > 0) {
        printf(", %s", qn_plan_span(o->hours, text));
        if (o->usd > 0)
            printf(", %s USD", qn_plan_usd_text(o->usd, usd));
    }
    printf("\n");
}

/* The fastest; and where the best would have to be bought, the cheapest that can be rented. */
static void print_others(const QnPlanTable *t, const QnOffer *best)
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
        print_other(t, "the cheapest to rent", rented);
    if (a.fastest >= 0 && &t->offers[a.fastest] != best)
        print_other(t, t->job.budget_usd > 0 ? "the fastest within the budget" : "the fastest",
                    &t->offers[a.fastest]);
}

/* ---- all ---- */

void qn_plan_print_money(const QnMoney *m)
{
    printf("bought: used %g years at %.0f %% of their hours, sold for %.0f %%; ", m->years,
           100 * m->utilisation, 100 * m->residual);
    if (m->host > 0)
        printf("%g times the device's price with its computer", m->host);
    else
        printf("with its computer 2 times the device's price (desktop), 1.5 (server)");
    printf("; electricity %g USD a kWh at the plug, PUE %g\n", m->electricity, m->pue);
}

static void print_head(const QnPlanTable *t)
{
    const QnJob *job = &t->job;
    char n[QN_STR_NUMBER];
    printf("%s, %s under %s", job->model->name, job->train ? "training" : "inference",
           qn_tier_name(job->tier));
    if (job->items > 0) {
        printf(": %s %s", qn_str_si(n, job->items), qn_plan_things(t));
        if (job->epochs > 0)
            printf(" in %.4g epoch%s", job->epochs, job->epochs == 1 ? "" : "s");
    }
    if (job->evaluation > 0)
        printf(", and %.2g of the time for evaluation", job->evaluation);
    if (job->model->family->sequence > 0 && !job->generate && !t->subject.recipe &&
        !t->subject.onnx)
        printf("; sequences of %lld",
               (long long)(job->sequence ? job->sequence : job->model->family->sequence));
    printf("; speed: %s a second\n", qn_plan_things(t));
    if (t->subject.recipe && !t->subject.has_data)
        printf("its data set is not here: %s\n", t->subject.no_data);
}

QnStatus qn_plan_print(const QnArgs *a, QnPlanTable *t)
{
    const QnOffer *best = qn_plan_best(t);
    bool fits = false;
    if (a->json || a->text[QN_PLAN_CSV])
        return qn_plan_rows(a, t);
    print_head(t);
    QN_TRY(print_table(t));
    for (int i = 0; i < t->n; i++)
        fits |= !t->offers[i].error[0] && t->offers[i].cost.fits;
    if (!fits) {
        qn_plan_print_remedies(a, t);
        return QN_OK;
    }
    if (best) {
        if (t->more_found)
            printf("\nno single device is within all limits, several are:");
        print_best(t, best);
        print_others(t, best);
    }
    qn_plan_print_cluster_hint(a, t, best);
    qn_plan_print_money(&t->job.money);
    return QN_OK;
}

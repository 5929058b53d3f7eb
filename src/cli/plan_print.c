/* The table of quern plan for people, and its recommendation. */
#include "cli/plan.h"
#include "cli/plan_columns.h"

#include <stdio.h>
#include <string.h>

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
    WATTS,
    TIME,
    ENERGY,
    COST,
    EPOCH,
    COLUMNS
};

static const QnColumn columns[COLUMNS] = {
    [DEVICE] = { "device", 'l', 0 },   [NUMBERS] = { "precision", 'l', 5 },
    [BATCH] = { "batch", 'r', 4 },     [MEMORY] = { "memory", 'l', 1 },
    [SPEED] = { "speed", 'r', 0 },     [RANGE] = { "80 % interval", 'l', 6 },
    [MFU] = { "MFU", 'r', 8 },         [LIMIT] = { "limited by", 'l', 7 },
    [WATTS] = { "watts", 'r', 2 },     [TIME] = { "time", 'r', 2 },
    [ENERGY] = { "energy", 'r', 9 },   [COST] = { "cost", 'r', 3 },
    [EPOCH] = { "an epoch", 'r', 10 },
};

static void put_fit(QnStr *cell, const QnOffer *o)
{
    double part = o->cost.memory_bytes / qn_offer_room(o);
    if (o->cost.fits)
        qn_str_printf(cell, "%.0f %%%s", 100 * part, qn_offer_is_tight(o) ? " tight" : "");
    else
        qn_str_printf(cell, "no: %.3g times what it has, mostly %s", part, o->term);
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

/* Of a limited figure: whether it is over. All have the room, so that they line up. */
static void mark(QnStr *cell, double limit, bool within)
{
    if (limit > 0)
        qn_str_add(cell, within ? "  " : " !");
}

static void put_job(QnStr *cell, const QnJob *job, const QnOffer *o)
{
    char text[QN_STR_NUMBER];
    qn_str_add(&cell[TIME], qn_plan_span(o->hours, text));
    mark(&cell[TIME], job->deadline_s, 3600 * o->hours <= job->deadline_s);
    qn_str_printf(&cell[ENERGY], "%s kWh", qn_plan_amount(o->kwh, text));
    put_money(&cell[COST], o->usd);
    qn_str_add(&cell[COST], !(o->usd > 0) ? "" : o->rented ? " rent" : " own ");
    mark(&cell[COST], job->budget_usd, o->outlay > 0 && o->outlay <= job->budget_usd);
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
    if (job->power_w > 0) {
        qn_str_printf(&cell[WATTS], "%.0f", o->cost.power_w);
        mark(&cell[WATTS], job->power_w, o->cost.power_w > 0 && o->cost.power_w <= job->power_w);
    }
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

/* ---- all ---- */

static void add_money(QnStr *out, const QnMoney *m)
{
    qn_str_printf(out, "bought: used %g years at %.0f %% of their hours, sold for %.0f %%; ",
                  m->years, 100 * m->utilisation, 100 * m->residual);
    if (m->host > 0)
        qn_str_printf(out, "%g times the device's price with its computer", m->host);
    else
        qn_str_printf(out, "with its computer 2 times the device's price (desktop), 1.5 (server)");
    qn_str_printf(out, "; electricity %g USD a kWh at the plug, PUE %g\n", m->electricity, m->pue);
}

void qn_plan_print_money(const QnMoney *m)
{
    QnStr text = { 0 };
    add_money(&text, m);
    qn_columns_fold(qn_str_text(&text), stdout);
    qn_str_fini(&text);
}

static void add_head(QnStr *out, const QnPlanTable *t)
{
    const QnJob *job = &t->job;
    char n[QN_STR_NUMBER];
    qn_str_printf(out, "%s, %s under %s", job->model->name, job->train ? "training" : "inference",
                  qn_tier_name(job->tier));
    if (job->items > 0) {
        qn_str_printf(out, ": %s %s", qn_str_si(n, job->items), qn_plan_things(t));
        if (job->epochs > 0)
            qn_str_printf(out, " in %.4g epoch%s", job->epochs, job->epochs == 1 ? "" : "s");
    }
    if (job->evaluation > 0)
        qn_str_printf(out, ", and %.2g of the time for evaluation", job->evaluation);
    if (job->model->family->sequence > 0 && !job->generate && !t->subject.recipe &&
        !t->subject.onnx)
        qn_str_printf(out, "; sequences of %lld",
                      (long long)(job->sequence ? job->sequence : job->model->family->sequence));
    qn_str_printf(out, "; speed: %s a second\n", qn_plan_things(t));
    if (t->subject.recipe && !t->subject.has_data)
        qn_str_printf(out, "its data set is not here: %s%s\n", t->subject.no_data,
                      job->items > 0 ? "" : "; --samples N gives the time and cost of the run");
}

/* What the table's mark means, where it has one. */
static void add_marks(QnStr *out, const QnPlanTable *t)
{
    bool any = false;
    for (int i = 0; i < t->n; i++)
        any |= !t->offers[i].error[0] && t->offers[i].cost.fits &&
               qn_advice_of(&t->job, &t->offers[i], 1).best < 0;
    qn_str_add(out, any ? "!: over the limit\n" : "");
}

/* Below the table. */
static void add_answer(QnStr *out, const QnArgs *a, const QnPlanTable *t)
{
    const QnOffer *best = qn_plan_best(t);
    bool fits = false;
    for (int i = 0; i < t->n; i++)
        fits |= !t->offers[i].error[0] && t->offers[i].cost.fits;
    if (!fits) {
        qn_plan_add_remedies(out, a, t);
        return;
    }
    add_marks(out, t);
    if (best) {
        qn_str_add(out,
                   t->more_found ? "\nno single device is within all limits, several are:" : "");
        qn_plan_add_best(out, t, best);
        qn_plan_add_others(out, t, best);
    }
    qn_plan_add_cluster_hint(out, a, t, best);
    add_money(out, &t->job.money);
    if (t->job.tier == QN_TIER_QUERN)
        qn_str_add(out, "quern: no figures of it are published, its coefficients are start values; "
                        "--stack pytorch has been fitted\n");
}

/* Prints and empties it. */
static QnStatus say(QnStr *text)
{
    QnStatus st = text->st;
    if (st == QN_OK)
        qn_columns_fold(qn_str_text(text), stdout);
    qn_str_fini(text);
    return st;
}

QnStatus qn_plan_print(const QnArgs *a, QnPlanTable *t)
{
    QnStr text = { 0 };
    if (a->json || a->text[QN_PLAN_CSV])
        return qn_plan_rows(a, t);
    add_head(&text, t);
    QN_TRY(say(&text));
    QN_TRY(print_table(t));
    add_answer(&text, a, t);
    return say(&text);
}

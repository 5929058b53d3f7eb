/* What quern plan MODEL shows: the table or an explanation, bars, a page. */
#include "cli/plan_explain.h"
#include "cli/plan_html.h"

#include "base/chart.h"
#include "base/term.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- bars ---- */

enum { BARS = 15 };

typedef struct Bar {
    const QnOffer *offer;
    double value;
} Bar;

static int by_value(const void *pa, const void *pb)
{
    const Bar *a = pa, *b = pb;
    return a->value < b->value ? 1 : a->value > b->value ? -1 : a->offer < b->offer ? -1 : 1;
}

static double per_usd(const QnOffer *o)
{
    return o->usd_per_hour > 0 ? 3600 * o->items_s / o->usd_per_hour : 0;
}

static double speed(const QnOffer *o)
{
    return o->items_s;
}

/* The longest bars; those without a value have none. */
static void add_bars(QnStr *out, const QnPlanTable *t, const char *title,
                     double (*value)(const QnOffer *), const QnChartText *how)
{
    Bar all[QN_PLAN_MOST];
    QnChartBar bars[BARS];
    char names[BARS][80], texts[BARS][96], number[QN_STR_NUMBER], time[QN_STR_NUMBER];
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (!t->offers[i].error[0] && t->offers[i].cost.fits && value(&t->offers[i]) > 0)
            all[n++] = (Bar){ &t->offers[i], value(&t->offers[i]) };
    if (!n)
        return;
    qsort(all, (size_t)n, sizeof *all, by_value);
    int shown = QN_MIN(n, BARS);
    for (int i = 0; i < shown; i++) {
        const QnOffer *o = all[i].offer;
        qn_plan_offer_name(o, names[i], sizeof names[i]);
        if (value == speed && t->job.items > 0)
            snprintf(texts[i], sizeof texts[i], "%s  %s", qn_str_si(number, all[i].value),
                     qn_plan_span(o->hours, time));
        else
            snprintf(texts[i], sizeof texts[i], "%s", qn_str_si(number, all[i].value));
        bars[i] = (QnChartBar){ names[i], all[i].value, texts[i] };
    }
    qn_str_printf(out, "\n%s", title);
    if (shown < n)
        qn_str_printf(out, " (the best %d of %d)", shown, n);
    qn_str_add(out, "\n");
    qn_chart_bars(out, bars, shown, 0, how);
}

static QnStatus print_bars(const QnPlanTable *t)
{
    QnStr text = { 0 };
    char title[80];
    const char *unit = t->job.model->family->image ? "images" : "tokens";
    QnChartText how = { .width = QN_MIN(qn_term_width(stdout), 100),
                        .unicode = qn_term_unicode(),
                        .color = qn_term_color(stdout) };
    snprintf(title, sizeof title, "%s for a USD", unit);
    add_bars(&text, t, title, per_usd, &how);
    snprintf(title, sizeof title, "%s a second%s", unit,
             t->job.items > 0 ? ", time of the job" : "");
    add_bars(&text, t, title, speed, &how);
    QnStatus st = text.st;
    if (st == QN_OK)
        fputs(qn_str_text(&text), stdout);
    qn_str_fini(&text);
    return st;
}

/* ---- all of it ---- */

/* The offer that --explain names; else the recommended one, else the fastest that could be priced;
 * NULL: there is none. */
static QnStatus choose(const QnArgs *a, const QnCatalogue *c, QnPlanTable *t, QnOffer *named,
                       const QnOffer **out)
{
    *out = NULL;
    if (a->text[QN_PLAN_EXPLAIN]) {
        char *text = qn_strdup(a->text[QN_PLAN_EXPLAIN]);
        QnStatus st = text ? qn_plan_price_named(c, text, t, named) : QN_ENOMEM;
        qn_free(text);
        *out = named;
        return st;
    }
    QnAdvice advice = qn_advice_of(&t->job, t->offers, t->n);
    if (advice.best >= 0)
        *out = &t->offers[advice.best];
    for (int i = 0; !*out && i < t->n; i++)
        if (!t->offers[i].error[0])
            *out = &t->offers[i];
    return QN_OK;
}

/* A prediction that earlier runs have changed says so. */
static void print_earlier(const QnOffer *o)
{
    if (!o->error[0] && o->cost.n_earlier)
        printf("%s: %lld earlier run%s of this step made it %.2f times as long ('quern plan "
               "residuals')\n",
               o->card->name, (long long)o->cost.n_earlier, o->cost.n_earlier == 1 ? "" : "s",
               o->cost.earlier);
}

QnStatus qn_plan_view(const QnArgs *a, const QnCatalogue *c, QnPlanTable *t)
{
    bool explain = a->text[QN_PLAN_EXPLAIN] != NULL;
    QnOffer named;
    const QnOffer *offer;
    QnExplain e = { 0 };
    QnStatus st = QN_OK;
    if (!explain)
        QN_TRY(qn_plan_print(a, t));
    for (int i = 0; !a->json && !a->text[QN_PLAN_CSV] && i < t->n; i++)
        print_earlier(&t->offers[i]);
    if (!explain && !a->json && !a->text[QN_PLAN_CSV] &&
        (a->text[QN_PLAN_CHART] || qn_term_is_tty(stdout)))
        QN_TRY(print_bars(t));
    if (!explain && !a->text[QN_PLAN_HTML])
        return QN_OK;
    QN_TRY(choose(a, c, t, &named, &offer));
    if (offer)
        QN_TRY(qn_explain_init(&e, t->counts, &t->job, offer, &t->coefs));
    if (explain)
        st = qn_plan_explain(a, &e);
    if (explain && !a->json)
        print_earlier(offer);
    if (st == QN_OK && a->text[QN_PLAN_HTML])
        st = qn_plan_html(a->text[QN_PLAN_HTML], t, offer ? &e : NULL);
    if (offer)
        qn_explain_fini(&e);
    return st;
}

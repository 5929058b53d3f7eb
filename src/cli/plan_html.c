#include "cli/plan_html.h"

#include "cli/plan_charts.h"
#include "cli/plan_html_impl.h"

#include "base/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- small things ---- */

static void add_fact(QnStr *out, const char *name, const char *value, const char *small)
{
    qn_str_add(out, "<div><dt>");
    qn_svg_escape(out, name);
    qn_str_add(out, "</dt><dd>");
    qn_svg_escape(out, value);
    if (small) {
        qn_str_add(out, "<small>");
        qn_svg_escape(out, small);
        qn_str_add(out, "</small>");
    }
    qn_str_add(out, "</dd></div>\n");
}

static void add_key(QnStr *out, const char *class, const char *text)
{
    qn_str_printf(out,
                  "<span><svg viewBox=\"0 0 11 11\" aria-hidden=\"true\"><rect width=\"11\" "
                  "height=\"11\" rx=\"2\" class=\"%s\"/></svg>",
                  class);
    qn_svg_escape(out, text);
    qn_str_add(out, "</span>\n");
}

const char *qn_plan_html_unit(const QnPlanTable *t)
{
    return t->job.model->family->image ? "images" : "tokens";
}

const char *qn_plan_html_span(char out[QN_STR_NUMBER], double seconds)
{
    return qn_str_duration(out, (int64_t)QN_MIN(seconds * 1e9, 9e18));
}

/* ---- what to take ---- */

static void add_facts(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    char text[96], small[96], a[QN_STR_NUMBER], b[QN_STR_NUMBER];
    qn_str_add(out, "<dl>\n");
    snprintf(text, sizeof text, "%s a second", qn_plan_html_unit(t));
    snprintf(small, sizeof small, "80 %%: %s to %s", qn_str_si(a, o->low_s),
             qn_str_si(b, o->high_s));
    add_fact(out, text, qn_str_si(a, o->items_s), small);
    double s, usd;
    if (qn_plan_point(t, o, &s, &usd)) {
        snprintf(text, sizeof text, "$%.4g", usd);
        snprintf(small, sizeof small, "%s, of %s %s", o->rented ? "rented" : "owned",
                 qn_str_si(a, qn_plan_priced_items(t)), qn_plan_html_unit(t));
        add_fact(out, "price", text, small);
        snprintf(small, sizeof small, "%.4g kWh", 1e-3 * o->cost.power_w * s / 3600);
        add_fact(out, "time", qn_plan_html_span(a, s), small);
    }
    snprintf(text, sizeof text, "%.1f GB", 1e-9 * o->cost.memory_bytes);
    snprintf(small, sizeof small, "of %.4g GB; most is %s", 0x1p30 * 1e-9 * o->card->memory_gb,
             o->term);
    add_fact(out, "memory", text, small);
    snprintf(text, sizeof text, "%lld", (long long)o->batch);
    add_fact(out, "batch of a device", text, qn_numbers_name(o->numbers));
    snprintf(text, sizeof text, "%.0f W", o->cost.power_w);
    snprintf(small, sizeof small, "%.1f %% of the peak rate", 100 * o->cost.mfu);
    add_fact(out, "power", text, small);
    qn_str_add(out, "</dl>\n");
}

/* What comes nearest, where nothing is to be recommended. */
static void add_nothing(QnStr *out, const QnPlanTable *t)
{
    const QnOffer *near = NULL;
    double least = INFINITY;
    char name[80];
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        double part = o->cost.memory_bytes / (0x1p30 * o->card->memory_gb);
        if (!o->error[0] && part < least) {
            least = part;
            near = o;
        }
    }
    qn_str_add(out, "<section class=\"take none\">\n<h2>Nothing to recommend</h2>\n<p>");
    if (near && !near->cost.fits) {
        qn_plan_offer_name(near, name, sizeof name);
        qn_svg_escape(out, name);
        qn_str_printf(out, " comes nearest and lacks %.2f GB; most of it goes to %s.",
                      1e-9 * near->cost.memory_bytes - 0x1p30 * 1e-9 * near->card->memory_gb,
                      near->term);
    } else {
        qn_str_add(out, near ? "It fits, but no device keeps the limits."
                             : "No device of the table can run it.");
    }
    qn_str_add(out, "</p>\n</section>\n");
}

/* What --explain names stands first, for the charts below are of it. */
static void add_explained(QnStr *out, const QnPlanTable *t, const QnOffer *o, const QnOffer *best)
{
    char name[80];
    qn_plan_offer_name(o, name, sizeof name);
    qn_str_add(out, "<section class=\"take\">\n<h2>");
    qn_svg_escape(out, name);
    qn_str_add(out, ", explained</h2>\n<p class=\"note\">");
    qn_str_add(out, o->cost.fits ? "" : "It does not fit. ");
    qn_plan_offer_name(best, name, sizeof name);
    qn_str_add(out, "Recommended of all devices is ");
    qn_svg_escape(out, name);
    qn_str_add(out, ".</p>\n");
    add_facts(out, t, o);
    qn_str_add(out, "</section>\n");
}

static void add_advice(QnStr *out, const QnPlanTable *t, const QnExplain *e)
{
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    char name[80], fast[80];
    if (a.best < 0) {
        add_nothing(out, t);
        return;
    }
    const QnOffer *best = &t->offers[a.best];
    if (e && (e->offer.card != best->card || e->offer.n_cards != best->n_cards)) {
        add_explained(out, t, &e->offer, best);
        return;
    }
    qn_str_add(out, "<section class=\"take\">\n");
    qn_plan_offer_name(best, name, sizeof name);
    qn_plan_offer_name(&t->offers[a.fastest], fast, sizeof fast);
    qn_str_add(out, "<h2>Take ");
    qn_svg_escape(out, name);
    qn_str_add(out, "</h2>\n<p class=\"note\">");
    qn_str_add(out, a.best == a.cheapest ? "The cheapest" : "The fastest");
    qn_str_add(out, t->job.deadline_s > 0 ? " that meets the deadline" : " of those that fit");
    qn_str_add(out, t->job.budget_usd > 0 ? " within the budget." : ".");
    if (a.fastest != a.best) {
        qn_str_add(out, " The fastest is ");
        qn_svg_escape(out, fast);
        qn_str_add(out, ".");
    }
    qn_str_add(out, "</p>\n");
    add_facts(out, t, best);
    qn_str_add(out, "</section>\n");
}

/* ---- charts ---- */

static void add_front(QnStr *out, const QnPlanTable *t)
{
    char text[200];
    int priced = 0;
    double s, usd;
    for (int i = 0; i < t->n; i++)
        priced += qn_plan_point(t, &t->offers[i], &s, &usd);
    if (!priced)
        return;
    qn_str_add(out, "<section>\n<h2>Time against price</h2>\n");
    snprintf(
        text, sizeof text,
        "<p class=\"note\">%d of %d devices fit and have a price. Those on the line are beaten "
        "by none in both; point at a dot for its figures.</p>\n",
        priced, t->n);
    qn_str_add(out, text);
    qn_plan_chart_front(out, t);
    qn_str_add(out, "</section>\n");
}

static void add_roofline(QnStr *out, const QnExplain *e)
{
    char name[80], class[24];
    double without = 0;
    for (int64_t i = 0; i < e->n_parts; i++)
        without += e->parts[i].flops > 0 ? 0 : e->parts[i].seconds;
    qn_plan_offer_name(&e->offer, name, sizeof name);
    qn_str_add(out, "<section>\n<h2>The operators under the roof of ");
    qn_svg_escape(out, name);
    qn_str_printf(out,
                  "</h2>\n<p class=\"note\">A circle's area is its share of the step; under the "
                  "slope memory is the limit, under the flat line arithmetic.%s",
                  without > 0.0005 * e->step_s ? "" : "</p>\n");
    if (without > 0.0005 * e->step_s)
        qn_str_printf(out,
                      " Operators that only move data, %.1f %% of the time, are not drawn.</p>\n",
                      100 * without / e->step_s);
    qn_str_add(out, "<div class=\"legend\">\n");
    for (int i = 0; i < QN_WORK_KINDS; i++) {
        snprintf(class, sizeof class, "k%d", i);
        if (e->kinds[i].flops > 0)
            add_key(out, class, qn_work_kind_name((QnWorkKind)i));
    }
    qn_str_add(out, "</div>\n");
    qn_plan_chart_roofline(out, e);
    qn_str_add(out, "</section>\n");
}

static void add_time(QnStr *out, const QnExplain *e)
{
    char time[QN_STR_NUMBER], class[24];
    qn_str_printf(out,
                  "<section>\n<h2>Where a step's %s go</h2>\n<p class=\"note\">By kind of work, "
                  "and by what holds each kernel back.</p>\n<div class=\"legend\">\n",
                  qn_plan_html_span(time, e->step_s));
    for (int i = 0; i < QN_LIMITS; i++) {
        snprintf(class, sizeof class, "limit%d", i);
        if (e->offer.cost.by_limit[i] > 0)
            add_key(out, class, qn_limit_name((QnLimit)i));
    }
    qn_str_add(out, "</div>\n");
    qn_plan_chart_time(out, e);
    qn_str_add(out, "</section>\n");
}

static void add_memory(QnStr *out, const QnPlanTable *t)
{
    QnStr chart = { 0 };
    int shown;
    char class[24];
    qn_plan_chart_memory(&chart, t, &shown);
    if (shown) {
        qn_str_add(out, "<section>\n<h2>Memory</h2>\n<p class=\"note\">What a device would hold, "
                        "before the pale bar of what it has");
        if (shown < t->n)
            qn_str_printf(out, "; %d of %d devices: the front, and the fastest of each size", shown,
                          t->n);
        qn_str_add(out, ".</p>\n<div class=\"legend\">\n");
        for (int i = 0; qn_plan_term_name(i); i++) {
            snprintf(class, sizeof class, "bar term%d", i);
            if (strstr(qn_str_text(&chart), class))
                add_key(out, class + strlen("bar "), qn_plan_term_name(i));
        }
        add_key(out, "room", "free");
        qn_str_add(out, "</div>\n");
        qn_str_add(out, qn_str_text(&chart));
        qn_str_add(out, "</section>\n");
    }
    if (chart.st)
        out->st = chart.st;
    qn_str_fini(&chart);
}

/* ---- the page ---- */

static void add_page(QnStr *out, const QnPlanTable *t, const QnExplain *e)
{
    char items[QN_STR_NUMBER];
    const char *task = t->job.train ? "training" : "inference";
    qn_str_add(out, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
                    "<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
                    "content=\"width=device-width,initial-scale=1\"/>\n<meta name=\"color-scheme\" "
                    "content=\"light dark\"/>\n<title>");
    qn_svg_escape(out, t->job.model->name);
    qn_str_printf(out, ", %s: a plan</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>",
                  task, qn_plan_html_style);
    qn_svg_escape(out, t->job.model->name);
    qn_str_printf(out, ", %s</h1>\n<p class=\"sub\">under %s, on %d device%s", task,
                  qn_tier_name(t->job.tier), t->n, t->n == 1 ? "" : "s");
    if (t->job.items > 0)
        qn_str_printf(out, ", %s %s", qn_str_si(items, t->job.items), qn_plan_html_unit(t));
    qn_str_add(out, "</p>\n");
    add_advice(out, t, e);
    add_front(out, t);
    if (e) {
        add_time(out, e);
        add_roofline(out, e);
        qn_plan_html_what_ifs(out, e);
    }
    add_memory(out, t);
    qn_plan_html_offers(out, t);
    qn_plan_html_assumptions(out, t);
    qn_str_add(out, "</main>\n</body>\n</html>\n");
}

QnStatus qn_plan_html(const char *path, const QnPlanTable *t, const QnExplain *e)
{
    QnStr page = { 0 };
    struct stat s;
    if (!path[0])
        return qn_fail(QN_EUSAGE, "--html is empty: name a file, such as plan.html");
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return qn_fail(QN_EUSAGE, "--html: %s is %s: name a file, such as plan.html", path,
                       S_ISDIR(s.st_mode) ? "a folder" : "no plain file");
    add_page(&page, t, e);
    QnStatus st = page.st ? page.st : qn_plan_write_file(path, qn_str_text(&page), page.n);
    qn_str_fini(&page);
    return st;
}

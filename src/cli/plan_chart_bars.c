/* Stacked bars: a step's time by kind of work, memory by what it holds. */
#include "cli/plan_charts.h"
#include "cli/plan_svg.h"

#include "base/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, LEFT = 220, RIGHT = 150, ROW = 28, BAR = 18, FOOT = 52, MOST = 24 };

static void draw_bar(QnStr *out, double x0, double x1, double y, const char *class,
                     const char *title)
{
    if (!(x1 - x0 > 0.05))
        return;
    qn_str_printf(out,
                  "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>",
                  class, x0, y, x1 - x0, BAR);
    qn_svg_escape(out, title);
    qn_str_add(out, "</title></rect>\n");
}

/* ---- time ---- */

static void draw_kind(QnStr *out, const QnExplain *e, const char *name, const double *by_limit,
                      double seconds, const QnPlanAxis *x, double y)
{
    char text[128], time[QN_STR_NUMBER];
    double from = 0;
    qn_plan_svg_text(out, LEFT - 10, y + 14, "row", "end", name);
    for (int i = 0; i < QN_LIMITS; i++) {
        char class[24];
        snprintf(class, sizeof class, "bar limit%d", i);
        snprintf(text, sizeof text, "%s, held back by %s: %s", name, qn_limit_name((QnLimit)i),
                 qn_str_duration(time, (int64_t)(by_limit[i] * 1e9)));
        draw_bar(out, qn_plan_axis_at(x, from), qn_plan_axis_at(x, from + by_limit[i]), y, class,
                 text);
        from += by_limit[i];
    }
    snprintf(text, sizeof text, "%s, %.1f %%", qn_str_duration(time, (int64_t)(seconds * 1e9)),
             100 * seconds / e->step_s);
    qn_plan_svg_text(out, qn_plan_axis_at(x, seconds) + 8, y + 14, "value", "start", text);
}

void qn_plan_chart_time(QnStr *out, const QnExplain *e)
{
    QnPlanAxis x = { QN_TICKS_TIME, false, 0, 0, LEFT, WIDTH - RIGHT, "" };
    double link[QN_LIMITS] = { [QN_LIMIT_LINK] = e->link_s },
           rest[QN_LIMITS] = { [QN_LIMIT_LAUNCH] = e->rest_s };
    int rows = (e->link_s > 0) + (e->rest_s > 0);
    x.high = QN_MAX(e->link_s, e->rest_s);
    for (int i = 0; i < QN_WORK_KINDS; i++) {
        rows += e->kinds[i].count > 0;
        x.high = QN_MAX(x.high, e->kinds[i].seconds);
    }
    qn_plan_svg_begin(out, "time", WIDTH, rows * ROW + 16, "A step's time by kind of work",
                      "A bar for each kind of work, split by what holds it back.");
    double y = 8;
    for (int i = 0; i < QN_WORK_KINDS; i++) {
        if (!(e->kinds[i].count > 0))
            continue;
        draw_kind(out, e, qn_work_kind_name((QnWorkKind)i), e->kinds[i].by_limit,
                  e->kinds[i].seconds, &x, y);
        y += ROW;
    }
    if (e->link_s > 0) {
        draw_kind(out, e, "communication", link, e->link_s, &x, y);
        y += ROW;
    }
    if (e->rest_s > 0)
        draw_kind(out, e, "between the kernels", rest, e->rest_s, &x, y);
    qn_plan_svg_end(out);
}

/* ---- memory ---- */

static double room_of(const QnOffer *o)
{
    return 0x1p30 * o->card->memory_gb;
}

static bool has_size(const QnPlanTable *t, const bool *take, double memory_gb)
{
    for (int i = 0; i < t->n; i++)
        if (take[i] && t->offers[i].card->memory_gb == memory_gb)
            return true;
    return false;
}

/* Which rows: all, or if there are too many the front, and the fastest of each size of memory. */
static void choose(const QnPlanTable *t, bool *take)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += !t->offers[i].error[0];
    bool all = n <= MOST;
    n = all ? 0 : qn_plan_front(t, take);
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        if (o->error[0] || take[i] ||
            (!all && (n >= MOST || has_size(t, take, o->card->memory_gb))))
            continue;
        take[i] = true;
        n++;
    }
}

static const char *const term_names[] = { "weights",     "gradients",       "optimizer",
                                          "activations", "keys and values", "workspace",
                                          "context",     "fragmentation",   "other" };

const char *qn_plan_term_name(int i)
{
    return i < QN_COUNT(term_names) ? term_names[i] : NULL;
}

static int term_class(const char *name)
{
    int i = 0;
    while (i < QN_COUNT(term_names) - 1 && strcmp(name, term_names[i]) != 0)
        i++;
    return i;
}

static void draw_row(QnStr *out, const QnOffer *o, const QnPlanAxis *x, double y)
{
    QnMemoryTerm terms[QN_MEMORY_TERMS];
    int n = qn_explain_memory(o, terms);
    char name[80], text[128];
    double from = 0;
    qn_plan_offer_name(o, name, sizeof name);
    qn_plan_svg_text(out, LEFT - 10, y + 14, o->cost.fits ? "row" : "row bad", "end", name);
    double room = QN_MIN(1e-9 * room_of(o), x->high);
    qn_str_printf(out,
                  "<rect class=\"room\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                  x->from, y, qn_plan_axis_at(x, room) - x->from, BAR);
    for (int i = 0; i < n; i++) {
        char class[24];
        double to = from + 1e-9 * terms[i].bytes;
        snprintf(class, sizeof class, "bar term%d", term_class(terms[i].name));
        snprintf(text, sizeof text, "%s: %s %.3f GB", name, terms[i].name, 1e-9 * terms[i].bytes);
        draw_bar(out, qn_plan_axis_at(x, from), qn_plan_axis_at(x, to), y, class, text);
        from = to;
    }
    snprintf(text, sizeof text, "%.3g of %.3g GB%s", from, 1e-9 * room_of(o),
             o->cost.fits ? "" : ": no");
    qn_plan_svg_text(out, qn_plan_axis_at(x, QN_MAX(from, room)) + 8, y + 14,
                     o->cost.fits ? "value" : "value bad", "start", text);
}

void qn_plan_chart_memory(QnStr *out, const QnPlanTable *t, int *shown)
{
    bool *take = qn_alloc_array((size_t)t->n + 1, sizeof *take);
    QnPlanAxis x = { QN_TICKS_GB, false, 0, 0, LEFT, WIDTH - RIGHT, "" };
    double most = 0;
    *shown = 0;
    if (!take) {
        out->st = QN_ENOMEM;
        return;
    }
    choose(t, take);
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        take[i] &= !o->error[0];
        *shown += take[i];
        if (take[i])
            x.high = QN_MAX(x.high, 1e-9 * QN_MAX(o->cost.memory_bytes, room_of(o)));
        if (take[i])
            most = QN_MAX(most, 1e-9 * o->cost.memory_bytes);
    }
    x.high = QN_MIN(x.high, 4 * most); /* more room than that is cut at the edge */
    if (*shown) {
        qn_plan_svg_begin(out, "memory", WIDTH, *shown * ROW + 16, "Memory by what it holds",
                          "A bar for each device; the pale bar behind it is what the device has.");
        double y = 8;
        for (int i = 0; i < t->n; i++) {
            if (!take[i])
                continue;
            draw_row(out, &t->offers[i], &x, y);
            y += ROW;
        }
        qn_plan_svg_end(out);
    }
    qn_free(take);
}

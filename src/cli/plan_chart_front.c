/* Time against price. */
#include "cli/plan_charts.h"
#include "cli/plan_svg.h"

#include "base/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 520, LEFT = 76, RIGHT = 24, TOP = 44, BOTTOM = 56 };

double qn_plan_priced_items(const QnPlanTable *t)
{
    return t->job.items > 0 ? t->job.items : 1e6;
}

bool qn_plan_point(const QnPlanTable *t, const QnOffer *o, double *seconds, double *usd)
{
    if (o->error[0] || !o->cost.fits || !(o->usd_per_hour > 0) || !(o->items_s > 0))
        return false;
    *seconds = qn_plan_priced_items(t) / o->items_s * (1 + t->job.evaluation);
    *usd = o->usd_per_hour * *seconds / 3600;
    return true;
}

int qn_plan_front(const QnPlanTable *t, bool *front)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        double s, usd, other_s, other_usd;
        front[i] = qn_plan_point(t, &t->offers[i], &s, &usd);
        for (int k = 0; front[i] && k < t->n; k++) {
            bool there = k != i && qn_plan_point(t, &t->offers[k], &other_s, &other_usd);
            bool beats = there && other_s <= s && other_usd <= usd;
            if (beats && (other_s < s || other_usd < usd || k < i))
                front[i] = false;
        }
        n += front[i];
    }
    return n;
}

typedef struct Point {
    double x, y, usd, seconds;
    int i; /* among the offers */
} Point;

static int by_x(const void *pa, const void *pb)
{
    const Point *a = pa, *b = pb;
    return a->x < b->x ? -1 : a->x > b->x ? 1 : a->i - b->i;
}

/* The front as stairs: what lies above it costs more or takes longer than something below. */
static void draw_stairs(QnStr *out, const Point *p, int n, const bool *front, const QnPlanAxis *x,
                        const QnPlanAxis *y)
{
    bool begun = false;
    qn_str_add(out, "<path class=\"front\" d=\"");
    for (int i = 0; i < n; i++) {
        if (!front[p[i].i])
            continue;
        if (begun)
            qn_str_printf(out, "H%.1fV%.1f", p[i].x, p[i].y);
        else
            qn_str_printf(out, "M%.1f %.1fV%.1f", p[i].x, y->to, p[i].y);
        begun = true;
    }
    qn_str_printf(out, "H%.1f\"/>\n", x->to);
}

static void draw_point(QnStr *out, const QnPlanTable *t, const Point *p, const char *class,
                       double r)
{
    const QnOffer *o = &t->offers[p->i];
    char name[80], time[QN_STR_NUMBER], rate[QN_STR_NUMBER];
    qn_plan_offer_name(o, name, sizeof name);
    qn_str_add(out, "<g class=\"point\" data-device=\"");
    qn_svg_escape(out, name);
    qn_str_printf(out,
                  "\" data-usd=\"%.17g\" data-seconds=\"%.17g\"><circle class=\"%s\" "
                  "cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/><title>",
                  p->usd, p->seconds, class, p->x, p->y, r);
    qn_svg_escape(out, name);
    qn_str_printf(out, ": %s, $%.4g (%s), %s a second, batch %lld in %s</title></g>\n",
                  qn_str_duration(time, (int64_t)QN_MIN(p->seconds * 1e9, 9e18)), p->usd,
                  o->rented ? "rented" : "owned", qn_str_si(rate, o->items_s), (long long)o->batch,
                  qn_numbers_name(o->numbers));
}

static void block_stairs(QnPlanLabels *labels, const Point *p, int n, const bool *front)
{
    double x = -1, y = TOP;
    for (int i = 0; i < n; i++) {
        if (!front[p[i].i])
            continue;
        if (x >= 0)
            qn_plan_labels_block_line(labels, x + 7, y, p[i].x, y);
        qn_plan_labels_block_line(labels, p[i].x, y, p[i].x, p[i].y - 7);
        x = p[i].x;
        y = p[i].y;
    }
    if (x >= 0)
        qn_plan_labels_block_line(labels, x + 7, y, WIDTH - RIGHT, y);
}

static void draw_names(QnStr *out, const QnPlanTable *t, const Point *p, int n, const bool *front,
                       int best)
{
    QnPlanLabels *labels = qn_alloc(sizeof *labels);
    char name[80];
    if (!labels)
        return;
    *labels =
        (QnPlanLabels){ LEFT + 2, TOP - 6, WIDTH - RIGHT, HEIGHT - BOTTOM - 2, true, { { 0 } }, 0 };
    for (int i = 0; i < n; i++)
        qn_plan_labels_block(labels, p[i].x, p[i].y, front[p[i].i] ? 7 : 3.5);
    block_stairs(labels, p, n, front);
    for (int pass = 0; pass < 3; pass++) { /* the best first, then the front, then if few all */
        for (int i = 0; i < n; i++) {
            int kind = p[i].i == best ? 0 : front[p[i].i] ? 1 : 2;
            if (kind != pass || (kind == 2 && n > 24))
                continue;
            qn_plan_offer_name(&t->offers[p[i].i], name, sizeof name);
            qn_plan_labels_add(labels, out, p[i].x, p[i].y, kind == 2 ? 4 : 7,
                               kind == 2 ? "name faint" : "name", name);
        }
    }
    qn_free(labels);
}

static void draw(QnStr *out, const QnPlanTable *t, Point *p, int n, const bool *front)
{
    char x_label[80], items[QN_STR_NUMBER], title[160];
    QnPlanAxis x = { QN_TICKS_USD, true, 1, 0, LEFT, WIDTH - RIGHT, x_label };
    QnPlanAxis y = { QN_TICKS_TIME, true, 1, 0, HEIGHT - BOTTOM, TOP, "time" };
    int best = qn_advice_of(&t->job, t->offers, t->n).best;
    const char *unit = t->job.model->family->image ? "images" : "tokens";
    snprintf(x_label, sizeof x_label, "price of %s %s", qn_str_si(items, qn_plan_priced_items(t)),
             unit);
    for (int i = 0; i < n; i++) {
        qn_plan_axis_hold(&x, p[i].usd);
        qn_plan_axis_hold(&y, p[i].seconds);
    }
    qn_plan_axis_widen(&x, 0.07);
    qn_plan_axis_widen(&y, 0.07);
    for (int i = 0; i < n; i++) {
        p[i].x = qn_plan_axis_at(&x, p[i].usd);
        p[i].y = qn_plan_axis_at(&y, p[i].seconds);
    }
    qsort(p, (size_t)n, sizeof *p, by_x);
    snprintf(title, sizeof title, "Time against price of %s %s on %d devices", items, unit, n);
    qn_plan_svg_begin(out, "front", WIDTH, HEIGHT, title,
                      "Each dot is a device; those that none beats in both time and price are "
                      "joined by a line, and named where there is room.");
    qn_plan_svg_axes(out, &x, &y);
    draw_stairs(out, p, n, front, &x, &y);
    for (int on_front = 0; on_front < 2; on_front++)
        for (int i = 0; i < n; i++)
            if (front[p[i].i] == on_front)
                draw_point(out, t, &p[i],
                           p[i].i == best ? "dot best"
                           : on_front     ? "dot"
                                          : "dot beaten",
                           p[i].i == best ? 7
                           : on_front     ? 5.5
                                          : 4);
    draw_names(out, t, p, n, front, best);
    qn_plan_svg_end(out);
}

void qn_plan_chart_front(QnStr *out, const QnPlanTable *t)
{
    Point *p = qn_alloc_array((size_t)t->n + 1, sizeof *p);
    bool *front = qn_alloc_array((size_t)t->n + 1, sizeof *front);
    int n = 0;
    if (p && front) {
        qn_plan_front(t, front);
        for (int i = 0; i < t->n; i++) {
            p[n].i = i;
            n += qn_plan_point(t, &t->offers[i], &p[n].seconds, &p[n].usd);
        }
        if (n)
            draw(out, t, p, n, front);
        else
            qn_str_add(out, "<p>No device of the table fits and has a price.</p>\n");
    } else {
        out->st = QN_ENOMEM;
    }
    qn_free(p);
    qn_free(front);
}

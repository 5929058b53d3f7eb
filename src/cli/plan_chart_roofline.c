/* The device's roof, and how near the operators come. */
#include "cli/plan_charts.h"
#include "cli/plan_svg.h"

#include "base/svg.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 960, HEIGHT = 520, LEFT = 76, RIGHT = 24, TOP = 44, BOTTOM = 56, NAMED = 10 };

#define LEAST 0.003

typedef struct Roof {
    QnPlanAxis x, y;
    double peak, bandwidth;
    double plain; /* FLOP/s of what is no product; 0: the same */
} Roof;

/* What takes next to no time would only stretch the axes. */
static bool is_drawn(const QnExplain *e, const QnExplainPart *p)
{
    return p->flops > 0 && p->bytes > 0 && p->seconds > LEAST * e->step_s;
}

static double intensity(const QnExplainPart *p)
{
    return p->flops / p->bytes;
}

static Roof measure(const QnExplain *e)
{
    const QnCard *card = e->offer.card;
    Roof r = { .x = { QN_TICKS_NUMBER, true, 1, 0, LEFT, WIDTH - RIGHT,
                      "FLOPs for each byte moved" },
               .y = { QN_TICKS_NUMBER, true, 1, 0, HEIGHT - BOTTOM, TOP, "FLOP/s" },
               .peak = e->offer.cost.peak_flops,
               .bandwidth = 1e9 * card->bandwidth_gbs,
               .plain = 1e12 * card->fp32 };
    if (!(r.plain < 0.9 * r.peak))
        r.plain = 0;
    double ridge = r.peak / r.bandwidth;
    qn_plan_axis_hold(&r.x, ridge / 8);
    qn_plan_axis_hold(&r.x, ridge * 8);
    qn_plan_axis_hold(&r.y, r.peak * 1.5);
    qn_plan_axis_hold(&r.y, r.peak / 1000);
    for (int64_t i = 0; i < e->n_parts; i++) {
        const QnExplainPart *p = &e->parts[i];
        if (!is_drawn(e, p))
            continue;
        qn_plan_axis_hold(&r.x, intensity(p));
        qn_plan_axis_hold(&r.y, p->flops / p->seconds);
    }
    r.x.low /= 1.5;
    r.x.high *= 1.5;
    r.y.low /= 1.5;
    return r;
}

/* min(peak, bandwidth * x), clipped to the frame. */
static void draw_roof(QnStr *out, const Roof *r, double peak, const char *class)
{
    double x0 = QN_MAX(r->x.low, r->y.low / r->bandwidth), ridge = peak / r->bandwidth;
    if (ridge <= x0 || ridge >= r->x.high)
        return;
    qn_str_printf(out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1fH%.1f\"/>\n", class,
                  qn_plan_axis_at(&r->x, x0), qn_plan_axis_at(&r->y, x0 * r->bandwidth),
                  qn_plan_axis_at(&r->x, ridge), qn_plan_axis_at(&r->y, peak), r->x.to);
}

/* The middle of the stretch of the slope that is farthest from all dots. */
static double clear_place(const QnExplain *e, const Roof *r, double x0, double ridge)
{
    double best = x0, most = -1;
    for (int k = 2; k <= 18; k++) {
        double x = x0 * pow(ridge / x0, k / 20.0), least = 200;
        double px = qn_plan_axis_at(&r->x, x), py = qn_plan_axis_at(&r->y, x * r->bandwidth);
        for (int64_t i = 0; i < e->n_parts; i++) {
            const QnExplainPart *p = &e->parts[i];
            if (is_drawn(e, p))
                least = QN_MIN(least, hypot(px - qn_plan_axis_at(&r->x, intensity(p)),
                                            py - qn_plan_axis_at(&r->y, p->flops / p->seconds)));
        }
        if (least > most) {
            most = least;
            best = x;
        }
    }
    return best;
}

static void name_slope(QnStr *out, const QnExplain *e, const Roof *r, QnPlanLabels *labels)
{
    char text[96], number[QN_STR_NUMBER];
    double x0 = QN_MAX(r->x.low, r->y.low / r->bandwidth), ridge = r->peak / r->bandwidth;
    double at = clear_place(e, r, x0, ridge);
    double px = qn_plan_axis_at(&r->x, at), py = qn_plan_axis_at(&r->y, at * r->bandwidth);
    double ax = qn_plan_axis_at(&r->x, x0), ay = qn_plan_axis_at(&r->y, x0 * r->bandwidth),
           bx = qn_plan_axis_at(&r->x, ridge), by = qn_plan_axis_at(&r->y, r->peak);
    qn_str_printf(out, "<g transform=\"translate(%.1f %.1f) rotate(%.1f)\">", px, py,
                  atan2(by - ay, bx - ax) * 180 / 3.14159265358979);
    snprintf(text, sizeof text, "%sB/s", qn_str_si(number, r->bandwidth));
    qn_plan_svg_text(out, 0, 18, "name", "middle", text);
    qn_str_add(out, "</g>\n");
    qn_plan_labels_block_line(labels, ax, ay, bx, by);
    qn_plan_labels_block(labels, px + 6, py + 14, 26);
}

static void name_roofs(QnStr *out, const QnExplain *e, const Roof *r, QnPlanLabels *labels)
{
    char text[96], number[QN_STR_NUMBER];
    double right = r->x.to - 6;
    snprintf(text, sizeof text, "%sFLOP/s, %s", qn_str_si(number, r->peak),
             qn_numbers_name(e->offer.numbers));
    qn_plan_svg_text(out, right, qn_plan_axis_at(&r->y, r->peak) - 7, "name", "end", text);
    qn_plan_labels_block_text(labels, right, qn_plan_axis_at(&r->y, r->peak) - 11, text);
    if (r->plain > 0) {
        snprintf(text, sizeof text, "%sFLOP/s, float32 without tensor cores",
                 qn_str_si(number, r->plain));
        qn_plan_svg_text(out, right, qn_plan_axis_at(&r->y, r->plain) + 16, "name faint", "end",
                         text);
        qn_plan_labels_block_text(labels, right, qn_plan_axis_at(&r->y, r->plain) + 12, text);
    }
    name_slope(out, e, r, labels);
}

static double radius(const QnExplain *e, const QnExplainPart *p)
{
    return 2.5 + 26 * sqrt(p->seconds / e->step_s);
}

static void draw_part(QnStr *out, const QnExplain *e, const Roof *r, const QnExplainPart *p)
{
    char name[64], rate[QN_STR_NUMBER], time[QN_STR_NUMBER];
    double achieved = p->flops / p->seconds;
    qn_explain_name(p->work, name, sizeof name);
    qn_str_printf(out,
                  "<g class=\"point\"><circle class=\"op k%d\" cx=\"%.1f\" cy=\"%.1f\" "
                  "r=\"%.1f\"/><title>",
                  (int)p->kind, qn_plan_axis_at(&r->x, intensity(p)),
                  qn_plan_axis_at(&r->y, achieved), radius(e, p));
    qn_svg_escape(out, name);
    qn_str_printf(out, ", %.0f times: %s, %.1f %% of the step; %sFLOP/s, %.1f FLOPs a byte; %s\n",
                  p->count, qn_str_duration(time, (int64_t)(p->seconds * 1e9)),
                  100 * p->seconds / e->step_s, qn_str_si(rate, achieved), intensity(p),
                  qn_limit_name(p->limit));
    qn_str_add(out, "</title></g>\n");
}

static void name_parts(QnStr *out, const QnExplain *e, const Roof *r, QnPlanLabels *labels)
{
    char name[64];
    double at[NAMED][2];
    int named = 0;
    for (int64_t i = 0; i < e->n_parts; i++) {
        const QnExplainPart *p = &e->parts[i];
        if (is_drawn(e, p))
            qn_plan_labels_block(labels, qn_plan_axis_at(&r->x, intensity(p)),
                                 qn_plan_axis_at(&r->y, p->flops / p->seconds), radius(e, p) * 0.8);
    }
    for (int64_t i = 0; i < e->n_parts && named < NAMED; i++) {
        const QnExplainPart *p = &e->parts[i];
        double x = 0, y = 0;
        bool skip = !is_drawn(e, p) || p->seconds < 0.01 * e->step_s;
        if (!skip) {
            x = qn_plan_axis_at(&r->x, intensity(p));
            y = qn_plan_axis_at(&r->y, p->flops / p->seconds);
        }
        for (int k = 0; !skip && k < named; k++) /* one name for dots that lie on each other */
            skip = hypot(x - at[k][0], y - at[k][1]) < 12;
        if (skip)
            continue;
        qn_explain_name(p->work, name, sizeof name);
        if (qn_plan_labels_add(labels, out, x, y, radius(e, p), "name op-name", name)) {
            at[named][0] = x;
            at[named++][1] = y;
        }
    }
}

void qn_plan_chart_roofline(QnStr *out, const QnExplain *e)
{
    Roof r = measure(e);
    char name[80], title[160];
    QnPlanLabels *labels = qn_alloc(sizeof *labels);
    if (!labels) {
        out->st = QN_ENOMEM;
        return;
    }
    *labels =
        (QnPlanLabels){ LEFT + 2, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM - 2, false, { { 0 } }, 0 };
    qn_plan_offer_name(&e->offer, name, sizeof name);
    snprintf(title, sizeof title, "Roofline of %s with the operators of %s", name,
             e->job.model->name);
    qn_plan_svg_begin(out, "roofline", WIDTH, HEIGHT, title,
                      "Each circle is an operator, its area its share of the time; the line is "
                      "what memory and arithmetic allow.");
    qn_plan_svg_axes(out, &r.x, &r.y);
    if (r.plain > 0)
        draw_roof(out, &r, r.plain, "roof plain");
    draw_roof(out, &r, r.peak, "roof");
    for (int64_t i = 0; i < e->n_parts; i++)
        if (is_drawn(e, &e->parts[i]))
            draw_part(out, e, &r, &e->parts[i]);
    name_roofs(out, e, &r, labels);
    name_parts(out, e, &r, labels);
    qn_plan_svg_end(out);
    qn_free(labels);
}

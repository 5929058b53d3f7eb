#include "cli/plan_svg.h"

#include "base/compiler.h"
#include "base/svg.h"

#include <math.h>
#include <stdio.h>

/* ---- axes ---- */

void qn_plan_axis_hold(QnPlanAxis *a, double v)
{
    if (!isfinite(v) || (a->log && !(v > 0)))
        return;
    bool first = a->low > a->high;
    a->low = first ? v : QN_MIN(a->low, v);
    a->high = first ? v : QN_MAX(a->high, v);
}

void qn_plan_axis_widen(QnPlanAxis *a, double share)
{
    if (a->low > a->high) {
        a->low = a->log ? 0.1 : 0;
        a->high = 1;
    }
    if (a->log) {
        double room = QN_MAX(share * log(a->high / a->low), a->high / a->low < 3 ? 0.9 : 0);
        a->low *= exp(-room);
        a->high *= exp(room);
    } else {
        a->high += a->high > a->low ? share * (a->high - a->low) : 1;
    }
}

double qn_plan_axis_at(const QnPlanAxis *a, double v)
{
    double part =
        a->log ? log(v / a->low) / log(a->high / a->low) : (v - a->low) / (a->high - a->low);
    return a->from + part * (a->to - a->from);
}

/* ---- ticks ---- */

static char *si_text(char out[QN_STR_NUMBER], const char *before, double v)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 1e18, " E" }, { 1e15, " P" }, { 1e12, " T" },
                  { 1e9, " G" },  { 1e6, " M" },  { 1e3, " k" } };
    for (int i = 0; i < QN_COUNT(units); i++) {
        if (v >= 0.9995 * units[i].unit) {
            snprintf(out, QN_STR_NUMBER, "%s%.3g%s", before, v / units[i].unit, units[i].name);
            return out;
        }
    }
    snprintf(out, QN_STR_NUMBER, "%s%.3g", before, v);
    return out;
}

static const double times[] = { 1e-3,      1e-2,      0.1,        1,           2,
                                5,         10,        30,         60,          120,
                                300,       600,       1800,       3600,        7200,
                                18000,     43200,     86400,      172800,      432000,
                                864000,    2592000,   7776000,    31557600,    63115200,
                                157788000, 315576000, 3155760000, 31557600000, 315576000000 };

static char *time_text(char out[QN_STR_NUMBER], double s)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 31557600, "y" }, { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    for (int i = 0; i < QN_COUNT(units); i++) {
        if (s >= 0.9995 * units[i].unit) {
            snprintf(out, QN_STR_NUMBER, "%.3g %s", s / units[i].unit, units[i].name);
            return out;
        }
    }
    snprintf(out, QN_STR_NUMBER, "%.3g ms", 1e3 * s);
    return out;
}

char *qn_plan_tick_text(char out[QN_STR_NUMBER], QnTicks ticks, double v)
{
    switch (ticks) {
    case QN_TICKS_USD: return si_text(out, "$", v);
    case QN_TICKS_TIME: return time_text(out, v);
    case QN_TICKS_GB: snprintf(out, QN_STR_NUMBER, "%.4g GB", v); return out;
    case QN_TICKS_NUMBER: break;
    }
    return si_text(out, "", v);
}

enum { TICKS = 12 };

/* Candidates from low to high, thinned so that `gap` pixels lie between two. */
static void add_tick(const QnPlanAxis *a, double v, double gap, double ticks[TICKS], int *n)
{
    if (v < a->low * (1 - 1e-9) || v > a->high * (1 + 1e-9) || *n == TICKS)
        return;
    double at = qn_plan_axis_at(a, v);
    if (*n == 0 || fabs(at - qn_plan_axis_at(a, ticks[*n - 1])) >= gap)
        ticks[(*n)++] = v;
}

static int find_ticks(const QnPlanAxis *a, double gap, double ticks[TICKS])
{
    static const double digits[] = { 1, 2, 5 };
    int n = 0;
    if (a->ticks == QN_TICKS_TIME) {
        for (int i = 0; i < QN_COUNT(times); i++)
            add_tick(a, times[i], gap, ticks, &n);
        return n;
    }
    if (a->log) {
        double decades = log10(a->high / a->low), room = fabs(a->to - a->from) / decades;
        int each = room > 3.4 * gap ? 3 : 1; /* 1 2 5 or the powers alone */
        for (int e = (int)floor(log10(a->low)); e <= (int)ceil(log10(a->high)); e++)
            for (int i = 0; i < each; i++)
                add_tick(a, digits[i] * pow(10, e), gap, ticks, &n);
        return n;
    }
    double least = (a->high - a->low) * gap / fabs(a->to - a->from);
    double step = pow(10, floor(log10(least)));
    for (int i = 0; i < QN_COUNT(digits) && step < least; i++)
        step = digits[i] * pow(10, floor(log10(least)));
    step = step < least ? 10 * pow(10, floor(log10(least))) : step;
    for (int i = 0; i <= (int)((a->high - a->low) / step); i++)
        add_tick(a, a->low + i * step, 1, ticks, &n);
    return n;
}

/* ---- drawing ---- */

void qn_plan_svg_begin(QnStr *out, const char *id, int width, int height, const char *title,
                       const char *description)
{
    qn_str_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">",
                  width, height, id, id, id);
    qn_svg_escape(out, title);
    qn_str_printf(out, "</title>\n<desc id=\"%s-desc\">", id);
    qn_svg_escape(out, description);
    qn_str_add(out, "</desc>\n");
}

void qn_plan_svg_end(QnStr *out)
{
    qn_str_add(out, "</svg>\n");
}

void qn_plan_svg_text(QnStr *out, double x, double y, const char *class, const char *anchor,
                      const char *text)
{
    qn_str_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
                  anchor);
    qn_svg_escape(out, text);
    qn_str_add(out, "</text>\n");
}

void qn_plan_svg_axes(QnStr *out, const QnPlanAxis *x, const QnPlanAxis *y)
{
    double ticks[TICKS];
    char text[QN_STR_NUMBER];
    int n = y ? find_ticks(y, 38, ticks) : 0;
    for (int i = 0; i < n; i++) {
        double at = qn_plan_axis_at(y, ticks[i]);
        qn_str_printf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x->from, at, x->to);
        qn_plan_svg_text(out, x->from - 8, at + 4, "tick", "end",
                         qn_plan_tick_text(text, y->ticks, ticks[i]));
    }
    double bottom = y ? y->from : 0;
    n = find_ticks(x, 70, ticks);
    for (int i = 0; y && i < n; i++) {
        double at = qn_plan_axis_at(x, ticks[i]);
        qn_str_printf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, bottom, y->to);
        qn_plan_svg_text(out, at, bottom + 18, "tick", "middle",
                         qn_plan_tick_text(text, x->ticks, ticks[i]));
    }
    if (!y)
        return;
    qn_str_printf(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x->from, y->to,
                  bottom, x->to);
    qn_plan_svg_text(out, (x->from + x->to) / 2, bottom + 40, "label", "middle", x->label);
    qn_plan_svg_text(out, x->from - 56, y->to - 14, "label", "start", y->label);
}

/* ---- labels ---- */

enum { LABEL_HEIGHT = 15 };

static double text_width(const char *text)
{
    return 7.7 * (double)qn_str_columns(text) + 4; /* bold, of digits and capitals */
}

static bool is_free(const QnPlanLabels *l, double x0, double y0, double x1, double y1)
{
    if (x0 < l->low_x || x1 > l->high_x || y0 < l->low_y || y1 > l->high_y)
        return false;
    for (int i = 0; i < l->n; i++)
        if (x0 < l->box[i].x1 && l->box[i].x0 < x1 && y0 < l->box[i].y1 && l->box[i].y0 < y1)
            return false;
    return true;
}

static void take(QnPlanLabels *l, double x0, double y0, double x1, double y1, bool text)
{
    if (l->n == QN_PLAN_BOXES)
        return;
    l->box[l->n].text = text;
    l->box[l->n].x0 = x0;
    l->box[l->n].y0 = y0;
    l->box[l->n].x1 = x1;
    l->box[l->n++].y1 = y1;
}

void qn_plan_labels_block(QnPlanLabels *l, double x, double y, double r)
{
    take(l, x - r, y - r, x + r, y + r, false);
}

void qn_plan_labels_block_text(QnPlanLabels *l, double x, double y, const char *text)
{
    take(l, x - text_width(text), y - LABEL_HEIGHT / 2.0, x, y + LABEL_HEIGHT / 2.0, true);
}

/* Whether the line between two points goes through a text. */
static bool crosses_text(const QnPlanLabels *l, double x0, double y0, double x1, double y1)
{
    enum { STEPS = 32 };
    for (int i = 0; i < l->n; i++)
        for (int k = 0; l->box[i].text && k <= STEPS; k++) {
            double x = x0 + (x1 - x0) * k / STEPS, y = y0 + (y1 - y0) * k / STEPS;
            if (x > l->box[i].x0 && x < l->box[i].x1 && y > l->box[i].y0 && y < l->box[i].y1)
                return true;
        }
    return false;
}

void qn_plan_labels_block_line(QnPlanLabels *l, double x0, double y0, double x1, double y1)
{
    int n = (int)(hypot(x1 - x0, y1 - y0) / 8) + 1;
    for (int i = 0; i <= n; i++)
        qn_plan_labels_block(l, x0 + (x1 - x0) * i / n, y0 + (y1 - y0) * i / n, 2);
}

bool qn_plan_labels_add(QnPlanLabels *l, QnStr *out, double x, double y, double r,
                        const char *class, const char *text)
{
    /* right, left, above, below, and the corners; or from below on */
    static const int dx[] = { 1, -1, 0, 0, 1, 1, -1, -1, 1, -1, 0, -1 },
                     dy[] = { 0, 0, -1, 1, -1, 1, -1, 1, 1, 1, 1, 0 };
    int first = l->below ? 8 : 0;
    double w = text_width(text), h = LABEL_HEIGHT;
    for (double far = r + 3; far < r + 130; far += 9) {
        for (int k = 0; k < QN_COUNT(dx); k++) {
            int i = (k + first) % QN_COUNT(dx);
            double cx = x + dx[i] * (far + w / 2), cy = y + dy[i] * (far + h / 2);
            if (dx[i] && dy[i])
                cx = x + dx[i] * (0.7 * far + w / 2);
            if (!is_free(l, cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2))
                continue;
            double from_x = x + dx[i] * r, from_y = y + dy[i] * r, to_x = cx - dx[i] * w / 2,
                   to_y = cy - dy[i] * (dx[i] ? 0 : h / 2);
            if (far > r + 12 && crosses_text(l, from_x, from_y, to_x, to_y))
                continue;
            take(l, cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, true);
            if (far > r + 12)
                qn_str_printf(out, "<path class=\"leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", from_x,
                              from_y, to_x, to_y);
            qn_plan_svg_text(out, cx, cy + 4, class, "middle", text);
            return true;
        }
    }
    return false;
}

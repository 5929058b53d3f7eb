#include "base/chart.h"
#include "base/mem.h"
#include "base/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const colors[] = { "\033[36m", "\033[33m", "\033[35m",
                                      "\033[32m", "\033[34m", "\033[31m" };

void qn_chart_scale(double low, double high, int max_ticks, QnChartScale *scale)
{
    if (!(high - low > 1e-300)) { /* a single value */
        double pad = fabs(low) > 1e-290 ? fabs(low) * 0.1 : 1;
        low -= pad;
        high = low + 2 * pad;
    }
    double raw = (high - low) / QN_MAX(max_ticks - 1, 1), unit = pow(10, floor(log10(raw)));
    double step = unit * (raw <= unit ? 1 : raw <= 2 * unit ? 2 : raw <= 5 * unit ? 5 : 10);
    double first = ceil(low / step - 1e-9);
    int decimals = (int)-floor(log10(step) + 1e-9);
    *scale = (QnChartScale){ .low = low,
                             .high = high,
                             .first = first * step,
                             .step = step,
                             .n = (int)(floor(high / step + 1e-9) - first) + 1,
                             .decimals = QN_MIN(QN_MAX(decimals, 0), 12) };
}

bool qn_chart_point(const QnChart *chart, const QnChartSeries *series, int64_t i, double *x,
                    double *y)
{
    *x = series->x[i];
    *y = chart->log_y ? log10(series->y[i]) : series->y[i];
    return fabs(*x) < 1e300 && fabs(*y) < 1e300; /* false for NaN too */
}

bool qn_chart_range(const QnChart *chart, QnChartRange *range)
{
    QnChartRange r = { INFINITY, -INFINITY, INFINITY, -INFINITY };
    for (int s = 0; s < chart->n_series; s++) {
        for (int64_t i = 0; i < chart->series[s].n; i++) {
            double x, y;
            if (!qn_chart_point(chart, &chart->series[s], i, &x, &y))
                continue;
            r.x0 = QN_MIN(r.x0, x);
            r.x1 = QN_MAX(r.x1, x);
            r.y0 = QN_MIN(r.y0, y);
            r.y1 = QN_MAX(r.y1, y);
        }
    }
    *range = r;
    return r.x0 <= r.x1;
}

/* The plot: dots per cell are 2 by 4 in Unicode (a braille character), otherwise 1 by 1. */
typedef struct Plot {
    int columns, rows, dx, dy; /* cells; dots a cell */
    unsigned char *dots;       /* a bit for each dot of a cell, or a letter */
    unsigned char *owner;      /* the series that drew last in a cell */
} Plot;

static void set_dot(Plot *p, int x, int y, int series)
{
    static const unsigned char bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    if (x < 0 || y < 0 || x >= p->columns * p->dx || y >= p->rows * p->dy)
        return;
    int cell = y / p->dy * p->columns + x / p->dx;
    if (p->dx == 2)
        p->dots[cell] |= bits[y % 4][x % 2];
    else
        p->dots[cell] = (unsigned char)"*+ox#@"[series % 6];
    p->owner[cell] = (unsigned char)(series % QN_COUNT(colors));
}

static void draw_line(Plot *p, double x0, double y0, double x1, double y1, int series)
{
    int steps = (int)ceil(QN_MAX(fabs(x1 - x0), fabs(y1 - y0)));
    for (int i = 0; i <= steps; i++) {
        double t = steps ? (double)i / steps : 0;
        set_dot(p, (int)lround(x0 + t * (x1 - x0)), (int)lround(y0 + t * (y1 - y0)), series);
    }
}

static void draw_series(Plot *p, const QnChart *chart, const QnChartScale *sx,
                        const QnChartScale *sy)
{
    double w = p->columns * p->dx - 1, h = p->rows * p->dy - 1;
    for (int s = 0; s < chart->n_series; s++) {
        const QnChartSeries *series = &chart->series[s];
        bool have = false;
        double px = 0, py = 0;
        for (int64_t i = 0; i < series->n; i++) {
            double x, y;
            bool ok = qn_chart_point(chart, series, i, &x, &y);
            if (ok) {
                x = (x - sx->low) / (sx->high - sx->low) * w;
                y = (1 - (y - sy->low) / (sy->high - sy->low)) * h;
                draw_line(p, have ? px : x, have ? py : y, x, y, s);
                px = x;
                py = y;
            }
            have = ok;
        }
    }
}

static void add_cell(QnStr *out, const Plot *p, int cell, bool color)
{
    unsigned dots = p->dots[cell];
    if (!dots) {
        qn_str_add(out, " ");
        return;
    }
    if (color)
        qn_str_add(out, colors[p->owner[cell]]);
    if (p->dx == 2) { /* U+2800 and the dots */
        char utf8[3] = { (char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 63)) };
        qn_str_add_bytes(out, utf8, 3);
    } else {
        qn_str_add_bytes(out, &p->dots[cell], 1);
    }
    if (color)
        qn_str_add(out, "\033[0m");
}

static void add_number(QnStr *out, double x, int decimals, bool exponent)
{
    if (exponent)
        qn_str_printf(out, "%.3g", pow(10, x));
    else if (fabs(x) >= 1e6)
        qn_str_printf(out, "%.3g", x);
    else
        qn_str_printf(out, "%.*f", decimals, fabs(x) < 1e-12 ? 0.0 : x);
}

static void add_legend(QnStr *out, const QnChart *chart, const QnChartText *how)
{
    if (chart->title)
        qn_str_printf(out, "%s", chart->title);
    for (int s = 0; s < chart->n_series; s++) {
        qn_str_add(out, s || chart->title ? "   " : "");
        if (how->color)
            qn_str_add(out, colors[s % QN_COUNT(colors)]);
        if (how->unicode)
            qn_str_add(out, "●");
        else
            qn_str_add_bytes(out, &"*+ox#@"[s % 6], 1);
        qn_str_printf(out, " %s%s", chart->series[s].name ? chart->series[s].name : "",
                      how->color ? "\033[0m" : "");
    }
    qn_str_add(out, "\n");
}

/* The row that a tick of the y axis labels, or -1. */
static int tick_row(const QnChartScale *sy, int tick, int rows)
{
    double at = (sy->first + tick * sy->step - sy->low) / (sy->high - sy->low);
    return (int)lround((1 - at) * (rows - 1));
}

static void add_rows(QnStr *out, const QnChart *chart, const Plot *p, const QnChartScale *sy,
                     const QnChartText *how)
{
    enum { LABEL = 9 };
    for (int row = 0; row < p->rows; row++) {
        QnStr label = { 0 };
        for (int t = 0; t < sy->n && !label.n; t++)
            if (tick_row(sy, t, p->rows) == row)
                add_number(&label, sy->first + t * sy->step, sy->decimals, chart->log_y);
        qn_str_printf(out, "%*s %s", LABEL, qn_str_text(&label),
                      how->unicode ? (label.n ? "┤" : "│") : (label.n ? "+" : "|"));
        qn_str_fini(&label);
        for (int column = 0; column < p->columns; column++)
            add_cell(out, p, row * p->columns + column, how->color);
        while (out->n && out->s[out->n - 1] == ' ')
            out->s[--out->n] = '\0';
        qn_str_add(out, "\n");
    }
    qn_str_printf(out, "%*s %s", LABEL, "", how->unicode ? "└" : "+");
    qn_str_add_repeat(out, how->unicode ? "─" : "-", p->columns);
    qn_str_add(out, "\n");
}

void qn_chart_lines(QnStr *out, const QnChart *chart, const QnChartText *how)
{
    QnChartRange range;
    QnChartScale sx, sy;
    Plot p = { .columns = QN_MIN(QN_MAX(how->width - 11, 10), 400),
               .rows = QN_MIN(QN_MAX(how->height, 3), 200),
               .dx = how->unicode ? 2 : 1,
               .dy = how->unicode ? 4 : 1 };
    add_legend(out, chart, how);
    if (!qn_chart_range(chart, &range)) {
        qn_str_add(out, "(no points)\n");
        return;
    }
    p.dots = qn_alloc((size_t)p.columns * (size_t)p.rows * 2);
    if (!p.dots) {
        out->st = QN_ENOMEM;
        return;
    }
    p.owner = p.dots + (size_t)p.columns * (size_t)p.rows;
    qn_chart_scale(range.x0, range.x1, 6, &sx);
    qn_chart_scale(range.y0, range.y1, QN_MAX(p.rows / 2, 2), &sy);
    draw_series(&p, chart, &sx, &sy);
    add_rows(out, chart, &p, &sy, how);
    QnStr left = { 0 }, right = { 0 };
    add_number(&left, sx.low, sx.decimals, false);
    add_number(&right, sx.high, sx.decimals, false);
    int64_t gap = p.columns - (int64_t)left.n - (int64_t)right.n;
    const char *label = chart->x_label ? chart->x_label : "";
    int64_t before = QN_MAX((gap - qn_str_columns(label)) / 2, 1);
    qn_str_printf(out, "%10s%s%*s%s", "", qn_str_text(&left), (int)before, "", label);
    qn_str_printf(out, "%*s%s\n", (int)QN_MAX(gap - before - qn_str_columns(label), 1), "",
                  qn_str_text(&right));
    qn_str_fini(&left);
    qn_str_fini(&right);
    qn_free(p.dots);
}

void qn_chart_bars(QnStr *out, const QnChartBar *bars, int n, double max, const QnChartText *how)
{
    int64_t label = 0, text = 0;
    char number[QN_STR_NUMBER];
    bool find_max = !(max > 0);
    for (int i = 0; i < n; i++) {
        label = QN_MAX(label, qn_str_columns(bars[i].label));
        text = QN_MAX(text, bars[i].text ? qn_str_columns(bars[i].text) : 8);
        if (find_max && bars[i].value > max)
            max = bars[i].value;
    }
    int columns = (int)QN_MAX(how->width - label - text - 4, 5);
    for (int i = 0; i < n; i++) {
        qn_str_add(out, bars[i].label);
        qn_str_add_repeat(out, " ", label - qn_str_columns(bars[i].label) + 2);
        qn_term_bar(out, max > 0 ? bars[i].value / max : 0, columns, how->unicode);
        snprintf(number, sizeof number, "%.4g", bars[i].value);
        qn_str_printf(out, "  %s\n", bars[i].text ? bars[i].text : number);
    }
}

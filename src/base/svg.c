#include "base/svg.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 800, HEIGHT = 450, LEFT = 70, RIGHT = 20, TOP = 50, BOTTOM = 50 };

/* Distinct for readers with the common kinds of colour blindness too (Okabe and Ito's palette). */
static const char *const colors[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000" };

typedef struct Frame {
    QnChartScale x, y;
} Frame;

static double px(const Frame *f, double x)
{
    return LEFT + (x - f->x.low) / (f->x.high - f->x.low) * (WIDTH - LEFT - RIGHT);
}

static double py(const Frame *f, double y)
{
    return HEIGHT - BOTTOM - (y - f->y.low) / (f->y.high - f->y.low) * (HEIGHT - TOP - BOTTOM);
}

void qn_svg_escape(QnStr *out, const char *text)
{
    size_t left = text ? strlen(text) : 0;
    for (int n; left > 0; text += n, left -= (size_t)n) {
        unsigned char c = (unsigned char)*text;
        n = qn_utf8_length(text, left);
        if (n == 0) {
            n = 1;
            qn_str_add(out, "\xEF\xBF\xBD");
        } else if (c == '<') {
            qn_str_add(out, "&lt;");
        } else if (c == '>') {
            qn_str_add(out, "&gt;");
        } else if (c == '&') {
            qn_str_add(out, "&amp;");
        } else if (c == '"') {
            qn_str_add(out, "&quot;");
        } else if (c >= 32 &&
                   !(n == 3 && !memcmp(text, "\xEF\xBF", 2) && (text[2] & 0xFE) == 0xBE)) {
            qn_str_add_bytes(out, text, (size_t)n); /* not a control character, U+FFFE or U+FFFF */
        }
    }
}

static void add_text(QnStr *out, double x, double y, const char *attributes, const char *text)
{
    qn_str_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    qn_svg_escape(out, text);
    qn_str_add(out, "</text>\n");
}

static void add_tick_label(QnStr *out, double x, double y, const char *anchor, double value,
                           const QnChartScale *scale, bool exponent)
{
    char text[QN_STR_NUMBER];
    if (fabs(value) < scale->step * 1e-9)
        value = 0;
    if (exponent)
        snprintf(text, sizeof text, "%.3g", pow(10, value));
    else if (fabs(value) >= 1e6)
        snprintf(text, sizeof text, "%.6g", value);
    else
        snprintf(text, sizeof text, "%.*f", scale->decimals, value);
    add_text(out, x, y, anchor, text);
}

static void add_axes(QnStr *out, const QnChart *chart, const Frame *f)
{
    double x0 = LEFT, x1 = WIDTH - RIGHT, y0 = HEIGHT - BOTTOM, y1 = TOP;
    for (int i = 0; i < f->y.n; i++) {
        double value = f->y.first + i * f->y.step, y = py(f, value);
        qn_str_printf(out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", x0, y, x1);
        add_tick_label(out, x0 - 8, y + 4, " text-anchor=\"end\"", value, &f->y, chart->log_y);
    }
    for (int i = 0; i < f->x.n; i++) {
        double value = f->x.first + i * f->x.step, x = px(f, value);
        qn_str_printf(out, "<path d=\"M%.1f %.1fv5\" stroke=\"#444\"/>\n", x, y0);
        add_tick_label(out, x, y0 + 19, " text-anchor=\"middle\"", value, &f->x, false);
    }
    qn_str_printf(out, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#444\"/>\n", x0, y1,
                  y0, x1);
    add_text(out, (x0 + x1) / 2, HEIGHT - 10, " text-anchor=\"middle\"", chart->x_label);
    qn_str_printf(out, "<g transform=\"translate(18 %.1f) rotate(-90)\">", (y0 + y1) / 2);
    add_text(out, 0, 0, " text-anchor=\"middle\"", chart->y_label);
    qn_str_add(out, "</g>\n");
}

static void add_series(QnStr *out, const QnChart *chart, int s, const Frame *f)
{
    const QnChartSeries *series = &chart->series[s];
    bool pen_down = false;
    qn_str_printf(out,
                  "<path fill=\"none\" stroke-width=\"1.8\" stroke-linejoin=\"round\" "
                  "stroke-linecap=\"round\" stroke=\"%s\" d=\"",
                  colors[s % QN_COUNT(colors)]);
    for (int64_t i = 0; i < series->n; i++) {
        double x, y;
        bool ok = qn_chart_point(chart, series, i, &x, &y);
        if (ok) /* a lone point becomes a dot: a line to itself with round ends */
            qn_str_printf(out, "%c%.2f %.2f%s", pen_down ? 'L' : 'M', px(f, x), py(f, y),
                          pen_down ? "" : "h0");
        pen_down = ok;
    }
    qn_str_add(out, "\"/>\n");
}

static void add_legend(QnStr *out, const QnChart *chart)
{
    double x = LEFT;
    for (int s = 0; s < chart->n_series; s++) {
        const char *name = chart->series[s].name ? chart->series[s].name : "";
        qn_str_printf(out, "<path d=\"M%.1f 38h18\" stroke=\"%s\" stroke-width=\"3\"/>\n", x,
                      colors[s % QN_COUNT(colors)]);
        add_text(out, x + 23, 42, "", name);
        x += 40 + 7.0 * (double)qn_str_columns(name);
    }
}

void qn_svg_chart(QnStr *out, const QnChart *chart)
{
    QnChartRange range;
    Frame f;
    qn_str_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" "
                  "fill=\"#222\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    add_text(out, LEFT, 22, " font-size=\"16\" font-weight=\"bold\"", chart->title);
    if (qn_chart_range(chart, &range)) {
        qn_chart_scale(range.x0, range.x1, 9, &f.x);
        qn_chart_scale(range.y0, range.y1, 7, &f.y);
        add_axes(out, chart, &f);
        for (int s = 0; s < chart->n_series; s++)
            add_series(out, chart, s, &f);
        add_legend(out, chart);
    } else {
        add_text(out, WIDTH / 2.0, HEIGHT / 2.0, " text-anchor=\"middle\"", "no points");
    }
    qn_str_add(out, "</svg>\n");
}

/* Charts as data: drawn as text here, as SVG in base/svg.h. */
#ifndef QN_BASE_CHART_H
#define QN_BASE_CHART_H

#include "base/str.h"

typedef struct QnChartSeries {
    const char *name;
    const double *x, *y; /* points beyond 1e300, or NaN, are left out and break the line */
    int64_t n;
} QnChartSeries;

typedef struct QnChart {
    const char *title, *x_label, *y_label; /* NULL: none */
    const QnChartSeries *series;
    int n_series;
    bool log_y; /* points that are not positive are left out */
} QnChart;

/* A round scale that holds [low, high]: at most `max_ticks` ticks, step apart, from `first` on. */
typedef struct QnChartScale {
    double low, high; /* the axis: the data's range, widened if it is a single value */
    double first, step;
    int n, decimals;
} QnChartScale;
void qn_chart_scale(double low, double high, int max_ticks, QnChartScale *scale);

/* The ranges of all points that can be drawn; false if there is none. In log_y charts, y is the
 * exponent of ten. */
typedef struct QnChartRange {
    double x0, x1, y0, y1;
} QnChartRange;
bool qn_chart_range(const QnChart *chart, QnChartRange *range);
/* The point as drawn; false if it is left out. */
bool qn_chart_point(const QnChart *chart, const QnChartSeries *series, int64_t i, double *x,
                    double *y);

/* A line chart of `width` columns and `height` rows of plot, in dots of a quarter by half a column
 * (Unicode), or in letters. Several series differ by colour, or by letter. */
typedef struct QnChartText {
    int width, height;
    bool unicode, color;
} QnChartText;
void qn_chart_lines(QnStr *out, const QnChart *chart, const QnChartText *how);

/* One bar a row: "label  ██████▌    0.873". A full bar stands for `max`, or if that is 0 for the
 * largest value. */
typedef struct QnChartBar {
    const char *label;
    double value;
    const char *text; /* behind the bar; NULL: the value */
} QnChartBar;
void qn_chart_bars(QnStr *out, const QnChartBar *bars, int n, double max, const QnChartText *how);

#endif

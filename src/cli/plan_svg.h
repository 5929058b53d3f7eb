/* What the charts of quern plan's page are drawn with: axes, ticks, labels that keep clear of each
 * other. Colours and fonts are the page's (classes), so that they follow its theme. */
#ifndef QN_CLI_PLAN_SVG_H
#define QN_CLI_PLAN_SVG_H

#include "base/str.h"

typedef enum QnTicks { QN_TICKS_NUMBER, QN_TICKS_USD, QN_TICKS_TIME, QN_TICKS_GB } QnTicks;

typedef struct QnPlanAxis {
    QnTicks ticks;
    bool log;
    double low, high; /* of the data */
    double from, to;  /* in pixels; y grows downwards, so from > to there */
    const char *label;
} QnPlanAxis;

/* Takes v into the range; low > high before the first. Log axes pass over what is not positive. */
void qn_plan_axis_hold(QnPlanAxis *a, double v);
/* Room at both ends, and for a single value. */
void qn_plan_axis_widen(QnPlanAxis *a, double share);
double qn_plan_axis_at(const QnPlanAxis *a, double v);

/* Width, height, title and what there is to see, for those who hear it. Ends with </svg> by
 * qn_plan_svg_end. */
void qn_plan_svg_begin(QnStr *out, const char *id, int width, int height, const char *title,
                       const char *description);
void qn_plan_svg_end(QnStr *out);
/* Grid, ticks and labels of both. */
void qn_plan_svg_axes(QnStr *out, const QnPlanAxis *x, const QnPlanAxis *y);
/* anchor: "start", "middle", "end". */
void qn_plan_svg_text(QnStr *out, double x, double y, const char *class, const char *anchor,
                      const char *text);

/* A value as its axis writes it. */
char *qn_plan_tick_text(char out[QN_STR_NUMBER], QnTicks ticks, double v);

enum { QN_PLAN_BOXES = 1024 };
typedef struct QnPlanLabels {
    double low_x, low_y, high_x, high_y; /* labels stay within */
    bool below;                          /* below their dots, where there is room */
    struct {
        double x0, y0, x1, y1;
        bool text; /* which lines to other labels do not cross */
    } box[QN_PLAN_BOXES];
    int n;
} QnPlanLabels;

/* Keeps later labels off a dot. */
void qn_plan_labels_block(QnPlanLabels *l, double x, double y, double r);
/* Keeps them off a text that ends at x, with its middle at y, and lines to them too. */
void qn_plan_labels_block_text(QnPlanLabels *l, double x, double y, const char *text);
/* Keeps them off a line. */
void qn_plan_labels_block_line(QnPlanLabels *l, double x0, double y0, double x1, double y1);
/* A label beside the dot of radius r, further off with a line to it if there is no room; false, and
 * nothing drawn, where there is none at all. */
bool qn_plan_labels_add(QnPlanLabels *l, QnStr *out, double x, double y, double r,
                        const char *class, const char *text);

#endif

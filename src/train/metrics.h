/* The record of a run: RUN/metrics.jsonl, one JSON object a line, and charts drawn from it. */
#ifndef QN_TRAIN_METRICS_H
#define QN_TRAIN_METRICS_H

#include "base/chart.h"

typedef struct QnMetric {
    int64_t update; /* done when it was measured */
    double epoch;   /* fraction included */
    double loss;    /* mean since the last record, or of the evaluation */
    double lr;
    double value; /* evaluation: accuracy, R2 or perplexity; NaN in training records */
    bool eval;
    char *event; /* a line of another kind, as it stands in the file, owned; else NULL */
} QnMetric;

typedef struct QnMetrics {
    char *path;
    QnMetric *items;
    int64_t n, cap;
} QnMetrics;

/* Reads what a resumed run had written, drops records after `update` from memory and file (they
 * will come again, the same), and keeps the rest. A new run starts with update 0: an empty file. */
QnStatus qn_metrics_open(QnMetrics *m, const char *run, int64_t update);
void qn_metrics_close(QnMetrics *m);
QnStatus qn_metrics_add(QnMetrics *m, const QnMetric *x); /* appended to the file at once */
/* A JSON object in a line, with its newline, that has a "kind" of its own and the update. */
QnStatus qn_metrics_event(QnMetrics *m, int64_t update, const char *line);

/* Training and evaluation loss against updates; the arrays that *chart points to live in *buffer
 * (the caller's to qn_free). */
QnStatus qn_metrics_chart(const QnMetrics *m, QnChart *chart, QnChartSeries series[2],
                          void **buffer);

#endif

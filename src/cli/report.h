/* What people see of a training run: progress, tables, charts, the summary. */
#ifndef QN_CLI_REPORT_H
#define QN_CLI_REPORT_H

#include "base/term.h"
#include "cli/run_setup.h"
#include "cli/train_forecast.h"
#include "train/loop.h"
#include "train/precision_auto.h"

typedef struct QnReport {
    const QnArgs *args;
    const QnSetup *setup;
    const char *run; /* its folder */
    FILE *out;
    QnTermProgress progress;
    QnRunForecast forecast;
    QnAutoCost costs[QN_AUTO_COMPARED]; /* precision auto: once the run is over */
    int64_t allocated_bytes;            /* at most, by then */
    bool started, color;
    int64_t eval_share_ns;
} QnReport;

void qn_report_init(QnReport *r, const QnArgs *a, const QnSetup *s, const char *run);
/* Seconds since the command began. */
double qn_report_elapsed_s(const QnReport *r);
/* Callbacks for qn_train; ctx is the report. */
QnTrainEvents qn_report_events(QnReport *r);

/* Model, parameters, data, memory: what is about to run, from `update` on. */
void qn_report_start(QnReport *r, int64_t update);
/* The task's figure by the name that people and JSON see it under. */
const char *qn_report_metric(const QnRecipe *r, const QnEvaluation *e, double *value);
/* What an evaluation counts: "samples" or "tokens". */
const char *qn_report_counted(const QnRecipe *r);
/* Recall of each class and what it is mistaken for. */
void qn_report_classes(FILE *out, const QnSetup *s, const QnEvaluation *e);
/* Loss in the terminal and as RUN/loss.svg. */
QnStatus qn_report_chart(QnReport *r, const char *run, const QnMetrics *m);
/* Planned beside allocated and resident memory. */
void qn_report_memory(QnReport *r);
/* The last line of a run; --json or not. */
QnStatus qn_report_summary(QnReport *r, const char *run, const QnTrainResult *t, QnStr *json);

int64_t qn_report_peak_rss_bytes(void);

#endif

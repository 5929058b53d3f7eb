/* Published measurements, and each of them as what the cost model can predict. */
#ifndef QN_PLAN_MEASURED_H
#define QN_PLAN_MEASURED_H

#include "plan/cost.h"
#include "plan/counts.h"
#include "plan/published.h"
#include "plan/reading.h"
#include "plan/table.h"

typedef struct QnMeasured {
    const char *id, *model, *task, *gpu, *precision, *framework, *unit;
    int64_t line;
    double value;          /* in `unit` */
    bool is_time;          /* the unit is one of time, else of throughput */
    const char *reason;    /* why it cannot be predicted; NULL: it can */
    const char *near;      /* what is known and named nearly so, where a name is; else NULL */
    const QnCount *count;  /* of one device's step */
    const QnCount *prompt; /* the step before `times` of those; NULL: none */
    double times;
    const QnPublished *divided; /* where tensor, pipeline or context parallel is said; else NULL */
    QnCostRequest request;
    double per_step;   /* throughput = per_step / seconds; time = seconds * per_step */
    double measured_s; /* of a step */
} QnMeasured;

typedef struct QnMeasuredSet {
    QnArena *arena;
    QnTable table;
    QnMeasured *rows;
    int64_t n;
    int64_t suspect; /* rows left out because they say so */
} QnMeasuredSet;

/* The catalogue, the counts and the text must outlive the set. An error names file and line;
 * what cannot be predicted is no error. */
QnStatus qn_measured_parse(QnMeasuredSet *s, const QnCatalogue *c, QnCounts *counts,
                           const char *path, const char *text, size_t bytes);
void qn_measured_fini(QnMeasuredSet *s);

/* Of the row's step under these coefficients; also for rows that cannot fail otherwise. */
QnStatus qn_measured_predict(const QnMeasured *m, const QnCoefs *k, QnCostResult *out);

#endif

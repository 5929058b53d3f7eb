/* How good predictions are: against measurements, in all and by group. */
#ifndef QN_PLAN_SCORE_H
#define QN_PLAN_SCORE_H

#include "plan/fit.h"

typedef enum QnHoldOut { QN_HOLD_OUT_NONE, QN_HOLD_OUT_GPU, QN_HOLD_OUT_MODEL } QnHoldOut;

typedef struct QnScored {
    const QnMeasured *row;
    double predicted;  /* in the row's unit */
    double error;      /* |predicted - measured| / measured; -1: not expressed */
    bool inside;       /* the measured value lies in the interval */
    double deviations; /* |log(predicted / measured)| in standard deviations as foreseen; 0: none */
} QnScored;

typedef struct QnScoreGroup {
    const char *name;
    int64_t n;
    double mean, median, inside; /* errors; share of rows in their interval */
} QnScoreGroup;

typedef struct QnScore {
    QnScored *rows;
    int64_t n, n_expressed;
    QnScoreGroup all, single, multi; /* one device, several */
    double rank_correlation;         /* Kendall, of devices for the same job; NaN: no such rows */
    int64_t n_ranked;                /* jobs that it is the mean of */
    double top3;    /* share of jobs in which the cheapest device is among the three predicted */
    int64_t n_jobs; /* of five devices and more */
} QnScore;

/* With a hold-out every row is predicted from a fit that has not seen its device (or its model):
 * twenty fits, and the width of a fold's intervals is that of the other folds' errors. Otherwise by
 * k. */
QnStatus qn_score(const QnMeasuredSet *s, const QnCoefs *k, QnHoldOut hold_out, QnScore *out);
void qn_score_fini(QnScore *s);
/* Half of the interval that holds 80 % of the rows, in standard deviations as they are foreseen. */
QnStatus qn_score_width(const QnMeasuredSet *s, QnHoldOut how, const QnCoefs *k, double *width);

typedef enum QnScoreKey {
    QN_SCORE_GPU,
    QN_SCORE_MODEL,
    QN_SCORE_PRECISION,
    QN_SCORE_TASK,
    QN_SCORE_STACK,
    QN_SCORE_KEYS
} QnScoreKey;
const char *qn_score_key_name(QnScoreKey key);
/* The expressed rows by key, largest group first; *groups is freed by qn_free. */
QnStatus qn_score_groups(const QnScore *s, QnScoreKey key, QnScoreGroup **groups, int64_t *n);

#endif

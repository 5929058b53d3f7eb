/* The training loop: updates, evaluations, checkpoints, metrics. It prints nothing; whoever runs it
 * is told by callbacks. */
#ifndef QN_TRAIN_LOOP_H
#define QN_TRAIN_LOOP_H

#include "train/checkpoint.h"
#include "train/data.h"
#include "train/evaluate.h"
#include "train/metrics.h"

typedef struct QnTrainStatus {
    int64_t update, n_updates;
    int64_t updates_per_epoch;
    int64_t eval_every;   /* updates; evaluations come after the last one too */
    double eval_updates;  /* what one evaluation is reckoned to take, in updates */
    double loss;          /* of the last update */
    double lr, grad_norm; /* grad_norm NaN where unknown */
    double samples_per_second;
    bool evaluating;
    int64_t eval_done, eval_total;
} QnTrainStatus;

typedef struct QnTrainEvents {
    void *ctx;
    QnStatus (*begin)(void *ctx, int64_t update); /* before update `update`, once the run is known
                                                   * to be sound; an error ends it; optional */
    void (*step)(void *ctx, const QnTrainStatus *s);
    void (*eval)(void *ctx, const QnTrainStatus *s, const QnEvaluation *e, bool best);
    void (*note)(void *ctx, const char *text); /* skipped files, broken checkpoints, early stop */
    void (*info)(void *ctx, const char *text); /* a layer's switch of precision; optional */
    bool (*stop)(void *ctx);                   /* true: save and end; optional */
} QnTrainEvents;

typedef struct QnTrainResult {
    QnEvaluation last;         /* of the final model, or of the best with keep_best */
    double train_seconds;      /* in updates, over all resumptions; evaluation left out */
    double first_step_seconds; /* from start_ns to the end of the first update */
    double samples_per_second;
    int64_t updates, n_skipped;
    bool stopped_early, interrupted;
} QnTrainResult;

/* Trains in folder `run` (which exists). resume: goes on from the newest checkpoint if there is
 * one. start_ns: when the command began (qn_clock_ns). metrics stays open for charts. */
QnStatus qn_train(QnSession *s, QnTrainData *data, const char *run, bool resume, int64_t start_ns,
                  const QnTrainEvents *events, QnMetrics *metrics, QnTrainResult *out);

/* Updates in all and in an epoch, as recipe and data have it. */
void qn_train_length(const QnRecipe *r, int64_t n_samples, int64_t *n_updates,
                     int64_t *updates_per_epoch);

#endif

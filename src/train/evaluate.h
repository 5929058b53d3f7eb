/* Measuring a model on a dataset. */
#ifndef QN_TRAIN_EVALUATE_H
#define QN_TRAIN_EVALUATE_H

#include "train/session.h"

typedef struct QnEvaluation {
    int64_t samples;    /* rows that counted: samples, or tokens */
    double loss;        /* mean cross-entropy in nats, or mean squared error */
    double accuracy;    /* classify, language: share of rows whose largest output is the label */
    double r2;          /* regress: 1 - squared error / squared deviation from the mean */
    double perplexity;  /* language: e^loss */
    int64_t n_classes;  /* classify: size of the table below */
    int64_t *confusion; /* [label * n_classes + predicted], the caller's to qn_free; else NULL */
    double seconds;
} QnEvaluation;

/* Called after each batch; may be NULL. */
typedef void QnEvaluateProgress(void *ctx, int64_t done, int64_t total);

/* Runs all of ds through the model in evaluation mode. */
QnStatus qn_evaluate(QnSession *s, QnDataset *ds, QnEvaluateProgress *progress, void *ctx,
                     QnEvaluation *out);
void qn_evaluation_fini(QnEvaluation *e);

/* The number that decides which model is best, larger is better: accuracy, R2, or minus the loss.
 */
double qn_evaluation_score(const QnRecipe *r, const QnEvaluation *e);
/* Its name and value as people read it: "accuracy", "r2", "perplexity". */
const char *qn_evaluation_metric(const QnRecipe *r, const QnEvaluation *e, double *value);

#endif

#include "train/evaluate.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

/* The largest of a row; the first of equals. */
static int64_t arg_max(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        if (x[i] > x[best])
            best = i;
    }
    return best;
}

typedef struct Tally {
    double loss;
    int64_t loss_rows, rows, right;
    double *sum, *sum2; /* regression: by target */
    int64_t n_targets;
} Tally;

static void count_classes(const QnEvalResult *r, const int64_t *labels, QnEvaluation *e, Tally *t)
{
    for (int64_t i = 0; i < r->rows; i++) {
        int64_t got = arg_max(r->logits + i * r->outputs, r->outputs);
        t->right += got == labels[i];
        if (e->confusion)
            e->confusion[labels[i] * e->n_classes + got]++;
    }
    t->rows += r->rows;
}

static void count_targets(const QnEvalResult *r, const float *y, Tally *t)
{
    for (int64_t i = 0; i < r->rows * r->outputs; i++) {
        t->sum[i % r->outputs] += y[i];
        t->sum2[i % r->outputs] += (double)y[i] * y[i];
    }
    t->rows += r->rows;
}

/* 1 - SSE / SST, summed over targets. */
static double r_squared(const Tally *t)
{
    double total = 0;
    for (int64_t k = 0; k < t->n_targets; k++)
        total += t->sum2[k] - t->sum[k] * t->sum[k] / (double)t->rows;
    return total > 0 ? 1 - t->loss / total : NAN;
}

/* The next batch that has samples, or the end. */
static QnStatus next_batch(QnLoader *loader, QnBatch *b)
{
    do
        QN_TRY(qn_loader_next(loader, b));
    while (!b->end && b->count == 0);
    return QN_OK;
}

/* While the device computes on a batch, the next one is fetched and sent. */
static QnStatus run_batches(QnSession *s, QnLoader *loader, QnEvaluateProgress *progress, void *ctx,
                            QnEvaluation *e, Tally *t)
{
    int64_t total = qn_loader_steps(loader), done = 0;
    QnBatch b;
    QN_TRY(next_batch(loader, &b));
    while (!b.end) {
        QnEvalResult r;
        QN_TRY(qn_session_eval_start(s, &b));
        QN_TRY(next_batch(loader, &b));
        if (!b.end)
            QN_TRY(qn_session_eval_send(s, &b));
        QN_TRY(qn_session_eval_finish(s, &r));
        t->loss += r.loss_sum;
        t->loss_rows += r.loss_rows;
        if (s->recipe->task == QN_TASK_REGRESS)
            count_targets(&r, r.labels, t);
        else
            count_classes(&r, r.labels, e, t);
        if (progress)
            progress(ctx, ++done, total);
    }
    return QN_OK;
}

static QnStatus allocate(const QnSession *s, QnEvaluation *e, Tally *t)
{
    if (s->recipe->task == QN_TASK_CLASSIFY) {
        e->n_classes = s->spec.class_count;
        e->confusion = qn_alloc_array((size_t)(e->n_classes * e->n_classes), sizeof *e->confusion);
        return e->confusion ? QN_OK : QN_ENOMEM;
    }
    if (s->recipe->task == QN_TASK_REGRESS) {
        t->n_targets = s->spec.y_count;
        t->sum = qn_alloc_array((size_t)t->n_targets, sizeof *t->sum);
        t->sum2 = qn_alloc_array((size_t)t->n_targets, sizeof *t->sum2);
        return t->sum && t->sum2 ? QN_OK : QN_ENOMEM;
    }
    return QN_OK;
}

QnStatus qn_evaluate(QnSession *s, QnDataset *ds, QnEvaluateProgress *progress, void *ctx,
                     QnEvaluation *out)
{
    QnLoaderOptions o = { .batch = s->eval_batch,
                          .broken =
                              s->recipe->data.stop_on_broken ? QN_BROKEN_STOP : QN_BROKEN_DROP,
                          .seed = (uint64_t)s->recipe->seed,
                          .epochs = 1,
                          .workers = (int)s->recipe->data.workers,
                          .prefetch = (int)s->recipe->data.prefetch };
    QnLoader *loader = NULL;
    Tally t = { 0 };
    int64_t start = qn_clock_ns();
    *out = (QnEvaluation){ 0 };
    QnStatus st = allocate(s, out, &t);
    if (st == QN_OK)
        st = qn_loader_new(ds, &o, &loader);
    if (st == QN_OK)
        st = run_batches(s, loader, progress, ctx, out, &t);
    if (st == QN_OK && t.loss_rows == 0)
        st = qn_fail(QN_EIO, "%s: no sample could be read", qn_dataset_name(ds));
    if (st == QN_OK) {
        out->samples = t.rows;
        out->loss = t.loss / (double)t.loss_rows;
        out->accuracy = (double)t.right / (double)t.rows;
        out->r2 = s->recipe->task == QN_TASK_REGRESS ? r_squared(&t) : NAN;
        out->perplexity = exp(out->loss);
        out->seconds = (double)(qn_clock_ns() - start) * 1e-9;
    } else {
        qn_evaluation_fini(out);
    }
    qn_loader_free(loader);
    qn_free(t.sum);
    qn_free(t.sum2);
    return st;
}

void qn_evaluation_fini(QnEvaluation *e)
{
    qn_free(e->confusion);
    e->confusion = NULL;
}

double qn_evaluation_score(const QnRecipe *r, const QnEvaluation *e)
{
    switch (r->task) {
    case QN_TASK_CLASSIFY: return e->accuracy;
    case QN_TASK_REGRESS: return e->r2;
    case QN_TASK_LANGUAGE: break;
    }
    return -e->loss;
}

const char *qn_evaluation_metric(const QnRecipe *r, const QnEvaluation *e, double *value)
{
    switch (r->task) {
    case QN_TASK_CLASSIFY: *value = e->accuracy; return "test_accuracy";
    case QN_TASK_REGRESS: *value = e->r2; return "test_r2";
    case QN_TASK_LANGUAGE: break;
    }
    *value = e->loss;
    return "test_loss";
}

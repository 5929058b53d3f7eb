#include "train/loop.h"

#include "base/clock.h"
#include "base/file.h"
#include "train/precision_auto.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Run {
    QnSession *s;
    const QnRecipe *r;
    QnTrainData *data;
    const char *folder;
    const QnTrainEvents *events;
    QnMetrics *metrics;
    QnLoader *loader;
    QnBatch next; /* has_next: fetched before its turn, and on its way to the device */
    bool has_next;
    QnProgress progress;
    QnTrainStatus status;
    QnTrainResult *result;
    int64_t eval_every, checkpoint_every;
    int64_t record_every, saved_update;
    bool told_of_skips;
    double loss_scale; /* of the last step; 0: there was none */
    int64_t busy_ns;   /* in updates, of this process, its first ones left out */
    int64_t busy_samples, first_updates;
} Run;

void qn_train_length(const QnRecipe *r, int64_t n_samples, int64_t *n_updates,
                     int64_t *updates_per_epoch)
{
    int64_t per_epoch = QN_MAX(1, n_samples / (r->batch * r->accumulate));
    *updates_per_epoch = per_epoch;
    *n_updates = r->steps ? r->steps : r->epochs * per_epoch;
}

static void note(const Run *run, const char *text)
{
    if (run->events->note)
        run->events->note(run->events->ctx, text);
}

static QnStatus open_loader(Run *run)
{
    const QnRecipe *r = run->r;
    QnLoaderOptions o = { .batch = r->batch,
                          .workers = (int)r->data.workers,
                          .prefetch = (int)r->data.prefetch,
                          .shuffle = r->task != QN_TASK_LANGUAGE,
                          .drop_last = true,
                          .broken = r->data.stop_on_broken ? QN_BROKEN_STOP : QN_BROKEN_REPLACE,
                          .seed = (uint64_t)r->seed };
    return qn_loader_new(run->data->train, &o, &run->loader);
}

/* ---- precision ---- */

/* A run that begins tries its precision; one that goes on does as it did. The loader is put back to
 * where it was. */
static QnStatus test_precision(Run *run)
{
    char reason[400];
    QnBatch b;
    QnLoaderPosition at = qn_loader_position(run->loader);
    if (run->s->precision == QN_PRECISION_AUTO) /* every switch of it is tried */
        return run->progress.update > 0 ? qn_auto_recall(run->s) : QN_OK;
    if (run->progress.fell_back && run->s->precision != QN_PRECISION_FP32)
        return qn_session_set_precision(run->s, QN_PRECISION_FP32);
    if (run->progress.update > 0 || run->s->precision == QN_PRECISION_FP32)
        return QN_OK;
    QN_TRY(qn_loader_next(run->loader, &b));
    QN_TRY(qn_session_self_test(run->s, &b, reason, sizeof reason));
    run->progress.fell_back = reason[0] != '\0';
    if (reason[0])
        note(run, reason);
    return qn_loader_seek(run->loader, at);
}

static QnStatus tell_of_switch(void *ctx, const QnAutoSwitch *s)
{
    Run *run = ctx;
    QnStr line = { 0 };
    QnJsonWriter w;
    if (run->events->info)
        run->events->info(run->events->ctx, s->why);
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "kind", "precision");
    qn_json_put_int(&w, "update", s->update);
    qn_json_put_string(&w, "layer", s->layer);
    qn_json_put_string(&w, "from", qn_precision_name(s->from));
    qn_json_put_string(&w, "to", qn_precision_name(s->to));
    qn_json_put_string(&w, "of", qn_precision_name(s->of));
    qn_json_put_double(&w, "overflow", s->stats.overflow);
    qn_json_put_double(&w, "underflow", s->stats.underflow);
    qn_json_put_double(&w, "snr", s->stats.snr);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    qn_str_add(&line, "\n");
    if (st == QN_OK)
        st = line.st;
    if (st == QN_OK)
        st = qn_metrics_event(run->metrics, s->update, qn_str_text(&line));
    qn_str_fini(&line);
    return st;
}

/* ---- one update ---- */

static QnStatus take_batch(Run *run, QnBatch *b)
{
    if (!run->has_next)
        QN_TRY(qn_loader_next(run->loader, b));
    else
        *b = run->next;
    run->has_next = false;
    run->progress.position = qn_loader_position(run->loader);
    return QN_OK;
}

/* While the device computes. A batch that cannot be read says so when its turn comes; the progress
 * that is saved does not count this one. */
static QnStatus send_next(Run *run, int64_t micro)
{
    bool is_last = micro + 1 == run->status.n_updates * run->r->accumulate;
    bool keep = run->loss_scale <= 2; /* this batch may be needed again: blame_overflow */
    if (!qn_session_sends(run->s) || is_last || keep)
        return QN_OK;
    if (qn_loader_next(run->loader, &run->next) != QN_OK) {
        qn_error_clear();
        return QN_OK;
    }
    run->has_next = true;
    return qn_session_send(run->s, &run->next);
}

/* The loss scale cannot go down further: who overflows? */
static QnStatus blame_overflow(Run *run, const QnBatch *b, int64_t micro)
{
    char first[600] = "none when it was run again";
    QnStatus st = qn_session_blame(run->s, b, micro, run->status.lr);
    if (st != QN_OK && st != QN_ENUMERIC)
        return st;
    if (st == QN_ENUMERIC)
        snprintf(first, sizeof first, "%.500s", qn_error_last()->text);
    return qn_fail(QN_ENUMERIC,
                   "%s overflows at update %lld though the loss scale is down to 1: set "
                   "train.precision to bf16 or fp32; the first node that is not finite: %s",
                   qn_precision_name(run->r->precision), (long long)run->progress.update, first);
}

static QnStatus one_update(Run *run)
{
    const QnRecipe *r = run->r;
    QnTrainStatus *t = &run->status;
    int64_t start = qn_clock_ns();
    double loss = 0, scale = NAN;
    bool left_out = false;
    t->lr = qn_schedule_lr(&r->schedule, run->progress.update, t->n_updates, t->updates_per_epoch);
    for (int64_t i = 0; i < r->accumulate; i++) {
        QnBatch b;
        QnStepResult step;
        int64_t micro = run->progress.update * r->accumulate + i;
        QN_TRY(take_batch(run, &b));
        run->progress.samples += b.count;
        if (i == 0)
            QN_TRY(qn_auto_step(run->s, &b, run->progress.update, tell_of_switch, run));
        QN_TRY(qn_session_start(run->s, &b, micro, t->lr));
        QN_TRY(send_next(run, micro));
        QN_TRY(qn_session_finish(run->s, &step));
        loss += step.loss / (double)r->accumulate;
        t->grad_norm = step.grad_norm;
        scale = step.loss_scale;
        run->loss_scale = scale;
        left_out |= step.finite == 0;
        if (scale <= 1 && step.finite == 0)
            return blame_overflow(run, &b, micro);
    }
    if (!isfinite(loss) && !(scale > 1))
        return qn_fail(QN_ENUMERIC,
                       "the loss is %g at update %lld: lower train.lr, or set "
                       "train.optimizer.clip_norm; compile.check_finite=true names the "
                       "first node that is not finite",
                       loss, (long long)run->progress.update);
    if (run->s->mix)
        qn_auto_count(run->s->mix, left_out);
    int64_t ns = qn_clock_ns() - start;
    run->progress.update++;
    run->progress.train_seconds += (double)ns * 1e-9;
    if (++run->first_updates > 3) { /* page faults and cold caches are no measure */
        run->busy_ns += ns;
        run->busy_samples += r->batch * r->accumulate;
    }
    t->update = run->progress.update;
    t->loss = loss;
    double busy = run->busy_ns ? (double)run->busy_ns * 1e-9 : run->progress.train_seconds;
    int64_t samples = run->busy_ns ? run->busy_samples : run->progress.samples;
    t->samples_per_second = busy > 0 ? (double)samples / busy : 0;
    run->progress.loss_sum += loss;
    run->progress.loss_n++;
    return QN_OK;
}

static QnStatus record(Run *run)
{
    if (run->progress.loss_n == 0)
        return QN_OK;
    QnMetric m = { .update = run->progress.update,
                   .epoch = (double)run->progress.update / (double)run->status.updates_per_epoch,
                   .loss = run->progress.loss_sum / (double)run->progress.loss_n,
                   .lr = run->status.lr,
                   .value = NAN };
    run->progress.loss_sum = 0;
    run->progress.loss_n = 0;
    return qn_metrics_add(run->metrics, &m);
}

/* ---- evaluation ---- */

static void eval_progress(void *ctx, int64_t done, int64_t total)
{
    Run *run = ctx;
    run->status.evaluating = true;
    run->status.eval_done = done;
    run->status.eval_total = total;
    if (run->events->step)
        run->events->step(run->events->ctx, &run->status);
    run->status.evaluating = false;
}

static QnStatus evaluate(Run *run)
{
    QnEvaluation *e = &run->result->last;
    QnProgress *p = &run->progress;
    double value;
    if (!run->data->test)
        return QN_OK;
    qn_evaluation_fini(e);
    QN_TRY(qn_evaluate(run->s, run->data->test, eval_progress, run, e));
    double score = qn_evaluation_score(run->r, e);
    bool best = isnan(p->best_metric) || score > p->best_metric;
    p->bad_evals = best ? 0 : p->bad_evals + 1;
    if (best) {
        p->best_metric = score;
        p->best_update = p->update;
    }
    qn_evaluation_metric(run->r, e, &value);
    QnMetric m = { .update = p->update,
                   .epoch = (double)p->update / (double)run->status.updates_per_epoch,
                   .loss = e->loss,
                   .value = value,
                   .eval = true };
    QN_TRY(qn_metrics_add(run->metrics, &m));
    if (run->events->eval)
        run->events->eval(run->events->ctx, &run->status, e, best);
    if (best && run->r->keep_best)
        QN_TRY(qn_auto_keep(run->s));
    if (best && run->r->keep_best)
        QN_TRY(qn_checkpoint_save_best(run->folder, run->s->store, p));
    return QN_OK;
}

/* ---- the loop ---- */

static bool is_due(const Run *run, int64_t every)
{
    return run->progress.update % every == 0 || run->progress.update == run->status.n_updates;
}

static bool patience_is_over(const Run *run)
{
    return run->r->early_stop > 0 && run->progress.bad_evals >= run->r->early_stop;
}

static QnStatus save(Run *run)
{
    if (run->saved_update == run->progress.update)
        return QN_OK;
    run->saved_update = run->progress.update;
    QN_TRY(qn_auto_keep(run->s));
    QN_TRY(qn_file_sync(run->metrics->path)); /* no checkpoint without the record up to it */
    return qn_checkpoint_save(run->folder, run->s->store, &run->progress, run->r->checkpoint_keep);
}

/* Evaluation before the checkpoint, so that a resumed run does not evaluate again. */
static QnStatus after_update(Run *run)
{
    if (run->progress.update % run->record_every == 0 || is_due(run, run->eval_every))
        QN_TRY(record(run));
    if (is_due(run, run->eval_every))
        QN_TRY(evaluate(run));
    return is_due(run, run->checkpoint_every) || patience_is_over(run) ? save(run) : QN_OK;
}

/* The first broken file is told of at once: often all of a kind are broken. */
static void note_first_skip(Run *run)
{
    QnSkip skip;
    if (run->told_of_skips || qn_dataset_skip_count(run->data->train) == 0)
        return;
    run->told_of_skips = true;
    if (qn_dataset_skip_at(run->data->train, 0, &skip) != QN_OK)
        return;
    note(run, skip.text);
    qn_free(skip.text);
}

static QnStatus loop(Run *run, int64_t start_ns)
{
    const QnTrainEvents *ev = run->events;
    while (run->progress.update < run->status.n_updates && !patience_is_over(run)) {
        QN_TRY(one_update(run));
        if (run->result->first_step_seconds == 0)
            run->result->first_step_seconds = (double)(qn_clock_ns() - start_ns) * 1e-9;
        if (ev->step)
            ev->step(ev->ctx, &run->status);
        note_first_skip(run);
        QN_TRY(after_update(run));
        if (ev->stop && ev->stop(ev->ctx)) {
            run->result->interrupted = run->progress.update < run->status.n_updates;
            return save(run);
        }
    }
    run->result->stopped_early = run->progress.update < run->status.n_updates;
    return QN_OK;
}

static QnStatus resume(Run *run)
{
    const QnRecipe *r = run->r;
    QnProgress *p = &run->progress;
    QnArena *arena = qn_arena_new();
    bool found = false;
    const char *skipped = NULL;
    QnStatus st = arena ? qn_checkpoint_resume(run->folder, run->s->store, p, r->checkpoint_keep,
                                               arena, &found, &skipped)
                        : QN_ENOMEM;
    if (st == QN_OK && skipped)
        note(run, skipped);
    if (st == QN_OK && found && p->seed != (uint64_t)r->seed)
        st = qn_fail(QN_EUSAGE, "%s was trained with seed %llu, the recipe has %lld", run->folder,
                     (unsigned long long)p->seed, (long long)r->seed);
    if (st == QN_OK && found && p->samples != p->update * r->batch * r->accumulate)
        st = qn_fail(QN_EUSAGE,
                     "%s was trained with other batches (%lld samples in %lld updates) than "
                     "train.batch and train.accumulate give",
                     run->folder, (long long)p->samples, (long long)p->update);
    if (st == QN_OK && found)
        st = qn_loader_seek(run->loader, run->progress.position);
    qn_arena_free(arena);
    return st;
}

/* Names the samples that were passed over, or as many as one wants to read. */
static void note_skips(const Run *run, const QnDataset *ds)
{
    enum { MOST = 20 };
    int64_t n = ds ? qn_dataset_skip_count(ds) : 0;
    char text[64];
    for (int64_t i = 0; i < n && i < MOST; i++) {
        QnSkip skip;
        if (qn_dataset_skip_at(ds, i, &skip) != QN_OK)
            return;
        note(run, skip.text);
        qn_free(skip.text);
    }
    snprintf(text, sizeof text, "%lld broken samples in all were passed over", (long long)n);
    if (n > MOST)
        note(run, text);
}

/* The model that is reported: the best if it was kept, else the last. Whoever interrupts wants to
 * be gone soon: then there is no more than the last evaluation. */
static QnStatus finish(Run *run)
{
    QnTrainResult *res = run->result;
    bool reload = run->r->keep_best && !res->interrupted &&
                  run->progress.best_update != run->progress.update &&
                  run->progress.best_update > 0;
    if (reload) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%.4000s/best", run->folder);
        QN_TRY(qn_checkpoint_load(folder, run->s->store, NULL));
    }
    bool known = res->last.samples && !reload;
    if (run->data->test && !known && !res->interrupted) {
        qn_evaluation_fini(&res->last);
        QN_TRY(qn_evaluate(run->s, run->data->test, eval_progress, run, &res->last));
    }
    note_skips(run, run->data->train);
    note_skips(run, run->data->test);
    res->updates = run->progress.update;
    res->train_seconds = run->progress.train_seconds;
    res->samples_per_second = run->status.samples_per_second;
    res->n_skipped = qn_dataset_skip_count(run->data->train) +
                     (run->data->test ? qn_dataset_skip_count(run->data->test) : 0);
    return QN_OK;
}

QnStatus qn_train(QnSession *s, QnTrainData *data, const char *folder, bool resume_run,
                  int64_t start_ns, const QnTrainEvents *events, QnMetrics *metrics,
                  QnTrainResult *out)
{
    const QnRecipe *r = s->recipe;
    Run run = { .s = s,
                .r = r,
                .data = data,
                .folder = folder,
                .events = events,
                .metrics = metrics,
                .result = out };
    *out = (QnTrainResult){ 0 };
    run.progress = (QnProgress){ .best_metric = NAN, .seed = (uint64_t)r->seed };
    run.status.grad_norm = NAN;
    qn_train_length(r, qn_dataset_count(data->train), &run.status.n_updates,
                    &run.status.updates_per_epoch);
    run.eval_every = r->eval_every ? r->eval_every : run.status.updates_per_epoch;
    run.checkpoint_every = r->checkpoint_every ? r->checkpoint_every : run.status.updates_per_epoch;
    /* Forward alone is about a third of forward and backward. */
    if (data->test)
        run.status.eval_updates =
            (double)qn_dataset_count(data->test) / (3.0 * (double)(r->batch * r->accumulate));
    run.status.eval_every = run.eval_every;
    run.record_every = QN_MAX(1, run.status.n_updates / 400);
    QnStatus st = open_loader(&run);
    if (st == QN_OK && resume_run)
        st = resume(&run);
    if (st == QN_OK && events->begin)
        st = events->begin(events->ctx, run.progress.update);
    if (st == QN_OK)
        st = qn_metrics_open(metrics, folder, run.progress.update);
    if (st == QN_OK)
        st = test_precision(&run);
    if (st == QN_OK)
        st = loop(&run, start_ns);
    if (st == QN_OK)
        st = finish(&run);
    qn_loader_free(run.loader);
    if (st != QN_OK)
        qn_evaluation_fini(&out->last);
    return st;
}

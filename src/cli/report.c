#include "cli/report.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void qn_report_init(QnReport *r, const QnArgs *a, const QnSetup *s, const char *run)
{
    *r = (QnReport){ .args = a, .setup = s, .run = run, .out = a->json ? stderr : stdout };
    r->color = qn_term_color(r->out);
}

int64_t qn_report_peak_rss_bytes(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

void qn_report_start(QnReport *r, int64_t update)
{
    const QnSetup *s = r->setup;
    char params[QN_STR_NUMBER], planned[QN_STR_NUMBER];
    int64_t updates, per_epoch;
    qn_train_length(s->recipe, qn_dataset_count(s->data.train), &updates, &per_epoch);
    fprintf(r->out, "%s: %s parameters, %lld training and %lld test samples\n", s->recipe->name,
            qn_str_count(params, s->session->n_params), (long long)qn_dataset_count(s->data.train),
            s->data.test ? (long long)qn_dataset_count(s->data.test) : 0);
    fprintf(r->out, "%lld updates of %lld samples, %d threads (%s), planned memory %s, into %s\n",
            (long long)updates, (long long)(s->recipe->batch * s->recipe->accumulate),
            s->device->env.n_threads, s->device->env.isa,
            qn_str_bytes(planned, (uint64_t)qn_session_planned_bytes(s->session)), r->run);
    qn_run_forecast_start(&r->forecast, r->out);
    if (update > 0)
        fprintf(r->out, "going on after update %lld\n", (long long)update);
    fflush(r->out);
}

double qn_report_elapsed_s(const QnReport *r)
{
    return 1e-9 * (double)(qn_clock_ns() - r->args->start_ns);
}

const char *qn_report_metric(const QnRecipe *r, const QnEvaluation *e, double *value)
{
    if (r->task != QN_TASK_LANGUAGE)
        return qn_evaluation_metric(r, e, value);
    *value = e->perplexity; /* the loss stands beside it anyway */
    return "test_perplexity";
}

const char *qn_report_counted(const QnRecipe *r)
{
    return r->task == QN_TASK_LANGUAGE ? "tokens" : "samples";
}

/* ---- callbacks ---- */

enum { UNITS = 100 }; /* of progress, in an update */

/* Progress so far; evaluations count as the updates they are reckoned to take, so that the time to
 * go includes them. */
static int64_t units_done(const QnTrainStatus *t)
{
    double evals = (double)(t->update / t->eval_every);
    if (t->evaluating)
        evals += (double)t->eval_done / (double)t->eval_total - (t->update % t->eval_every == 0);
    return (int64_t)(UNITS * ((double)t->update + evals * t->eval_updates));
}

static int64_t units_total(const QnTrainStatus *t)
{
    double evals = (double)((t->n_updates + t->eval_every - 1) / t->eval_every);
    return (int64_t)(UNITS * ((double)t->n_updates + evals * t->eval_updates));
}

static void on_step(void *ctx, const QnTrainStatus *t)
{
    QnReport *r = ctx;
    char text[400], rate[QN_STR_NUMBER], used[QN_STR_NUMBER], planned[QN_STR_NUMBER], spent[160],
        predicted[64] = "";
    const QnRunForecast *f = &r->forecast;
    int64_t now = qn_clock_ns();
    bool known = t->samples_per_second > 0; /* the first updates are not timed */
    if (!r->started) {
        int64_t warm_up = units_done(t) + UNITS * QN_MIN(10, t->n_updates / 10);
        qn_term_progress_init(&r->progress, r->out, units_total(t), warm_up, now);
        r->progress.hide_count = true;
        r->started = true;
    }
    int64_t eta = qn_term_progress_eta_ns(&r->progress, units_done(t), now);
    double to_go = eta < 0 ? -1 : 1e-9 * (double)eta;
    qn_run_forecast_spent(f, qn_report_elapsed_s(r), to_go, spent);
    if (f->f.update_s > 0)
        snprintf(predicted, sizeof predicted, " (predicted %s)",
                 qn_str_si(rate, f->update_items / f->f.update_s));
    if (t->evaluating)
        snprintf(text, sizeof text, "%lld/%lld  evaluating %lld/%lld", (long long)t->update,
                 (long long)t->n_updates, (long long)t->eval_done, (long long)t->eval_total);
    else
        snprintf(text, sizeof text, "%lld/%lld  loss %.4f  lr %.2g%s%s%s%s%s  %s (planned %s)",
                 (long long)t->update, (long long)t->n_updates, t->loss, t->lr, known ? "  " : "",
                 known ? qn_str_si(rate, t->samples_per_second) : "", known ? " samples/s" : "",
                 known ? predicted : "", spent,
                 qn_str_bytes(used, (uint64_t)qn_report_peak_rss_bytes()),
                 qn_str_bytes(planned, (uint64_t)qn_session_planned_bytes(r->setup->session)));
    qn_term_progress_step(&r->progress, units_done(t), text, now);
    if (!r->args->json || t->evaluating || t->update % QN_MAX(1, t->n_updates / 100))
        return;
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "event", "train");
    qn_json_put_int(&w, "update", t->update);
    qn_json_put_int(&w, "updates", t->n_updates);
    qn_json_put_double(&w, "loss", t->loss);
    qn_json_put_double(&w, "lr", t->lr);
    qn_json_put_double(&w, "samples_per_second", t->samples_per_second);
    qn_run_forecast_spent_json(f, qn_report_elapsed_s(r), to_go, &w);
    qn_json_close(&w);
    if (qn_json_end(&w) == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
}

static void on_eval(void *ctx, const QnTrainStatus *t, const QnEvaluation *e, bool best)
{
    QnReport *r = ctx;
    double value;
    const char *name = qn_report_metric(r->setup->recipe, e, &value);
    if (r->started)
        qn_term_progress_hide(&r->progress);
    fprintf(r->out, "update %lld, epoch %.2f: test loss %.4f, %s %.4f%s\n", (long long)t->update,
            (double)t->update / (double)t->updates_per_epoch, e->loss, name + strlen("test_"),
            value, best ? " (best)" : "");
    fflush(r->out);
    if (!r->args->json)
        return;
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "event", "eval");
    qn_json_put_int(&w, "update", t->update);
    qn_json_put_double(&w, "loss", e->loss);
    qn_json_put_double(&w, name, value);
    qn_json_close(&w);
    if (qn_json_end(&w) == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
}

static void on_note(void *ctx, const char *text)
{
    QnReport *r = ctx;
    if (r->started)
        qn_term_progress_hide(&r->progress);
    qn_log_at(&r->args->log, QN_LOG_WARN, "%s", text);
}

static void on_info(void *ctx, const char *text)
{
    QnReport *r = ctx;
    if (r->started)
        qn_term_progress_hide(&r->progress);
    qn_log_at(&r->args->log, QN_LOG_INFO, "%s", text);
}

QnTrainEvents qn_report_events(QnReport *r)
{
    return (QnTrainEvents){
        .ctx = r, .step = on_step, .eval = on_eval, .note = on_note, .info = on_info
    };
}

/* ---- tables and charts ---- */

void qn_report_classes(FILE *out, const QnSetup *s, const QnEvaluation *e)
{
    enum { COLUMNS = 5, MOST = 50 };
    char text[MOST + 1][4][48];
    const char *cells[(MOST + 1) * COLUMNS] = { "class", "samples", "right", "recall",
                                                "most often taken for" };
    const QnDataset *ds = s->data.test ? s->data.test : s->data.train;
    int rows = (int)QN_MIN(e->n_classes, (int64_t)MOST);
    for (int i = 0; i < rows; i++) {
        const int64_t *row = e->confusion + i * e->n_classes;
        const char *name = qn_dataset_class_name(ds, i);
        int64_t total = 0, worst = -1;
        for (int64_t k = 0; k < e->n_classes; k++) {
            total += row[k];
            if (k != i && row[k] > 0 && (worst < 0 || row[k] > row[worst]))
                worst = k;
        }
        char number[24];
        snprintf(number, sizeof number, "%d", i);
        snprintf(text[i][0], sizeof text[i][0], "%s", name ? name : number);
        snprintf(text[i][1], sizeof text[i][1], "%lld", (long long)total);
        snprintf(text[i][2], sizeof text[i][2], "%lld", (long long)row[i]);
        snprintf(text[i][3], sizeof text[i][3], "-");
        if (total)
            snprintf(text[i][3], sizeof text[i][3], "%.3f", (double)row[i] / (double)total);
        const char *other = worst >= 0 ? qn_dataset_class_name(ds, worst) : "";
        const char **c = &cells[(i + 1) * COLUMNS];
        c[0] = text[i][0];
        c[1] = text[i][1];
        c[2] = text[i][2];
        c[3] = text[i][3];
        c[4] = other ? other : "";
    }
    qn_cli_table(out, cells, COLUMNS, rows + 1, "lrrrl");
    if (e->n_classes > MOST)
        fprintf(out, "(the first %d of %lld classes)\n", MOST, (long long)e->n_classes);
}

QnStatus qn_report_chart(QnReport *r, const char *run, const QnMetrics *m)
{
    QnChart chart;
    QnChartSeries series[2];
    void *buffer;
    char path[4096];
    QnStr text = { 0 }, svg = { 0 };
    QN_TRY(qn_metrics_chart(m, &chart, series, &buffer));
    QnChartText how = { .width = QN_MIN(qn_term_width(r->out) - 10, 72),
                        .height = 12,
                        .unicode = qn_term_unicode(),
                        .color = r->color };
    qn_chart_lines(&text, &chart, &how);
    fputs(qn_str_text(&text), r->out);
    qn_svg_chart(&svg, &chart);
    snprintf(path, sizeof path, "%.4000s/loss.svg", run);
    QnStatus st = svg.st ? svg.st : qn_file_write_atomic(path, qn_str_text(&svg), svg.n);
    if (st == QN_OK)
        fprintf(r->out, "loss curve: %s\n", path);
    qn_str_fini(&text);
    qn_str_fini(&svg);
    qn_free(buffer);
    return st;
}

void qn_report_memory(QnReport *r)
{
    const QnSetup *s = r->setup;
    char a[QN_STR_NUMBER], b[QN_STR_NUMBER], c[QN_STR_NUMBER];
    r->allocated_bytes = (int64_t)s->device->peak_bytes; /* before plans to compare with */
    if (s->session->trial_bytes)
        fprintf(r->out, "memory of the trial steps, given back %s: %s\n",
                s->session->mix ? "after each" : "before the run",
                qn_str_bytes(a, s->session->trial_bytes));
    fprintf(r->out, "memory: planned %s, allocated %s, resident at most %s\n",
            qn_str_bytes(a, (uint64_t)qn_session_planned_bytes(s->session)),
            qn_str_bytes(b, s->device->peak_bytes),
            qn_str_bytes(c, (uint64_t)qn_report_peak_rss_bytes()));
}

QnStatus qn_report_summary(QnReport *r, const char *run, const QnTrainResult *t, QnStr *json)
{
    const QnSetup *s = r->setup;
    char digest[QN_SHA256_HEX];
    double value;
    const char *metric = qn_report_metric(s->recipe, &t->last, &value);
    QnJsonWriter w;
    QN_TRY(qn_checkpoint_digest(s->session->store, digest));
    qn_json_begin(&w, json, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "event", "done");
    qn_json_put_string(&w, "run", run);
    if (t->last.samples) {
        qn_json_put_double(&w, metric, value);
        qn_json_put_double(&w, "test_loss", t->last.loss);
    }
    qn_json_put_int(&w, "updates", t->updates);
    qn_json_put_double(&w, "train_seconds", t->train_seconds);
    qn_json_put_double(&w, "samples_per_second", t->samples_per_second);
    qn_json_put_double(&w, "first_step_seconds", t->first_step_seconds);
    qn_run_forecast_end_json(&r->forecast, t, qn_report_elapsed_s(r), &w);
    qn_json_put_int(&w, "parameters", s->session->n_params);
    qn_json_put_int(&w, "peak_rss_bytes", qn_report_peak_rss_bytes());
    qn_json_put_int(&w, "planned_peak_bytes", qn_session_planned_bytes(s->session));
    qn_json_put_int(&w, "allocated_peak_bytes", r->allocated_bytes);
    qn_json_put_int(&w, "trial_peak_bytes", (int64_t)s->session->trial_bytes);
    qn_auto_report_json(s->session, r->costs, &w);
    qn_json_put_int(&w, "skipped_samples", t->n_skipped);
    qn_json_put_int(&w, "seed", s->recipe->seed);
    qn_json_put_int(&w, "threads", s->device->env.n_threads);
    qn_json_put_bool(&w, "stopped_early", t->stopped_early);
    qn_json_put_bool(&w, "interrupted", t->interrupted);
    qn_json_put_string(&w, "weights_sha256", digest);
    qn_json_close(&w);
    return qn_json_end(&w);
}

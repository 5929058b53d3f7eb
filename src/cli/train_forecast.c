#include "cli/train_forecast.h"

#include "base/cache.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_UPDATES = 20 }; /* of a run that says something about the next */

QnStatus qn_residual_path(char *out, size_t bytes)
{
    return qn_cache_path("residuals.jsonl", out, bytes);
}

/* ---- before ---- */

/* NULL: the machine was not measured. */
static QnCalib *read_calib(const QnLog *log)
{
    char path[4096];
    QnCalib *c = qn_alloc(sizeof *c);
    QnStatus st = c ? qn_cache_path("calibration.json", path, sizeof path) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_calib_read(path, c);
    if (st == QN_OK)
        return c;
    if (st != QN_ENOTFOUND)
        qn_log_at(log, QN_LOG_WARN, "no prediction: %s", qn_error_last()->text);
    qn_free(c);
    return NULL;
}

static void read_earlier(QnResiduals *r, const QnLog *log)
{
    char path[4096];
    *r = (QnResiduals){ 0 };
    QnStatus st = qn_residual_path(path, sizeof path);
    if (st == QN_OK)
        st = qn_residuals_read(path, r);
    if (st != QN_OK)
        qn_log_at(log, QN_LOG_WARN, "earlier runs are left out: %s", qn_error_last()->text);
    else if (r->n_corrupt)
        qn_log_at(log, QN_LOG_WARN, "%s: %lld damaged line%s passed over", path,
                  (long long)r->n_corrupt, r->n_corrupt == 1 ? " is" : "s are");
}

static void set_length(QnRunForecast *r, const QnSetup *s)
{
    const QnRecipe *recipe = s->recipe;
    qn_train_length(recipe, qn_dataset_count(s->data.train), &r->n_updates, &r->per_epoch);
    r->update_items = (double)(recipe->batch * recipe->accumulate);
    if (!(r->f.update_s > 0))
        return;
    double evals = 0, batches = 0;
    if (s->data.test && s->session->eval_batch > 0) {
        int64_t every = recipe->eval_every > 0 ? recipe->eval_every : r->per_epoch;
        evals = ceil((double)r->n_updates / (double)QN_MAX(1, every));
        batches = ceil((double)qn_dataset_count(s->data.test) / (double)s->session->eval_batch);
    }
    r->epoch_s = r->f.update_s * (double)r->per_epoch;
    r->total_s = r->f.update_s * (double)r->n_updates + evals * batches * r->f.eval_batch_s;
}

void qn_run_forecast_init(QnRunForecast *r, const QnSetup *s, double price, bool keep,
                          const QnLog *log)
{
    QnResiduals earlier = { 0 };
    const char *off = getenv("QUERN_NO_RESIDUALS");
    *r = (QnRunForecast){ .keep = keep && !(off && off[0]) };
    QnCalib *calib = read_calib(log);
    if (calib && r->keep)
        read_earlier(&earlier, log);
    const QnSession *session = s->session;
    QnRunPlans plans = { .device = session->device,
                         .train = session->train_plan,
                         .update = session->update_plan,
                         .eval = session->eval_plan,
                         .micro_batches = s->recipe->accumulate,
                         .fp32 = s->recipe->precision == QN_PRECISION_FP32 };
    qn_forecast(&plans, calib, &earlier, &r->f);
    r->usd_per_hour = price >= 0 ? price : r->f.usd_per_hour;
    set_length(r, s);
    qn_residuals_fini(&earlier);
    qn_free(calib);
}

static const char *span(char out[QN_STR_NUMBER], double seconds)
{
    return qn_str_duration(out, (int64_t)fmin(seconds * 1e9, 9e18));
}

void qn_run_forecast_start(const QnRunForecast *r, FILE *out)
{
    char step[QN_STR_NUMBER], epoch[QN_STR_NUMBER], all[QN_STR_NUMBER], low[QN_STR_NUMBER],
        high[QN_STR_NUMBER], cost[160];
    if (!(r->f.update_s > 0))
        return;
    fprintf(out, "predicted: %s an update, %s an epoch, %s in all (80 %%: %s to %s)%s",
            span(step, r->f.update_s), span(epoch, r->epoch_s), span(all, r->total_s),
            span(low, r->total_s * exp(-r->f.spread)), span(high, r->total_s * exp(r->f.spread)),
            qn_run_forecast_spent(r, r->total_s, -1, cost));
    if (r->f.n_earlier)
        fprintf(out, "; %lld earlier run%s made it %.2f times as long", (long long)r->f.n_earlier,
                r->f.n_earlier == 1 ? "" : "s", r->f.factor);
    fputs("\n", out);
}

/* ---- meanwhile ---- */

static double kwh(const QnRunForecast *r, double seconds)
{
    return 1e-3 * r->f.watts * seconds / 3600;
}

static double usd(const QnRunForecast *r, double seconds)
{
    return r->usd_per_hour * seconds / 3600;
}

const char *qn_run_forecast_spent(const QnRunForecast *r, double so_far_s, double to_go_s,
                                  char out[160])
{
    size_t n = 0;
    out[0] = '\0';
    if (r->usd_per_hour > 0) {
        n += (size_t)snprintf(out, 160, "  $%.3g", usd(r, so_far_s));
        if (to_go_s >= 0)
            n += (size_t)snprintf(out + n, 160 - n, ", $%.3g to go", usd(r, to_go_s));
    }
    if (r->f.watts > 0) {
        n += (size_t)snprintf(out + n, 160 - n, "  %.3g Wh", 1e3 * kwh(r, so_far_s));
        if (to_go_s >= 0)
            snprintf(out + n, 160 - n, ", %.3g to go", 1e3 * kwh(r, to_go_s));
    }
    return out;
}

void qn_run_forecast_spent_json(const QnRunForecast *r, double so_far_s, double to_go_s,
                                QnJsonWriter *w)
{
    if (r->f.update_s > 0)
        qn_json_put_double(w, "predicted_samples_per_second", r->update_items / r->f.update_s);
    if (r->usd_per_hour > 0) {
        qn_json_put_double(w, "usd", usd(r, so_far_s));
        if (to_go_s >= 0)
            qn_json_put_double(w, "usd_to_go", usd(r, to_go_s));
    }
    if (r->f.watts > 0) {
        qn_json_put_double(w, "kwh", kwh(r, so_far_s));
        if (to_go_s >= 0)
            qn_json_put_double(w, "kwh_to_go", kwh(r, to_go_s));
    }
}

/* ---- after ---- */

/* Of an update, by the throughput without the first ones; 0: there is none. */
static double measured_s(const QnRunForecast *r, const QnTrainResult *t)
{
    return t->samples_per_second > 0 ? r->update_items / t->samples_per_second : 0;
}

void qn_run_forecast_end(const QnRunForecast *r, const QnTrainResult *t, double so_far_s, FILE *out)
{
    char epoch[QN_STR_NUMBER], was[QN_STR_NUMBER], cost[160];
    double measured = measured_s(r, t);
    if (r->f.update_s > 0 && measured > 0)
        fprintf(out, "an epoch took %s, predicted %s (%+.0f %%)\n",
                span(epoch, measured * (double)r->per_epoch), span(was, r->epoch_s),
                100 * (r->f.update_s / measured - 1));
    if (qn_run_forecast_spent(r, so_far_s, -1, cost)[0])
        fprintf(out, "spent:%s\n", cost);
}

void qn_run_forecast_end_json(const QnRunForecast *r, const QnTrainResult *t, double so_far_s,
                              QnJsonWriter *w)
{
    double measured = measured_s(r, t);
    if (measured > 0)
        qn_json_put_double(w, "seconds_per_epoch", measured * (double)r->per_epoch);
    if (r->f.update_s > 0) {
        qn_json_put_double(w, "predicted_seconds_per_epoch", r->epoch_s);
        qn_json_put_double(w, "predicted_seconds", r->total_s);
        qn_json_put_int(w, "earlier_runs", r->f.n_earlier);
        qn_json_put_double(w, "earlier_factor", r->f.factor);
    }
    qn_run_forecast_spent_json(r, so_far_s, -1, w);
}

static QnStatus keep(const QnRunForecast *r, const QnSetup *s, double seconds)
{
    char path[4096], folder[4096];
    QnResidual x = { .stack = "quern",
                     .predicted_s = r->f.raw_update_s,
                     .measured_s = seconds,
                     .time = (int64_t)time(NULL) };
    snprintf(x.device, sizeof x.device, "%s", r->f.device);
    snprintf(x.model, sizeof x.model, "%s", r->f.model);
    snprintf(x.name, sizeof x.name, "%.63s", s->recipe->name);
    QN_TRY(qn_residual_path(path, sizeof path));
    QN_TRY(qn_cache_path("", folder, sizeof folder));
    QN_TRY(qn_file_make_dirs(folder));
    return qn_residual_append(path, &x);
}

void qn_run_forecast_keep(const QnRunForecast *r, const QnSetup *s, const QnTrainResult *t,
                          const QnLog *log)
{
    double seconds = measured_s(r, t);
    if (!r->keep || !(r->f.raw_update_s > 0) || !(seconds > 0) || t->interrupted ||
        t->updates < LEAST_UPDATES)
        return;
    if (keep(r, s, seconds) != QN_OK)
        qn_log_at(log, QN_LOG_WARN, "this run is not kept for predictions: %s",
                  qn_error_last()->text);
}

/* quern plan residuals: what finished runs took over what was predicted. */
#include "cli/plan.h"

#include "cli/train_forecast.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLEAR = QN_PLAN_OWN };

static const QnOption options[] = {
    [CLEAR] = QN_PLAN_FLAG("--clear", "forget them"),
    [QN_PLAN_JSON] = QN_PLAN_FLAG("--json", "one JSON object a device and model"),
};

static bool is_same(const QnResidual *a, const QnResidual *b)
{
    return !strcmp(a->device, b->device) && !strcmp(a->model, b->model) &&
           !strcmp(a->stack, b->stack);
}

static QnStatus json_row(const QnResidual *r, double factor, int64_t n)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "device", r->device);
    qn_json_put_string(&w, "model", r->model);
    qn_json_put_string(&w, "name", r->name);
    qn_json_put_string(&w, "stack", r->stack);
    qn_json_put_int(&w, "runs", n);
    qn_json_put_double(&w, "predicted_s", r->predicted_s);
    qn_json_put_double(&w, "measured_s", r->measured_s);
    qn_json_put_double(&w, "factor", factor);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static void print_row(const QnResidual *r, double factor, int64_t n)
{
    char predicted[QN_STR_NUMBER], measured[QN_STR_NUMBER];
    printf("%-28.28s %-36.36s %4lld  %10s  %10s  %6.3f\n", r->name, r->device, (long long)n,
           qn_str_duration(predicted, (int64_t)(1e9 * fmin(r->predicted_s, 1e9))),
           qn_str_duration(measured, (int64_t)(1e9 * fmin(r->measured_s, 1e9))), factor);
}

/* A row for each device and model, by its newest run. */
static QnStatus list(const QnArgs *a, const QnResiduals *r)
{
    if (!a->json)
        printf("%-28s %-36s %4s  %10s  %10s  %6s\n", "recipe", "device", "runs", "predicted",
               "measured", "factor");
    for (int64_t i = r->n - 1; i >= 0; i--) {
        bool newest = true;
        int64_t n;
        for (int64_t k = i + 1; newest && k < r->n; k++)
            newest = !is_same(&r->items[i], &r->items[k]);
        if (!newest)
            continue;
        const QnResidual *x = &r->items[i];
        double factor = qn_residual_factor(r, x->device, x->model, x->stack, &n);
        if (a->json)
            QN_TRY(json_row(x, factor, n));
        else
            print_row(x, factor, n);
    }
    return QN_OK;
}

static QnStatus residuals(const QnArgs *a)
{
    char path[4096];
    QnResiduals r;
    QN_TRY(qn_residual_path(path, sizeof path));
    if (a->text[CLEAR]) {
        if (unlink(path) < 0 && errno != ENOENT)
            return qn_fail(QN_EIO, "%s: cannot remove: %s", path, strerror(errno));
        return QN_OK;
    }
    QN_TRY(qn_residuals_read(path, &r));
    if (r.n_corrupt)
        qn_log_at(&a->log, QN_LOG_WARN, "%s: %lld damaged line%s passed over", path,
                  (long long)r.n_corrupt, r.n_corrupt == 1 ? " is" : "s are");
    QnStatus st = list(a, &r);
    if (st == QN_OK && !a->json)
        printf(
            "%lld run%s in %s; an update's time, and what the next prediction is multiplied by\n",
            (long long)r.n, r.n == 1 ? "" : "s", path);
    qn_residuals_fini(&r);
    return st;
}

static int run(QnArgs *a)
{
    return residuals(a) == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
}

const QnCommand qn_cmd_plan_residuals = {
    .name = "plan residuals",
    .summary = "List what finished runs took over what was predicted, or forget it",
    .usage = "[--clear] [--json]",
    .examples = "  quern plan residuals\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .run = run,
};

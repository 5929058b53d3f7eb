/* quern plan --calibrate, and the device "this". */
#include "cli/plan.h"
#include "cli/train_forecast.h"

#include "base/cache.h"
#include "base/file.h"
#include "base/term.h"
#include "plan/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- measuring ---- */

static void progress(void *ctx, double part, const char *what)
{
    QnStr line = { 0 };
    (void)ctx;
    if (!qn_term_is_tty(stderr))
        return;
    qn_str_add(&line, "\r");
    qn_term_bar(&line, part, 30, qn_term_unicode());
    qn_str_printf(&line, " %3.0f %%  %-24s", 100 * part, what);
    fputs(qn_str_text(&line), stderr);
    if (part >= 1)
        fputs("\r\033[K", stderr);
    qn_str_fini(&line);
}

static void print_points(const QnCalib *c)
{
    char size[QN_STR_NUMBER], rate[QN_STR_NUMBER], time[QN_STR_NUMBER];
    for (int i = 0; i < c->n_points; i++) {
        const QnCalibPoint *p = &c->points[i];
        bool move = !strcmp(p->op, "add");
        if (move)
            qn_str_unit(size, p->bytes, "B");
        else
            snprintf(size, sizeof size, "%.0f", p->size);
        printf(
            "  %-8s %-10s %10s  %s\n", p->op, size,
            qn_str_duration(time, (int64_t)(p->seconds * 1e9)),
            qn_str_unit(rate, (move ? p->bytes : p->flops) / p->seconds, move ? "B/s" : "FLOP/s"));
    }
}

static void print_result(const QnCalib *c, const char *path)
{
    char rate[QN_STR_NUMBER], bytes[QN_STR_NUMBER];
    printf("%s, %d thread%s (%s)\n", c->cpu, c->n_threads, c->n_threads == 1 ? "" : "s", c->isa);
    print_points(c);
    printf("best rate %s", qn_str_unit(rate, c->peak_flops, "FLOP/s"));
    printf(", memory %s of %s\n", qn_str_unit(rate, c->bandwidth, "B/s"),
           qn_str_bytes(bytes, (uint64_t)c->memory_bytes));
    printf("%.2f us besides each kernel, %d kinds of kernels fitted\n", 1e6 * c->node_s,
           c->n_groups);
    if (c->jpeg_s > 0)
        printf("a core decodes %.0f JPEGs of 500 x 375 pixels a second\n", 1 / c->jpeg_s);
    if (c->watts > 0)
        printf("%.1f W while computing\n", c->watts);
    printf("steps of %lld nets, each predicted from the others: half are off by less than %.0f %%, "
           "four of five by less than %.0f %%\n",
           (long long)c->n_steps, 100 * (exp(c->median) - 1), 100 * (exp(c->spread) - 1));
    printf("kept in %s; 'quern plan MODEL --gpu this' uses it\n", path);
}

static QnStatus print_json(const QnCalib *c, const char *path)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "cpu", c->cpu);
    qn_json_put_int(&w, "threads", c->n_threads);
    qn_json_put_double(&w, "peak_flops", c->peak_flops);
    qn_json_put_double(&w, "bandwidth", c->bandwidth);
    qn_json_put_double(&w, "node_us", 1e6 * c->node_s);
    qn_json_put_double(&w, "median_error", exp(c->median) - 1);
    qn_json_put_double(&w, "error_80", exp(c->spread) - 1);
    qn_json_put_int(&w, "nets", c->n_steps);
    qn_json_put_int(&w, "groups", c->n_groups);
    qn_json_put_double(&w, "jpegs_per_second", c->jpeg_s > 0 ? 1 / c->jpeg_s : 0);
    qn_json_put_double(&w, "watts", c->watts);
    qn_json_put_double(&w, "usd_per_hour", c->usd_per_hour);
    qn_json_put_string(&w, "file", path);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static QnStatus store(const QnCalib *c, char path[4096])
{
    char folder[4096];
    QN_TRY(qn_cache_path("calibration.json", path, 4096));
    QN_TRY(qn_cache_path("", folder, sizeof folder));
    QN_TRY(qn_file_make_dirs(folder));
    return qn_calib_write(c, path);
}

QnStatus qn_plan_calibrate(const QnArgs *a)
{
    char path[4096];
    QnDevice *device = NULL;
    QnChoices *choices = NULL;
    QnCalib *c = qn_alloc(sizeof *c);
    double price, watts;
    QnCalibrateOptions o = { .seconds =
                                 a->text[QN_PLAN_SECONDS] ? (double)a->number[QN_PLAN_SECONDS] : 20,
                             .progress = progress };
    QnStatus st = c ? QN_OK : QN_ENOMEM;
    if (a->n_positional)
        st = qn_fail(QN_EUSAGE, "--calibrate takes no model: it measures the machine");
    QN_TRY_DONE(st);
    QN_TRY_DONE(qn_plan_number(a, QN_PLAN_HOURLY, 0, &price));
    QN_TRY_DONE(qn_plan_number(a, QN_PLAN_POWER, 0, &watts));
    QN_TRY_DONE(qn_cli_device("cpu", a->number[QN_PLAN_THREADS], false, &device));
    QN_TRY_DONE(qn_cli_choices(&choices));
    o.choices = choices;
    QN_TRY_DONE(qn_calibrate(device, &o, c));
    c->usd_per_hour = price;
    if (watts > 0)
        c->watts = watts;
    QN_TRY_DONE(store(c, path));
    if (a->json)
        st = print_json(c, path);
    else
        print_result(c, path);
done:
    qn_choices_free(choices);
    qn_device_close(device);
    qn_free(c);
    return st;
}

/* ---- the device ---- */

struct QnPlanHere {
    QnCalib calib;
    QnCard card;
    QnResiduals earlier;
    QnChoices *choices;
};

/* Whether a list of devices has this one. */
static bool names_here(const char *list)
{
    size_t n;
    for (; list && *list; list += n + (list[n] == ','))
        if ((n = strcspn(list, ",")) >= 4 && !strncmp(list, "this", 4) &&
            (n == 4 || list[4] == ':'))
            return true;
    return false;
}

QnStatus qn_plan_here_open(QnPlanTable *t, const QnArgs *a)
{
    char path[4096];
    if (!names_here(a->text[QN_PLAN_GPU]) && !names_here(a->text[QN_PLAN_EXPLAIN]))
        return QN_OK;
    t->here = qn_alloc(sizeof *t->here);
    if (!t->here)
        return QN_ENOMEM;
    QnCalib *c = &t->here->calib;
    QN_TRY(qn_cache_path("calibration.json", path, sizeof path));
    QN_TRY(qn_calib_read(path, c));
    QN_TRY(qn_cli_device("cpu", c->n_threads, false, &c->device));
    QN_TRY(qn_cli_choices(&t->here->choices));
    c->choices = t->here->choices;
    if (!getenv("QUERN_NO_RESIDUALS")) {
        QN_TRY(qn_residual_path(path, sizeof path));
        QN_TRY(qn_residuals_read(path, &t->here->earlier));
        c->earlier = &t->here->earlier;
    }
    t->here->card = qn_calib_card(c);
    t->catalogue.here = &t->here->card;
    return QN_OK;
}

static QnStatus print_measured(const QnArgs *a, const QnOffer *o, double step_s)
{
    char predicted[QN_STR_NUMBER], measured[QN_STR_NUMBER];
    double off = o->cost.step_s / step_s - 1;
    if (!a->json) {
        qn_str_duration(predicted, (int64_t)(1e9 * o->cost.step_s));
        qn_str_duration(measured, (int64_t)(1e9 * step_s));
        printf("a step of %lld here: %s, predicted %s (%+.1f %%)\n", (long long)o->batch, measured,
               predicted, 100 * off);
        return QN_OK;
    }
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "device", o->card->name);
    qn_json_put_double(&w, "predicted_ms", 1e3 * o->cost.step_s);
    qn_json_put_double(&w, "measured_ms", 1e3 * step_s);
    qn_json_put_double(&w, "error_pct", 100 * off);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

QnStatus qn_plan_here_measure(const QnArgs *a, QnPlanTable *t)
{
    const QnOffer *o = NULL;
    double step_s;
    for (int i = 0; i < t->n; i++)
        if (t->offers[i].card->calib && !t->offers[i].error[0])
            o = &t->offers[i];
    if (!o)
        return qn_fail(QN_EUSAGE, "--measure needs --gpu this");
    if (o->accumulate > 1)
        return qn_fail(QN_EUSAGE, "--measure runs steps without --accumulate");
    QnCountRequest r = { .train = t->job.train,
                         .recompute = o->recompute,
                         .batch = o->batch,
                         .image = t->job.image,
                         .sequence = t->job.sequence };
    double seconds = a->text[QN_PLAN_SECONDS] ? (double)a->number[QN_PLAN_SECONDS] : 3;
    QnStatus st = qn_calibrate_step(t->here->calib.device, t->here->choices, t->job.model, &r,
                                    seconds, &step_s);
    return st == QN_OK ? print_measured(a, o, step_s) : st;
}

void qn_plan_here_close(QnPlanTable *t)
{
    if (t->here && t->here->calib.device)
        qn_device_close(t->here->calib.device);
    if (t->here)
        qn_residuals_fini(&t->here->earlier);
    if (t->here)
        qn_choices_free(t->here->choices);
    qn_free(t->here);
    t->here = NULL;
}

#include "cli/bench.h"
#include "cli/model_dims.h"
#include "cli/onnx_plan.h"
#include "cli/run_setup.h"

#include "base/chart.h"
#include "base/clock.h"
#include "base/term.h"
#include "io/loader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SET, STEPS, THREADS, BATCH, DIM, EVAL, PROFILE, SWEEP, JSON };

static const QnOption options[] = {
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…",
              "change the recipe; of an ONNX model INPUT=FILE.npy", 0, 0 },
    [STEPS] = { "--steps", 0, QN_OPTION_INT, "N", "steps to time; default: two seconds of them", 1,
                1 << 20 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: one a core", 1, 1024 },
    [BATCH] = { "--batch", 0, QN_OPTION_INT, "N", "ONNX models: first dim of every input", 1,
                1 << 24 },
    [DIM] = QN_CLI_DIM_OPTION,
    [EVAL] = { "--eval", 0, QN_OPTION_FLAG, NULL, "time evaluation, not training", 0, 0 },
    [PROFILE] = { "--profile", 0, QN_OPTION_FLAG, NULL,
                  "each node's time beside its limit; with --json an object a node: step, op, "
                  "name, "
                  "kernel, type, seconds, limit_seconds, share_of_time, share_of_gap, gflops, gbs",
                  0, 0 },
    [SWEEP] = { "--sweep", 0, QN_OPTION_TEXT, "batch", "throughput by batch size, doubling", 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a result", 0, 0 },
};

enum { MAX_STEPS = 10000, WARM_UP = 3 };

typedef struct Timing {
    double median_ns, best_ns;
    double loader_ns; /* spent waiting for batches, in all */
    int n;
} Timing;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static QnStatus one_step(const QnArgs *a, const QnSetup *s, const QnBatch *b, int64_t i)
{
    if (a->text[EVAL]) {
        QnEvalResult r;
        return qn_session_eval(s->session, b, &r);
    }
    QnStepResult r;
    return qn_session_step(s->session, b, i, s->recipe->schedule.lr * 1e-3, &r);
}

/* Real batches through the same calls that training makes. */
static QnStatus time_steps(const QnArgs *a, const QnSetup *s, Timing *t)
{
    const QnSession *ses = s->session;
    QnLoaderOptions o = { .batch = a->text[EVAL] ? ses->eval_batch : ses->batch,
                          .workers = (int)s->recipe->data.workers,
                          .shuffle = s->recipe->task != QN_TASK_LANGUAGE,
                          .drop_last = true,
                          .seed = (uint64_t)s->recipe->seed };
    QnLoader *loader = NULL;
    double *ns = qn_alloc_array(MAX_STEPS, sizeof *ns);
    QnStatus st = ns ? qn_loader_new(s->data.train, &o, &loader) : QN_ENOMEM;
    int wanted = a->text[STEPS] ? (int)QN_MIN(a->number[STEPS], (int64_t)MAX_STEPS) : MAX_STEPS;
    int64_t start = 0;
    *t = (Timing){ 0 };
    for (int64_t i = 0; st == QN_OK && t->n < wanted; i++) {
        QnBatch b;
        int64_t t0 = qn_clock_ns();
        st = qn_loader_next(loader, &b);
        int64_t t1 = qn_clock_ns();
        if (st == QN_OK)
            st = one_step(a, s, &b, i);
        int64_t t2 = qn_clock_ns();
        if (i == WARM_UP)
            start = t0;
        if (i < WARM_UP)
            continue;
        t->loader_ns += (double)(t1 - t0);
        ns[t->n++] = (double)(t2 - t1);
        if (!a->text[STEPS] && t2 - start > 2000000000 && t->n >= 5)
            break;
    }
    if (st == QN_OK) {
        qsort(ns, (size_t)t->n, sizeof *ns, by_value);
        t->median_ns = ns[t->n / 2];
        t->best_ns = ns[0];
    }
    qn_loader_free(loader);
    qn_free(ns);
    return st;
}

/* ---- one result ---- */

static int64_t batch_of(const QnArgs *a, const QnSetup *s)
{
    return a->text[EVAL] ? s->session->eval_batch : s->session->batch;
}

static QnStatus print_timing(const QnArgs *a, const QnSetup *s, const Timing *t)
{
    double rate = (double)batch_of(a, s) / (t->median_ns * 1e-9);
    double wait = t->loader_ns / (t->loader_ns + t->median_ns * t->n);
    if (!a->json) {
        char median[QN_STR_NUMBER], best[QN_STR_NUMBER], text[QN_STR_NUMBER];
        printf(
            "batch %lld: %s a step (best %s, %d steps), %s samples/s, %.1f %% waiting for data\n",
            (long long)batch_of(a, s), qn_str_duration(median, (int64_t)t->median_ns),
            qn_str_duration(best, (int64_t)t->best_ns), t->n, qn_str_si(text, rate), 100 * wait);
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "recipe", s->recipe->name);
    qn_json_put_string(&w, "phase", a->text[EVAL] ? "eval" : "train");
    qn_json_put_int(&w, "batch", batch_of(a, s));
    qn_json_put_int(&w, "threads", s->device->env.n_threads);
    qn_json_put_double(&w, "step_ns", t->median_ns);
    qn_json_put_double(&w, "best_step_ns", t->best_ns);
    qn_json_put_double(&w, "samples_per_second", rate);
    qn_json_put_double(&w, "loader_share", wait);
    qn_json_put_int(&w, "planned_peak_bytes", (int64_t)s->device->peak_bytes);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

/* ---- commands ---- */

static QnStatus bench_one(const QnArgs *a, const char *const *settings, int n_settings,
                          double *rate)
{
    QnSetup s;
    Timing t;
    QnSessionOptions o = { .training = true, .profile = a->text[PROFILE] != NULL };
    QN_TRY(qn_setup_open(&s, a->positional[0], settings, n_settings,
                         &(QnDeviceWish){ .name = "cpu" }, &o));
    QnStatus st = time_steps(a, &s, &t);
    if (st == QN_OK) {
        *rate = (double)batch_of(a, &s) / (t.median_ns * 1e-9);
        st = print_timing(a, &s, &t);
    }
    if (st == QN_OK && a->text[PROFILE])
        st = qn_bench_profile(a->text[EVAL] ? s.session->eval_plan : s.session->train_plan,
                              &s.device->env, a->json);
    qn_setup_close(&s);
    return st;
}

/* Doubles the batch until throughput gains less than 3 % twice, or memory or data end. */
static QnStatus sweep(const QnArgs *a)
{
    enum { MOST = 16 };
    double rates[MOST];
    char labels[MOST][24];
    QnChartBar bars[MOST];
    int n = 0, flat = 0;
    for (int64_t batch = 1; n < MOST && flat < 2; batch *= 2, n++) {
        const char *settings[QN_ARGS_MAX + 2];
        char one[48], two[48];
        memcpy(settings, a->many, (size_t)a->n_many * sizeof *settings);
        snprintf(one, sizeof one, "train.batch=%lld", (long long)batch);
        snprintf(two, sizeof two, "train.eval.batch=%lld", (long long)batch);
        settings[a->n_many] = one;
        settings[a->n_many + 1] = two;
        QnStatus st = bench_one(a, settings, a->n_many + 2, &rates[n]);
        if (st == QN_EUSAGE && n > 0)
            break; /* more than there are samples */
        QN_TRY(st);
        flat = n && rates[n] < 1.03 * rates[n - 1] ? flat + 1 : 0;
        snprintf(labels[n], sizeof labels[n], "%lld", (long long)batch);
        bars[n] = (QnChartBar){ .label = labels[n], .value = rates[n] };
    }
    if (!a->json) {
        QnStr text = { 0 };
        QnChartText how = {
            .width = 50, .height = 1, .unicode = qn_term_unicode(), .color = qn_term_color(stdout)
        };
        qn_chart_bars(&text, bars, n, 0, &how);
        printf("samples/s by batch:\n%s", qn_str_text(&text));
        qn_str_fini(&text);
    }
    return QN_OK;
}

static int run(QnArgs *a)
{
    char threads[64];
    double rate;
    bool is_onnx = qn_cli_is_onnx(a->positional[0]);
    if (is_onnx && (a->text[SWEEP] || a->text[EVAL])) {
        qn_fail(QN_EUSAGE, "%s is for recipes; --batch N times an ONNX model at another batch",
                a->text[SWEEP] ? "--sweep" : "--eval");
        return qn_cli_fail(a);
    }
    if (is_onnx) {
        QnBenchOnnx o = { .batch = a->text[BATCH] ? a->number[BATCH] : 0,
                          .threads = a->text[THREADS] ? a->number[THREADS] : 0,
                          .runs = a->text[STEPS] ? a->number[STEPS] : 0,
                          .profile = a->text[PROFILE] != NULL,
                          .dim_option = DIM };
        return qn_bench_onnx(a, &o) == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, NULL);
    }
    if (a->text[DIM] || a->text[BATCH]) {
        qn_fail(QN_EUSAGE,
                "--dim and --batch are for ONNX models; --set train.batch=N is a recipe's");
        return qn_cli_fail(a);
    }
    if (a->text[THREADS] && a->n_many < QN_ARGS_MAX) {
        snprintf(threads, sizeof threads, "train.threads=%lld", (long long)a->number[THREADS]);
        a->many[a->n_many++] = threads;
    }
    if (a->text[SWEEP] && strcmp(a->text[SWEEP], "batch")) {
        qn_fail(QN_EUSAGE, "--sweep: only batch can be swept, not '%s'", a->text[SWEEP]);
        return qn_cli_fail(a);
    }
    QnStatus st = a->text[SWEEP] ? sweep(a) : bench_one(a, a->many, a->n_many, &rate);
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
}

const QnCommand qn_cmd_bench = {
    .name = "bench",
    .summary = "Time a recipe's step or an ONNX model, node by node if asked",
    .usage = "RECIPE|MODEL.onnx [options]",
    .examples = "  quern bench recipes/fashion-mnist-demo.yaml\n"
                "  quern bench recipes/fashion-mnist-demo.yaml --profile\n"
                "  quern bench recipes/fashion-mnist-demo.yaml --profile --json\n"
                "  quern bench recipes/fashion-mnist-demo.yaml --sweep batch\n"
                "  quern bench model.onnx --batch 8 --threads 2\n"
                "  quern bench model.onnx --dim batch=1 --dim seq=128\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};

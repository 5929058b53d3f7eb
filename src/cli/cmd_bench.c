#include "cli/run_setup.h"

#include "backend/cpu/limits.h"
#include "base/chart.h"
#include "base/clock.h"
#include "base/term.h"
#include "io/loader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SET, STEPS, THREADS, EVAL, PROFILE, SWEEP, JSON };

static const QnOption options[] = {
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…", "change the recipe", 0, 0 },
    [STEPS] = { "--steps", 0, QN_OPTION_INT, "N", "steps to time; default: two seconds of them", 1,
                1 << 20 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: one a core", 1, 1024 },
    [EVAL] = { "--eval", 0, QN_OPTION_FLAG, NULL, "time evaluation, not training", 0, 0 },
    [PROFILE] = { "--profile", 0, QN_OPTION_FLAG, NULL, "time of each node beside its limit", 0,
                  0 },
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

/* ---- profile ---- */

typedef struct Row {
    QnPlanStep step;
    double ns, limit_ns;
} Row;

static int by_gap(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    double p = x->ns - x->limit_ns, q = y->ns - y->limit_ns;
    return p > q ? -1 : p < q;
}

static void print_row(const Row *r, double total, double gap)
{
    char type[QN_TYPE_TEXT_BYTES], time[QN_STR_NUMBER], limit[QN_STR_NUMBER], flops[QN_STR_NUMBER],
        bytes[QN_STR_NUMBER];
    const QnPlanStep *s = &r->step;
    double moved = s->cost.bytes_read + s->cost.bytes_written;
    printf("%5.1f %% %10s %10s %5.1f %%  %13s %11s  %-18s %-28s %-24s %s\n", 100 * r->ns / total,
           qn_str_duration(time, (int64_t)r->ns), qn_str_duration(limit, (int64_t)r->limit_ns),
           100 * (r->ns - r->limit_ns) / gap,
           qn_str_unit(flops, s->cost.flops / (r->ns * 1e-9), "FLOP/s"),
           qn_str_unit(bytes, moved / (r->ns * 1e-9), "B/s"), s->node->op->name, s->kernel->name,
           s->node->n_out ? qn_type_text(&s->node->out[0].type, type) : "",
           s->node->name ? s->node->name : "");
}

static QnStatus print_profile(const QnArgs *a, const QnSetup *s)
{
    const QnPlan *p = a->text[EVAL] ? s->session->eval_plan : s->session->train_plan;
    int64_t n = qn_plan_n_steps(p);
    Row *rows = qn_alloc_array((size_t)n + 1, sizeof *rows);
    QnLimits limits;
    double total = 0, least = 0;
    QnStatus st = rows ? qn_cpu_limits(&s->device->env, &limits) : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < n; i++) {
        Row *r = &rows[i];
        r->step = qn_plan_step(p, i);
        r->ns = r->step.runs ? (double)r->step.ns / (double)r->step.runs : 0;
        r->limit_ns = qn_cpu_limit_ns(&limits, &r->step.cost);
        total += r->ns;
        least += r->limit_ns;
    }
    if (st == QN_OK) {
        char flops[QN_STR_NUMBER], bytes[QN_STR_NUMBER], t[QN_STR_NUMBER], l[QN_STR_NUMBER];
        qsort(rows, (size_t)n, sizeof *rows, by_gap);
        printf("limits: %s, %s; steps take %s in all, the limits allow %s\n"
               " time          each      limit   gap    achieved\n",
               qn_str_unit(flops, limits.flops_per_s, "FLOP/s"),
               qn_str_unit(bytes, limits.bytes_per_s, "B/s"), qn_str_duration(t, (int64_t)total),
               qn_str_duration(l, (int64_t)least));
        for (int64_t i = 0; i < n; i++)
            print_row(&rows[i], total, fmax(total - least, 1));
    }
    qn_free(rows);
    return st;
}

/* ---- commands ---- */

static QnStatus bench_one(const QnArgs *a, const char *const *settings, int n_settings,
                          double *rate)
{
    QnSetup s;
    Timing t;
    QnSessionOptions o = { .training = true, .profile = a->text[PROFILE] != NULL };
    QN_TRY(qn_setup_open(&s, a->positional[0], settings, n_settings, "cpu", &o));
    QnStatus st = time_steps(a, &s, &t);
    if (st == QN_OK) {
        *rate = (double)batch_of(a, &s) / (t.median_ns * 1e-9);
        st = print_timing(a, &s, &t);
    }
    if (st == QN_OK && a->text[PROFILE] && !a->json)
        st = print_profile(a, &s);
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
    .summary = "Time a recipe's step, node by node if asked",
    .usage = "RECIPE [options]",
    .examples = "  quern bench recipes/fashion-mnist-demo.yaml\n"
                "  quern bench recipes/fashion-mnist-demo.yaml --profile\n"
                "  quern bench recipes/fashion-mnist-demo.yaml --sweep batch\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};

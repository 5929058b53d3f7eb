/* quern_bench_rows --list
 * quern_bench_rows --limits [--threads N]
 * quern_bench_rows NAME [--threads N] [--seconds S] [--choices FILE] [--peaks F,B] [--cpu-time]
 * [--tune] [--profile] [--serve]
 *
 * Measures one row of the speed table and prints a JSON object of it. --choices names a file of
 * kernel choices, as `quern tune` writes it; --tune measures first what the file has not yet, and
 * adds it. --cpu-time takes the process's time: a measure for one thread on a busy machine.
 * --peaks FLOPS,BYTES are the machine's a second, as --limits has measured them; by default they
 * are measured. --serve measures once for each line of standard input. bench/run.py drives it. */
#include "rows/rows.h"

#include "backend/cpu/cpu.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/spinning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *unit_text(Unit u)
{
    switch (u) {
    case UNIT_GFLOPS: return "GFLOP/s";
    case UNIT_GBPS: return "GB/s";
    case UNIT_IMAGES: return "img/s";
    case UNIT_S: return "s";
    case UNIT_MS: return "ms";
    case UNIT_US: return "us";
    case UNIT_MB: return "MB";
    }
    return "";
}

/* One that can be measured but once in the life of a process. */
static bool is_single(const Row *row)
{
    return row->how == HOW_FIRST_STEP || row->how == HOW_MEMORY;
}

static QnStatus finish_line(QnJsonWriter *w, QnStr *line)
{
    QnStatus st = qn_json_end(w);
    if (st == QN_OK) {
        puts(qn_str_text(line));
        fflush(stdout);
    }
    qn_str_fini(line);
    return st;
}

static QnStatus print(const Row *row, int n_threads, const Measured *m)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "name", row->name);
    qn_json_put_string(&w, "unit", unit_text(row->unit));
    qn_json_put_bool(&w, "higher_is_better", row->unit <= UNIT_IMAGES);
    qn_json_put_bool(&w, "once", is_single(row));
    if (m) {
        qn_json_put_int(&w, "threads", n_threads);
        qn_json_put_int(&w, "runs", m->runs);
        qn_json_put_double(&w, "value", m->value);
        if (m->layout)
            qn_json_put_string(&w, "layout", m->layout);
        qn_json_key(&w, "limit");
        if (isnan(m->limit))
            qn_json_add_null(&w);
        else
            qn_json_add_double(&w, m->limit);
    }
    qn_json_close(&w);
    return finish_line(&w, &line);
}

static QnStatus list(void)
{
    for (int i = 0; row_at(i); i++)
        QN_TRY(print(row_at(i), 0, NULL));
    return QN_OK;
}

/* The best of several tries. */
static QnStatus print_limits(const MeasureOptions *o)
{
    const int tries = o->cpu_time ? 12 : 3; /* a busy machine */
    QnLimits best = { 0 }, l;
    QnKernelEnv env = { .n_threads = o->n_threads, .isa = qn_cpu_isa_best() };
    for (int i = 0; i < tries; i++) {
        QN_TRY(qn_cpu_limits(&env, &l));
        best.flops_per_s = fmax(best.flops_per_s, l.flops_per_s);
        best.bf16_flops_per_s = fmax(best.bf16_flops_per_s, l.bf16_flops_per_s);
        best.bytes_per_s = fmax(best.bytes_per_s, l.bytes_per_s);
    }
    char spinning[64];
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "isa", env.isa);
    qn_json_put_double(&w, "flops_per_s", best.flops_per_s);
    qn_json_put_double(&w, "bf16_flops_per_s", best.bf16_flops_per_s);
    qn_json_put_double(&w, "bytes_per_s", best.bytes_per_s);
    qn_json_put_string(&w, "spinning", qn_cli_spinning(spinning));
    qn_json_close(&w);
    return finish_line(&w, &line);
}

static QnStatus measure(const Row *row, const MeasureOptions *o, bool serve)
{
    Bench *b;
    Measured m;
    char line[64];
    QN_TRY(bench_open(row, o, &b));
    QnStatus st = QN_OK;
    bool more = !serve || fgets(line, sizeof line, stdin);
    while (st == QN_OK && more) {
        st = bench_measure(b, &m);
        if (st == QN_OK)
            st = print(row, o->n_threads, &m);
        more = serve && fgets(line, sizeof line, stdin);
    }
    bench_close(b);
    return st;
}

static int usage(void)
{
    fputs("usage: quern_bench_rows --list | --limits [--threads N] | NAME [--threads N] "
          "[--seconds S] [--choices FILE] [--peaks FLOPS,BF16_FLOPS,BYTES] "
          "[--recipe FILE] [--cpu-time] [--tune] [--profile] [--serve]\n",
          stderr);
    return 2;
}

typedef struct Command {
    const char *name;
    bool list, limits, serve;
} Command;

static bool parse_value(const char *key, const char *value, MeasureOptions *o)
{
    if (!strcmp(key, "--threads"))
        o->n_threads = (int)strtol(value, NULL, 10);
    else if (!strcmp(key, "--seconds"))
        o->seconds = strtod(value, NULL);
    else if (!strcmp(key, "--choices"))
        o->choices = value;
    else if (!strcmp(key, "--recipe"))
        o->recipe = value;
    else if (!strcmp(key, "--peaks"))
        return sscanf(value, "%lf,%lf,%lf", &o->peaks.flops_per_s, &o->peaks.bf16_flops_per_s,
                      &o->peaks.bytes_per_s) == 3;
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv, MeasureOptions *o, Command *c)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list"))
            c->list = true;
        else if (!strcmp(argv[i], "--limits"))
            c->limits = true;
        else if (!strcmp(argv[i], "--serve"))
            c->serve = true;
        else if (!strcmp(argv[i], "--tune"))
            o->tune = true;
        else if (!strcmp(argv[i], "--profile"))
            o->profile = true;
        else if (!strcmp(argv[i], "--cpu-time"))
            o->cpu_time = true;
        else if (argv[i][0] != '-')
            c->name = argv[i];
        else if (i + 1 == argc || !parse_value(argv[i], argv[i + 1], o))
            return false;
        else
            i++;
    }
    return o->n_threads > 0 && (c->name || c->list || c->limits);
}

int main(int argc, char **argv)
{
    qn_cli_bound_spinning(argv);
    MeasureOptions o = { .n_threads = 1,
                         .seconds = 1,
                         .recipe = "recipes/fashion-mnist-demo.yaml" };
    Command c = { 0 };
    if (!parse(argc, argv, &o, &c))
        return usage();
    const Row *row = c.name ? row_find(c.name) : NULL;
    if (c.name && !row) {
        fprintf(stderr, "quern_bench_rows: no row '%s'; --list lists them\n", c.name);
        return 2;
    }
    QnStatus st = c.list ? list() : c.limits ? print_limits(&o) : measure(row, &o, c.serve);
    if (st == QN_OK)
        return 0;
    fprintf(stderr, "quern_bench_rows: %s\n", qn_error_last()->text);
    return 1;
}

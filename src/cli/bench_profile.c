/* The profile of a plan beside the machine's limits. */
#include "cli/bench.h"

#include "backend/cpu/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Row {
    QnPlanStep step;
    int64_t index; /* of the step */
    double ns, limit_ns;
} Row;

typedef struct Sums {
    double ns, limit_ns, gap_ns;
} Sums;

static int by_gap(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    double p = x->ns - x->limit_ns, q = y->ns - y->limit_ns;
    return p > q ? -1 : p < q;
}

/* A step that beats its limit (what it reads lay in a cache) has no part in the gap. */
static double gap_of(const Row *r)
{
    return fmax(r->ns - r->limit_ns, 0);
}

static double moved_bytes(const Row *r)
{
    return r->step.cost.bytes_read + r->step.cost.bytes_written;
}

static const char *type_of(const Row *r, char text[QN_TYPE_TEXT_BYTES])
{
    const QnNode *n = r->step.node;
    return n->n_out ? qn_type_text(&n->out[0].type, text) : "";
}

static const char *name_of(const Row *r)
{
    return r->step.node->name ? r->step.node->name : "";
}

/* 0 of nothing, where no step has run. */
static double part_of(double x, double all)
{
    return all > 0 ? x / all : 0;
}

/* ---- as a table ---- */

static void print_row(const Row *r, const Sums *all)
{
    char type[QN_TYPE_TEXT_BYTES], time[QN_STR_NUMBER], limit[QN_STR_NUMBER], flops[QN_STR_NUMBER],
        bytes[QN_STR_NUMBER];
    const QnPlanStep *s = &r->step;
    char share[24] = "-  ";
    if (gap_of(r) > 0)
        snprintf(share, sizeof share, "%.1f %%", 100 * part_of(gap_of(r), all->gap_ns));
    printf("%5.1f %% %10s %10s %7s  %13s %11s  %-18s %-28s %-24s %s\n",
           100 * part_of(r->ns, all->ns), qn_str_duration(time, (int64_t)r->ns),
           qn_str_duration(limit, (int64_t)r->limit_ns), share,
           qn_str_unit(flops, s->cost.flops / (r->ns * 1e-9), "FLOP/s"),
           qn_str_unit(bytes, moved_bytes(r) / (r->ns * 1e-9), "B/s"), s->node->op->name,
           s->kernel->name, type_of(r, type), name_of(r));
}

static void print_table(const Row *rows, int64_t n, const Sums *all, const QnLimits *limits)
{
    char flops[QN_STR_NUMBER], bytes[QN_STR_NUMBER], t[QN_STR_NUMBER], l[QN_STR_NUMBER];
    printf("limits: %s, %s; steps take %s in all, the limits allow %s\n"
           " time          each      limit   gap    achieved\n",
           qn_str_unit(flops, limits->flops_per_s, "FLOP/s"),
           qn_str_unit(bytes, limits->bytes_per_s, "B/s"), qn_str_duration(t, (int64_t)all->ns),
           qn_str_duration(l, (int64_t)all->limit_ns));
    for (int64_t i = 0; i < n; i++)
        print_row(&rows[i], all);
}

/* ---- as JSON ---- */

static QnStatus print_object(const Row *r, const Sums *all)
{
    char type[QN_TYPE_TEXT_BYTES];
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "step", r->index);
    qn_json_put_string(&w, "op", r->step.node->op->name);
    qn_json_put_string(&w, "name", name_of(r));
    qn_json_put_string(&w, "kernel", r->step.kernel->name);
    qn_json_put_string(&w, "type", type_of(r, type));
    qn_json_put_double(&w, "seconds", r->ns * 1e-9);
    qn_json_put_double(&w, "limit_seconds", r->limit_ns * 1e-9);
    qn_json_put_double(&w, "share_of_time", part_of(r->ns, all->ns));
    qn_json_put_double(&w, "share_of_gap", part_of(gap_of(r), all->gap_ns));
    qn_json_put_double(&w, "gflops", part_of(r->step.cost.flops, r->ns));
    qn_json_put_double(&w, "gbs", part_of(moved_bytes(r), r->ns));
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

QnStatus qn_bench_profile(const QnPlan *p, const QnKernelEnv *env, bool json)
{
    int64_t n = qn_plan_n_steps(p);
    Row *rows = qn_alloc_array((size_t)n + 1, sizeof *rows);
    QnLimits limits;
    Sums all = { 0 };
    QnStatus st = rows ? qn_cpu_limits(env, &limits) : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < n; i++) {
        Row *r = &rows[i];
        r->step = qn_plan_step(p, i);
        r->index = i;
        r->ns = r->step.runs ? (double)r->step.ns / (double)r->step.runs : 0;
        r->limit_ns = qn_cpu_limit_ns(&limits, r->step.node, &r->step.cost);
        all.ns += r->ns;
        all.limit_ns += r->limit_ns;
        all.gap_ns += gap_of(r);
    }
    if (st == QN_OK) {
        qsort(rows, (size_t)n, sizeof *rows, by_gap);
        if (!json)
            print_table(rows, n, &all, &limits);
        for (int64_t i = 0; json && st == QN_OK && i < n; i++)
            st = print_object(&rows[i], &all);
    }
    qn_free(rows);
    return st;
}

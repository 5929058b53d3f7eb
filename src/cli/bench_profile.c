/* The profile of a plan beside the machine's limits. */
#include "cli/bench.h"

#include "backend/cpu/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* A step that beats its limit (what it reads lay in a cache) has no part in the gap. */
static double gap_of(const Row *r)
{
    return fmax(r->ns - r->limit_ns, 0);
}

static void print_row(const Row *r, double total, double gap)
{
    char type[QN_TYPE_TEXT_BYTES], time[QN_STR_NUMBER], limit[QN_STR_NUMBER], flops[QN_STR_NUMBER],
        bytes[QN_STR_NUMBER];
    const QnPlanStep *s = &r->step;
    double moved = s->cost.bytes_read + s->cost.bytes_written;
    char share[24] = "-  ";
    if (gap_of(r) > 0)
        snprintf(share, sizeof share, "%.1f %%", 100 * gap_of(r) / gap);
    printf("%5.1f %% %10s %10s %7s  %13s %11s  %-18s %-28s %-24s %s\n", 100 * r->ns / total,
           qn_str_duration(time, (int64_t)r->ns), qn_str_duration(limit, (int64_t)r->limit_ns),
           share, qn_str_unit(flops, s->cost.flops / (r->ns * 1e-9), "FLOP/s"),
           qn_str_unit(bytes, moved / (r->ns * 1e-9), "B/s"), s->node->op->name, s->kernel->name,
           s->node->n_out ? qn_type_text(&s->node->out[0].type, type) : "",
           s->node->name ? s->node->name : "");
}

QnStatus qn_bench_profile(const QnPlan *p, const QnKernelEnv *env)
{
    int64_t n = qn_plan_n_steps(p);
    Row *rows = qn_alloc_array((size_t)n + 1, sizeof *rows);
    QnLimits limits;
    double total = 0, least = 0, gap = 0;
    QnStatus st = rows ? qn_cpu_limits(env, &limits) : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < n; i++) {
        Row *r = &rows[i];
        r->step = qn_plan_step(p, i);
        r->ns = r->step.runs ? (double)r->step.ns / (double)r->step.runs : 0;
        r->limit_ns = qn_cpu_limit_ns(&limits, r->step.node, &r->step.cost);
        total += r->ns;
        least += r->limit_ns;
        gap += gap_of(r);
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
            print_row(&rows[i], total, gap);
    }
    qn_free(rows);
    return st;
}

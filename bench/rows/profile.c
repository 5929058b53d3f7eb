/* Where a row's time goes: nodes of one kind together, the largest gap to the limit first. */
#include "rows.h"

#include "base/str.h"
#include "rt/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Kind {
    char what[160]; /* operator, kernel, type */
    double ns, limit_ns;
    int64_t n;
} Kind;

/* What beats its limit (its operands lay in a cache, or Winograd saved it products) has no gap. */
static double gap_of(const Kind *k)
{
    return fmax(0, k->ns - k->limit_ns);
}

static int by_gap(const void *a, const void *b)
{
    const Kind *x = a, *y = b;
    double p = gap_of(x), q = gap_of(y);
    return p > q ? -1 : p < q ? 1 : (x->ns < y->ns) - (x->ns > y->ns);
}

static int by_what(const void *a, const void *b)
{
    const Kind *x = a, *y = b;
    return strcmp(x->what, y->what);
}

static void describe(const QnPlanStep *s, Kind *k)
{
    char in[QN_TYPE_TEXT_BYTES] = "", out[QN_TYPE_TEXT_BYTES] = "";
    const QnNode *n = s->node;
    if (n->n_in && n->in[0])
        qn_type_text(&n->in[0]->type, in);
    if (n->n_out)
        qn_type_text(&n->out[0].type, out);
    snprintf(k->what, sizeof k->what, "%-16s %-22s %.48s -> %.48s", n->op->name, s->kernel->name,
             in, out);
}

/* Sorted and with equal kinds added up; returns how many are left. */
static int64_t merge(Kind *kinds, int64_t n)
{
    int64_t to = 0;
    qsort(kinds, (size_t)n, sizeof *kinds, by_what);
    for (int64_t i = 0; i < n; i++) {
        if (to && !strcmp(kinds[to - 1].what, kinds[i].what)) {
            kinds[to - 1].ns += kinds[i].ns;
            kinds[to - 1].limit_ns += kinds[i].limit_ns;
            kinds[to - 1].n += kinds[i].n;
        } else {
            kinds[to++] = kinds[i];
        }
    }
    qsort(kinds, (size_t)to, sizeof *kinds, by_gap);
    return to;
}

QnStatus profile_begin(const QnPlan *p, Profile *out)
{
    int64_t n = qn_plan_n_steps(p);
    *out = (Profile){ .plan = p, .ns = qn_alloc_array((size_t)n + 1, sizeof *out->ns) };
    if (!out->ns)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        QnPlanStep s = qn_plan_step(p, i);
        out->ns[i] = s.ns;
        out->runs = s.runs;
    }
    return QN_OK;
}

static QnStatus print_kinds(const Profile *f, const QnLimits *limits)
{
    const QnPlan *p = f->plan;
    int64_t n = qn_plan_n_steps(p);
    Kind *kinds = qn_alloc_array((size_t)n + 1, sizeof *kinds);
    double total = 0, least = 0, gap = 0;
    if (!kinds)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        QnPlanStep s = qn_plan_step(p, i);
        Kind *k = &kinds[i];
        describe(&s, k);
        k->ns = s.runs > f->runs ? (double)(s.ns - f->ns[i]) / (double)(s.runs - f->runs) : 0;
        k->limit_ns = qn_cpu_limit_ns(limits, s.node, &s.cost);
        k->n = 1;
        total += k->ns;
        least += k->limit_ns;
    }
    printf("%lld nodes: %.3f ms, limit %.3f ms\n", (long long)n, total * 1e-6, least * 1e-6);
    QnPlanMemory m = qn_plan_memory(p);
    char arena[QN_STR_NUMBER], bound[QN_STR_NUMBER], states[QN_STR_NUMBER];
    printf("arena %s (no placement could be below %s), states %s\n",
           qn_str_bytes(arena, (uint64_t)m.arena_bytes),
           qn_str_bytes(bound, (uint64_t)m.bound_bytes),
           qn_str_bytes(states, (uint64_t)m.state_bytes));
    printf("   share    gap       ms  limit ms  count\n");
    n = merge(kinds, n);
    for (int64_t i = 0; i < n; i++)
        gap += gap_of(&kinds[i]);
    for (int64_t i = 0; i < n; i++) {
        const Kind *k = &kinds[i];
        printf("%6.1f %% %4.0f %% %8.3f  %8.3f  %5lld  %s\n", 100 * k->ns / fmax(total, 1),
               100 * gap_of(k) / fmax(gap, 1), k->ns * 1e-6, k->limit_ns * 1e-6, (long long)k->n,
               k->what);
    }
    qn_free(kinds);
    return QN_OK;
}

QnStatus profile_end(Profile *f, const QnLimits *limits)
{
    QnStatus st = print_kinds(f, limits);
    qn_free(f->ns);
    f->ns = NULL;
    return st;
}

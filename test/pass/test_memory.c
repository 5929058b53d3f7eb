/* Memory of planned random graphs: what is planned is what is allocated, runs allocate nothing, and
 * the blocks keep every value until its last reader, found out by simulating each step. */
#include "random_run.h"
#include "rt/blocks.h"
#include "rt/memplan.h"

static QnDevice *device;

static int group_setup(void **state)
{
    return qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 1 }, &device);
}

static int group_teardown(void **state)
{
    int leaked = device->now_bytes != 0;
    qn_device_close(device);
    return leaked;
}

static Config config(void)
{
    return (Config){ .device = device,
                     .optimise = true,
                     .o = { .level = QN_O2,
                            .keep = has_kernel,
                            .keep_ctx = device,
                            .prefers = qn_device_prefers,
                            .tuned = qn_device_is_tuned,
                            .tuned_ctx = device } };
}

/* Some references take scratch memory; kernels never do. */
static bool has_reference(const QnPlan *p)
{
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        if (!strcmp(qn_plan_step(p, i).kernel->name, "reference"))
            return true;
    }
    return false;
}

static void test_planned_is_allocated(void **state)
{
    Config k = config();
    double gap = 0;
    int plans = 0, quiet = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        Case *c = case_new(seed * 77);
        Run r = { 0 };
        assert_ok(run(c, &k, &r));
        QnPlanMemory m = qn_plan_memory(r.plan);
        assert_int_equal(m.planned_peak_bytes, (int64_t)device->now_bytes);
        assert_int_equal(m.planned_peak_bytes, m.arena_bytes + m.constant_bytes + m.state_bytes);
        assert_true(m.arena_bytes >= m.bound_bytes);
        size_t peak = device->peak_bytes;
        assert_ok(feed(c, &r));
        uint64_t calls = qn_alloc_count();
        assert_ok(qn_plan_run(r.plan));
        if (!has_reference(r.plan)) {
            assert_int_equal(qn_alloc_count(), calls);
            quiet++;
        }
        assert_int_equal(device->peak_bytes, peak);
        if (m.bound_bytes > 10000) { /* not alignment alone */
            gap += (double)m.arena_bytes / (double)m.bound_bytes - 1;
            plans++;
        }
        run_free(&r);
        case_free(c);
    }
    print_message("%d plans, arena over bound: %.2f %%; %d without references\n", plans,
                  100 * gap / plans, quiet);
    assert_true(quiet > 50 && plans > 50 && gap / plans < 0.05);
}

/* ---- who lies where ---- */

typedef struct Sim {
    QnBlocks b;
    const QnValue **holds; /* by block: the root value whose elements it has */
} Sim;

/* Whether every element lies in memory where row-major order has it. */
static bool is_row_major(const QnType *t)
{
    if (t->layout == QN_LAYOUT_PLAIN)
        return true;
    int64_t c = t->shape.dim[1], pixels = 1;
    for (int i = 2; i < t->shape.rank; i++)
        pixels *= t->shape.dim[i];
    for (int64_t i = 0; i < c * pixels; i++) {
        if (i % pixels * c + i / pixels != i)
            return false;
    }
    return true;
}

static bool is_view(const QnNode *n)
{
    return ((n->op->traits & QN_VIEW) || n->op == &qn_op_relayout) &&
           is_row_major(&n->out[0].type) && is_row_major(&n->in[0]->type);
}

static const QnValue *root_of(const QnValue *v)
{
    while (is_view(v->node) || (v->node->op->traits & QN_EFFECT))
        v = v->node->in[is_view(v->node) ? 0 : 1];
    return v;
}

static void must_hold(const Sim *s, const QnValue *v, const char *what, uint64_t seed)
{
    const QnValue *root = root_of(v), *holds = s->holds[s->b.of[v->id]];
    if (holds != root)
        fail_msg("seed %llu: %s reads %s, but its memory has %s", (unsigned long long)seed, what,
                 root->node->op->name, holds ? holds->node->op->name : "nothing");
}

/* Runs the steps on names instead of numbers. */
static void simulate(Sim *s, uint64_t seed)
{
    QnGraph *g = s->b.graph;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_LEAF)
            s->holds[s->b.of[n->out[0].id]] = &n->out[0];
    }
    QN_GRAPH_EACH(g, n)
    {
        if (s->b.role[n->id] != QN_ROLE_STEP)
            continue;
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i])
                must_hold(s, n->in[i], n->op->name, seed);
        }
        for (int i = 0; i < n->n_out; i++) {
            const QnBlock *k = &s->b.blocks[s->b.of[n->out[i].id]];
            assert_true(k->place != QN_PLACE_CONSTANT &&
                        k->bytes >= qn_type_bytes(&n->out[i].type));
            assert_true(k->place == QN_PLACE_STATE || (k->first <= n->id && k->last >= n->id));
            for (int j = 0; j < i; j++)
                assert_true(s->b.of[n->out[j].id] != s->b.of[n->out[i].id]);
            s->holds[s->b.of[n->out[i].id]] = &n->out[i];
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        must_hold(s, g->outputs[i].value, "an output", seed);
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_EFFECT)
            must_hold(s, n->in[1], "an assign", seed);
        if (s->b.role[n->id] == QN_ROLE_PLACED)
            assert_true(s->b.of[n->in[1]->id] == s->b.of[n->in[0]->id]);
    }
}

/* No two blocks that live together may overlap, workspaces left out. */
static void check_overlaps(const QnBlocks *b)
{
    QnLife *l = qn_alloc_array((size_t)b->n + 1, sizeof *l);
    int64_t n = 0, total, bound;
    for (int64_t i = 0; i < b->n; i++) {
        const QnBlock *k = &b->blocks[i];
        if (k->place == QN_PLACE_ARENA)
            l[n++] = (QnLife){ .bytes = k->bytes, .first = k->first, .last = k->last };
    }
    assert_ok(qn_memplan(l, n, QN_ARENA_ALIGN, &total, &bound));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) {
            bool together = l[i].first <= l[k].last && l[k].first <= l[i].last;
            assert_true(!together || l[i].offset + l[i].bytes <= l[k].offset ||
                        l[k].offset + l[k].bytes <= l[i].offset || !l[i].bytes || !l[k].bytes);
        }
    }
    qn_free(l);
}

static void check_blocks(const Case *c, const Config *k, int64_t *placed, int64_t *inplace)
{
    Run r = { 0 };
    assert_ok(run(c, k, &r));
    QnGraph *g = r.g;
    const QnKernel **kernels = qn_arena_array(g->arena, (size_t)g->n_nodes + 1, sizeof *kernels);
    QN_GRAPH_EACH(g, n)
    {
        if (!is_view(n) && !(n->op->traits & (QN_LEAF | QN_EFFECT)))
            assert_ok(qn_select(k->device, n, NULL, &kernels[n->id]));
    }
    Sim s = { .b = { .graph = g, .store = r.store, .kernels = kernels, .arena = g->arena } };
    assert_ok(qn_blocks_init(&s.b));
    s.holds = qn_arena_array(g->arena, (size_t)s.b.n + 1, sizeof *s.holds);
    simulate(&s, c->seed);
    check_overlaps(&s.b);
    QN_GRAPH_EACH(g, n)
    {
        *placed += s.b.role[n->id] == QN_ROLE_PLACED;
        *inplace += s.b.inplace[n->id];
    }
    qn_free(s.b.blocks);
    run_free(&r);
}

static void test_blocks_keep_values_until_they_are_read(void **state)
{
    Config k = config();
    int64_t placed = 0, inplace = 0;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        Case *c = case_new(seed * 1001);
        k.o.level = seed % 3 ? QN_O2 : QN_O0;
        check_blocks(c, &k, &placed, &inplace);
        case_free(c);
    }
    print_message("%lld assigns placed, %lld results in place\n", (long long)placed,
                  (long long)inplace);
    assert_true(placed > 200 && inplace > 500);
}

/* ---- the passes' own estimate ---- */

static int64_t bound_of(const Case *c, const Config *k)
{
    Run r = { 0 };
    assert_ok(run(c, k, &r));
    int64_t bound = qn_plan_memory(r.plan).bound_bytes;
    run_free(&r);
    return bound;
}

/* Scheduling takes an order only where it helps; with workspaces counted it seldom does not. */
static void test_scheduling_lowers_the_bound(void **state)
{
    Config k = config();
    int lower = 0, higher = 0;
    double before = 0, after = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        Case *c = case_new(seed * 31);
        k.o.off = "schedule";
        int64_t a = bound_of(c, &k);
        k.o.off = NULL;
        int64_t b = bound_of(c, &k);
        lower += b < a;
        higher += b > a;
        before += (double)a;
        after += (double)b;
        case_free(c);
    }
    print_message("bound lower %d times, higher %d; %.1f %% less in all\n", lower, higher,
                  100 * (1 - after / before));
    assert_true(lower > 2 * higher && after <= before);
}

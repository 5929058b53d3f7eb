/* Random graphs: the float64 evaluation of the graph as built equals the optimised, fused and
 * planned run with poisoned memory. A failure prints the seed and the smallest graph that still
 * fails. QN_GRAPHS=n runs so many, QN_SEED=s only that one.
 * timeout: 300 */
#include "random_run.h"
#include "ir/eval.h"
#include "ir/print.h"

static QnDevice *device[2]; /* one and two threads */

/* What the graphs of a run have tried. */
typedef struct Tried {
    int graphs, ill, gradients, assigns, scheduled, outputs;
    int64_t groups, maps, recomputed;
    bool op[1024]; /* by place in the registry */
} Tried;

static Config config_of(uint64_t seed)
{
    static const char *const off[] = { NULL,          "fuse", "schedule",      "cse,fold",
                                       "simplify",    "fold", "fuse,epilogue", "recompute",
                                       "cse,simplify" };
    Case c = { .rng = seed ^ 0x5555 };
    Config k = { .device = device[chance(&c, 15)], .optimise = chance(&c, 92) };
    k.o.level = below(&c, 8) ? QN_O2 : (QnLevel)below(&c, 2);
    k.o.off = chance(&c, 50) ? NULL : off[below(&c, QN_COUNT(off))];
    k.o.verify = true;
    k.o.fold_most = chance(&c, 50) ? 0 : 1 + below(&c, 2000);
    k.o.memory_budget_bytes = chance(&c, 60) ? 0 : 1 + below(&c, 6000);
    k.o.keep = has_kernel;
    k.o.keep_ctx = k.device;
    k.o.tuned = chance(&c, 60) ? qn_device_is_tuned : NULL; /* without it there are no layouts */
    k.o.tuned_ctx = k.device;
    k.o.prefers = chance(&c, 60) ? qn_device_prefers : NULL;
    return k;
}

/* ---- the reference ---- */

static QnStatus set_leaves(QnEval *e, const Case *c)
{
    QN_GRAPH_EACH(c->g, n)
    {
        const Leaf *leaf =
            n->op->traits & (QN_INPUT | QN_STATE) ? case_leaf(c, qn_node_label(n)) : NULL;
        if (!leaf)
            continue;
        QN_TRY(qn_eval_set(e, &n->out[0], leaf->values));
    }
    return QN_OK;
}

/* ---- comparison ---- */

typedef struct Result {
    char why[400];
    bool ill; /* within what small changes of the inputs do to the result */
} Result;

static bool is_near(double got, double want, double tol)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= tol * (1 + fabs(want));
}

static bool is_explained(double error, double want, double spread)
{
    return isinf(spread) || spread > fmax(fabs(want) / 2, 1e-3) ||
           (spread > 0 && error <= 3 * spread);
}

/* One node of the noisy evaluation: results are rounded, and those of arithmetic and constants move
 * a little. false: numbers are so large that their squares overflow in f32. */
static bool noisy_node(Case *rng, const QnNode *n, double wobble, double **value)
{
    const double *in[QN_MAX_IN];
    double *out[QN_MAX_OUT];
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? value[n->in[i]->id] : NULL;
    for (int i = 0; i < n->n_out; i++)
        out[i] = value[n->out[i].id] =
            qn_alloc_array((size_t)qn_shape_count(&n->out[i].type.shape) + 1, sizeof **out);
    if (qn_eval_node(n, in, out, false) != QN_OK)
        return true;
    bool exact = (n->op->traits & (QN_MOVES_DATA | QN_VIEW | QN_EFFECT)) && n->n_in, fits = true;
    double flush = rnd(rng) % 8 ? wobble : 100 * wobble; /* what may as well be zero */
    for (int i = 0; i < n->n_out; i++) {
        const QnType *t = &n->out[i].type;
        for (int64_t k = 0; k < qn_shape_count(&t->shape); k++) {
            uint64_t cell;
            fits &= !(fabs(out[i][k]) > 1e15);
            if (!exact && out[i][k] != 0 && qn_dtype_is_float(t->dtype))
                out[i][k] += wobble * (out[i][k] * uniform(rng, -1, 1) + 0.1 * uniform(rng, -1, 1));
            if (!exact && fabs(out[i][k]) < flush && (rnd(rng) & 1))
                out[i][k] = 0;
            qn_dtype_from_f64(t->dtype, &out[i][k], &cell, 1);
            qn_dtype_to_f64(t->dtype, &cell, &out[i][k], 1);
        }
    }
    return fits;
}

/* Element e of v when leaves and intermediates move by so much. */
static double noisy(const Case *c, const QnValue *v, int64_t e, double wobble, uint64_t seed)
{
    Case rng = { .rng = seed };
    bool fits = true;
    double **value = qn_alloc_array((size_t)c->g->n_values + 1, sizeof *value);
    QN_GRAPH_EACH(c->g, n)
    {
        const Leaf *leaf =
            n->op->traits & (QN_INPUT | QN_STATE) ? case_leaf(c, qn_node_label(n)) : NULL;
        if (!leaf) {
            fits &= noisy_node(&rng, n, wobble, value);
            continue;
        }
        double *x = value[n->out[0].id] = qn_alloc_array((size_t)leaf->n + 1, sizeof *x);
        for (int64_t i = 0; i < leaf->n; i++) {
            bool real = qn_dtype_is_float(leaf->dtype);
            x[i] = leaf->values[i] * (1 + (real ? wobble * uniform(&rng, -1, 1) : 0));
        }
    }
    double got = fits ? value[v->id][e] : INFINITY;
    for (int64_t i = 0; i < c->g->n_values; i++)
        qn_free(value[i]);
    qn_free(value);
    return got;
}

/* How far element e of the target moves when everything moves in its last digits; stops once that
 * explains the error. */
static double spread(const Case *c, QnValue *v, int64_t e, double got, double want, bool half)
{
    double most = 0, error = fabs(got - want);
    qn_graph_number(c->g);
    for (int k = 0; k < 100 && !is_explained(error, want, most); k++) {
        double wobble = (half ? 1.5e-3 : 1.5e-7) * (k % 10 * 10 + k / 10.0);
        double d = fabs(noisy(c, v, e, wobble, c->seed + (uint64_t)k) - want);
        most = isnan(d) ? INFINITY : fmax(most, d);
    }
    return most;
}

static bool has_half(const QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_out; i++) {
            QnDtype d = n->out[i].type.dtype;
            if (d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || qn_dtype_is_storage(d))
                return true;
        }
    }
    return false;
}

static bool compare(const Case *c, QnEval *e, const Run *r, int i, Result *result)
{
    char name[40];
    QnValue *v = target(c->g, i, name);
    const double *want;
    int64_t n = qn_shape_count(&v->type.shape);
    bool half = has_half(c->g), ok = true;
    double tol = !qn_dtype_is_float(v->type.dtype) ? 0 : half ? 3e-2 : 2e-4;
    if (qn_eval_get(e, v, &want) != QN_OK) {
        snprintf(result->why, sizeof result->why, "evaluation: %.300s", qn_error_last()->text);
        return false;
    }
    double *got = qn_alloc_array((size_t)n + 1, sizeof *got);
    if (!read_target(c, r, i, got, n)) {
        snprintf(result->why, sizeof result->why, "%s: the run has no such result", name);
        ok = false;
    }
    for (int64_t k = 0; ok && k < n; k++) {
        if (is_near(got[k], want[k], tol))
            continue;
        double d = spread(c, v, k, got[k], want[k], half);
        if (is_explained(fabs(got[k] - want[k]), want[k], d)) {
            result->ill = true;
            continue;
        }
        snprintf(result->why, sizeof result->why, "%s[%lld]: got %.9g, want %.9g, spread %.3g",
                 name, (long long)k, got[k], want[k], d);
        ok = false;
    }
    qn_free(got);
    return ok;
}

/* Whether the optimised run gives what the evaluator gives. */
static bool agrees(const Case *c, const Config *k, Result *result)
{
    char name[40];
    Run r = { 0 };
    bool ok = true;
    *result = (Result){ 0 };
    QnEval *e = qn_eval_new(c->g, false);
    if (set_leaves(e, c) != QN_OK || run(c, k, &r) != QN_OK) {
        snprintf(result->why, sizeof result->why, "%.390s", qn_error_last()->text);
        ok = false;
    }
    for (int i = 0; ok && target(c->g, i, name); i++)
        ok = compare(c, e, &r, i, result);
    qn_eval_free(e);
    run_free(&r);
    return ok;
}

/* ---- shrinking ---- */

static void drop_output(QnGraph *g, int i)
{
    for (; i + 1 < g->n_outputs; i++)
        g->outputs[i] = g->outputs[i + 1];
    g->n_outputs--;
}

/* Keeps the change of the graph if it still fails. */
static bool keep_if_failing(Case *c, const Config *k, QnGraph *g, int n_leaf)
{
    Result r;
    QnGraph *old = c->g;
    int old_leaf = c->n_leaf;
    c->g = g;
    c->n_leaf = n_leaf;
    if (qn_pass_dce(g, &k->o) == QN_OK && qn_graph_verify(g) == QN_OK && !agrees(c, k, &r)) {
        qn_graph_free(old);
        return true;
    }
    c->g = old;
    c->n_leaf = old_leaf;
    qn_graph_free(g);
    return false;
}

static bool drop_target(Case *c, const Config *k, int i)
{
    QnGraph *g = qn_graph_clone(c->g, NULL);
    if (i < g->n_outputs) {
        drop_output(g, i);
    } else {
        i -= (int)g->n_outputs;
        for (QnNode *n = g->first, *next; n; n = next) {
            next = n->next;
            if ((n->op->traits & QN_EFFECT) && i-- == 0) {
                for (int64_t o = 0; o < g->n_outputs; o++) {
                    if (g->outputs[o].value == &n->out[0])
                        g->outputs[o].value = n->in[1];
                }
                qn_value_replace(&n->out[0], n->in[1]);
                qn_graph_remove(g, n);
            }
        }
        qn_graph_sweep(g);
    }
    return keep_if_failing(c, k, g, c->n_leaf);
}

/* Node number `at` becomes inputs with the values that it has. */
static bool cut_node(Case *c, const Config *k, int64_t at)
{
    QnNode *n = c->g->first;
    while (n && at-- > 0)
        n = n->next;
    if (!n || (n->op->traits & (QN_LEAF | QN_EFFECT)) || c->n_leaf + n->n_out > MAX_LEAF)
        return false;
    QnValue **map;
    QnGraph *g = qn_graph_clone(c->g, &map);
    QnEval *e = qn_eval_new(c->g, true);
    bool ok = set_leaves(e, c) == QN_OK;
    int n_leaf = c->n_leaf;
    qn_graph_set_cursor(g, g->first);
    for (int i = 0; ok && i < n->n_out; i++) {
        const double *x;
        Leaf *leaf = &c->leaf[n_leaf++];
        const QnType *t = &n->out[i].type;
        ok = qn_eval_get(e, &n->out[i], &x) == QN_OK;
        *leaf = (Leaf){ .n = qn_shape_count(&t->shape), .dtype = t->dtype };
        leaf->values = qn_alloc_array((size_t)leaf->n + 1, sizeof(double));
        if (ok)
            memcpy(leaf->values, x, (size_t)leaf->n * sizeof(double));
        snprintf(leaf->name, sizeof leaf->name, "c%d", n_leaf);
        qn_value_replace(map[n->out[i].id], qn_input(g, leaf->name, t->dtype, &t->shape));
    }
    qn_graph_set_cursor(g, NULL);
    qn_eval_free(e);
    qn_graph_sweep(g);
    if (ok && keep_if_failing(c, k, g, n_leaf))
        return true;
    for (int i = c->n_leaf; i < n_leaf; i++)
        qn_free(c->leaf[i].values);
    if (!ok)
        qn_graph_free(g);
    return false;
}

static void shrink(Case *c, Config *k)
{
    char name[40];
    Result r;
    qn_graph_number(c->g);
    for (int i = 0; target(c->g, i, name);)
        i += !drop_target(c, k, i);
    for (bool again = true; again;) {
        again = false;
        for (int64_t at = c->g->n_nodes - 1; at >= 0; at--)
            again |= cut_node(c, k, at);
    }
    static const char *const passes[] = { "cse",       "simplify",   "fold",
                                          "epilogue",  "recompute",  "fuse",
                                          "fuse_loss", "fuse_norm",  "fuse_norm_grad",
                                          "schedule",  "split_norm", "fuse_norm_relu" };
    static char off[300];
    for (int i = 0; i < QN_COUNT(passes); i++) { /* passes that are not to blame */
        char more[300];
        const char *was = k->o.off;
        snprintf(more, sizeof more, "%.200s%s%s", was ? was : "", was ? "," : "", passes[i]);
        k->o.off = more;
        if (agrees(c, k, &r)) {
            k->o.off = was;
            continue;
        }
        memcpy(off, more, sizeof off);
        k->o.off = off;
    }
}

static void report(Case *c, Config *k)
{
    Result r;
    QnStr text = { 0 };
    shrink(c, k);
    agrees(c, k, &r);
    qn_graph_print(c->g, &text);
    print_error("\n%s\n%s", r.why, qn_str_text(&text));
    for (int i = 0; i < c->n_leaf; i++) {
        if (!strstr(text.s, c->leaf[i].name) || c->leaf[i].n > 40)
            continue;
        print_error("%s =", c->leaf[i].name);
        for (int64_t e = 0; e < c->leaf[i].n; e++)
            print_error(" %.9g", c->leaf[i].values[e]);
        print_error("\n");
    }
    qn_str_clear(&text);
    Run run_of = { 0 };
    run(c, k, &run_of);
    if (run_of.g && qn_graph_print(run_of.g, &text) == QN_OK)
        print_error("optimised (off: %s, level %d, threads %d):\n%s", k->o.off ? k->o.off : "",
                    k->optimise ? (int)k->o.level : 0, k->device->env.n_threads,
                    qn_str_text(&text));
    run_free(&run_of);
    qn_str_fini(&text);
}

static void count(Tried *t, const Case *c, const QnPipelineReport *r, const Result *result)
{
    int n_ops;
    const QnOp *const *ops = qn_op_all(&n_ops);
    assert_true(n_ops <= QN_COUNT(t->op));
    QN_GRAPH_EACH(c->g, n)
    {
        t->assigns += (n->op->traits & QN_EFFECT) != 0;
        for (int i = 0; i < n_ops; i++)
            t->op[i] |= ops[i] == n->op;
    }
    t->graphs++;
    t->ill += result->ill;
    t->gradients += c->has_gradients;
    t->outputs += (int)c->g->n_outputs;
    t->groups += r->fused_groups;
    t->maps += r->fused_maps;
    t->recomputed += r->recomputed_nodes;
    t->scheduled += r->scheduled;
}

/* The graphs must have gone through what they are there to test. */
static void check_tried(const Tried *t)
{
    int n_ops, missing = 0;
    const QnOp *const *ops = qn_op_all(&n_ops);
    for (int i = 0; i < n_ops; i++) {
        if (ops[i]->n_samples && !t->op[i] && !rounds_inside(ops[i])) {
            print_error("never used: %s\n", ops[i]->name);
            missing++;
        }
    }
    print_message("%d graphs: %d with gradients, %d outputs, %d assigns, %lld groups of %lld maps, "
                  "%lld recomputed, %d rescheduled, %d ill-conditioned\n",
                  t->graphs, t->gradients, t->outputs, t->assigns, (long long)t->groups,
                  (long long)t->maps, (long long)t->recomputed, t->scheduled, t->ill);
    if (t->graphs < 5000)
        return;
    assert_int_equal(missing, 0);
    assert_true(t->gradients > t->graphs / 10 && t->assigns > t->graphs / 10);
    assert_true(t->groups > t->graphs / 4 && t->maps > 2 * t->groups);
    assert_true(t->recomputed > 20 && t->scheduled > 50);
    assert_true(t->ill * 50 < t->graphs);
}

static int group_setup(void **state)
{
    for (int i = 0; i < 2; i++) {
        if (qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = i + 1 }, &device[i]))
            return 1;
    }
    return 0;
}

static int group_teardown(void **state)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(device[i]->now_bytes, 0);
        qn_device_close(device[i]);
    }
    return 0;
}

static void test_optimised_equals_reference(void **state)
{
    const char *number = getenv("QN_GRAPHS"), *only = getenv("QN_SEED");
    uint64_t first = only ? strtoull(only, NULL, 0) : 1;
    uint64_t end = first + (only ? 1 : number ? strtoull(number, NULL, 0) : 10000);
    int wrong = 0;
    static Tried tried;
    for (uint64_t seed = first; seed < end && wrong < 5; seed++) {
        Case *c = case_new(seed);
        Config k = config_of(seed);
        QnPipelineReport passes;
        Result r;
        k.o.report = &passes;
        bool ok = agrees(c, &k, &r);
        count(&tried, c, &passes, &r);
        if (!ok) {
            print_error("seed %llu: %s", (unsigned long long)seed, r.why);
            report(c, &k);
            wrong++;
        }
        case_free(c);
    }
    check_tried(&tried);
    assert_int_equal(wrong, 0);
}

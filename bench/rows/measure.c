/* Compiling a row's graph as sessions do, choosing its kernels, and timing its runs. */
#include "rows.h"

#include "base/clock.h"
#include "base/file.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan.h"
#include "rt/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNS = 20000, LEAST_RUNS = 3, WARM_UP_RUNS = 2, MAX_FEEDS = 8 };

/* What an input is given before each run, as a batch is. */
typedef struct Feed {
    const char *name;
    void *data;
    size_t bytes;
} Feed;

/* A graph and what runs it. */
typedef struct Variant {
    QnGraph *g;
    QnNet net;
    QnStore *store;
    QnPlan *plan;
    Feed feeds[MAX_FEEDS];
    int n_feeds;
} Variant;

struct Bench {
    const Row *row;
    MeasureOptions options;
    QnDevice *device;
    QnChoices *choices;
    Variant variants[2];
    int n_variants;
    RecipeBench *recipe;
    QnLimits limits;
    double *ns; /* of runs */
};

int64_t measure_clock_ns(const MeasureOptions *o)
{
    struct timespec t;
    if (!o->cpu_time)
        return qn_clock_ns();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Seconds from the start of the process, where they are asked for. */
static void stage(const Bench *b, const char *what)
{
    if (b->options.profile)
        fprintf(stderr, "%8.3f s of CPU time: %s\n", (double)clock() / CLOCKS_PER_SEC, what);
}

/* ---- graphs ---- */

static bool is_timed(const Row *row)
{
    return row->how != HOW_FIRST_STEP && row->how != HOW_MEMORY;
}

static QnStatus optimise(Bench *b, QnGraph *g)
{
    QnPipelineOptions o = qn_device_passes(b->device);
    return qn_pipeline_run(g, &o);
}

static QnStatus compile(Bench *b, Variant *v)
{
    QnPlanOptions o = { .choices = b->choices, .profile = b->options.profile };
    qn_plan_free(v->plan);
    v->plan = NULL;
    return qn_plan_new(v->g, b->device, v->store, &o, &v->plan);
}

/* Of a net that predicts, vectors are what no initialiser leaves alike but training: were they so,
 * norms would fold to less than those of a trained net do. All stay near what they were. */
static QnStatus train_vectors(QnStore *s)
{
    for (int64_t i = 0; i < qn_store_count(s); i++) {
        const QnSlot *slot = qn_store_at(s, i);
        const QnShape *shape = &qn_slot_type(slot)->shape;
        int64_t n = qn_shape_count(shape);
        if (shape->rank != 1 || qn_slot_type(slot)->dtype != QN_DTYPE_F32)
            continue;
        float *x = qn_alloc_array((size_t)n + 1, sizeof *x);
        QnStatus st = x ? qn_store_read(s, slot, x) : QN_ENOMEM;
        for (int64_t k = 0; st == QN_OK && k < n; k++)
            x[k] += 0.01f * (float)(k % 7);
        if (st == QN_OK)
            st = qn_store_write(s, slot, x);
        qn_free(x);
        QN_TRY(st);
    }
    return QN_OK;
}

static QnStatus make_store(const Bench *b, Variant *v)
{
    if (!(v->store = qn_store_new(b->device)))
        return QN_ENOMEM;
    QN_TRY(qn_store_add(v->store, v->g));
    QN_TRY(qn_store_alloc(v->store));
    return qn_store_fill(v->store, 1);
}

/* As `quern predict` does: weights are constants. The store stays, as tuning plans again. */
static QnStatus freeze(const Bench *b, Variant *v)
{
    QN_TRY(make_store(b, v));
    QN_TRY(train_vectors(v->store));
    return qn_graph_freeze(v->g, v->store);
}

/* Integers: the step, and labels or tokens below `classes`. The rate of learning is small, so that
 * thousands of steps on the same numbers stay finite. */
static QnStatus make_feed(Variant *v, const QnNode *n, int64_t classes)
{
    const QnType *t = &n->out[0].type;
    int64_t count = qn_shape_count(&t->shape);
    uint32_t seed = 1;
    if (v->n_feeds == MAX_FEEDS)
        return qn_fail(QN_EARG, "over %d inputs", MAX_FEEDS);
    Feed *f = &v->feeds[v->n_feeds];
    *f = (Feed){ .name = qn_input_name(n), .bytes = (size_t)qn_type_bytes(t) };
    if (!(f->data = qn_alloc_aligned(f->bytes)))
        return QN_ENOMEM;
    v->n_feeds++;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (t->dtype == QN_DTYPE_I64)
            ((int64_t *)f->data)[i] = classes ? (int64_t)(seed >> 8) % classes : 0;
        else
            ((float *)f->data)[i] =
                strcmp(f->name, "lr") ? (float)(seed >> 8) * 0x1p-23f - 1 : 1e-5f;
    }
    if (!strcmp(f->name, "step"))
        memset(f->data, 0, f->bytes);
    return QN_OK;
}

static QnStatus open_variant(Bench *b, Variant *v, QnLayout layout)
{
    if (!(v->g = qn_graph_new()))
        return QN_ENOMEM;
    qn_net_init(&v->net, v->g, !b->row->evaluates);
    Build build = { .g = v->g, .net = &v->net, .dim = b->row->dim, .bf16 = b->row->bf16 };
    QnStatus st = b->row->build(&build, layout);
    v->g = build.g;
    QN_TRY(st);
    QN_TRY(qn_graph_check(v->g));
    stage(b, "graph built");
    if (b->row->evaluates)
        QN_TRY(freeze(b, v));
    if (b->row->how != HOW_LAYOUTS) /* there is but the operator, and its layout is given */
        QN_TRY(optimise(b, v->g));
    stage(b, "passes run");
    QN_GRAPH_EACH(v->g, n)
    {
        if (n->op == &qn_op_input)
            QN_TRY(make_feed(v, n, build.classes));
    }
    if (!b->row->evaluates)
        QN_TRY(make_store(b, v));
    stage(b, "states filled");
    QN_TRY(compile(b, v));
    stage(b, "planned");
    return QN_OK;
}

static void close_variant(Variant *v)
{
    for (int i = 0; i < v->n_feeds; i++)
        qn_free_aligned(v->feeds[i].data, v->feeds[i].bytes);
    qn_plan_free(v->plan);
    qn_store_free(v->store);
    qn_net_fini(&v->net);
    qn_graph_free(v->g);
}

static QnStatus run_variant(const Bench *b, Variant *v, double *ns)
{
    int64_t t = measure_clock_ns(&b->options);
    for (int i = 0; i < v->n_feeds; i++)
        QN_TRY(qn_plan_write(v->plan, v->feeds[i].name, v->feeds[i].data, v->feeds[i].bytes));
    QN_TRY(qn_plan_run(v->plan));
    *ns = (double)(measure_clock_ns(&b->options) - t);
    return QN_OK;
}

/* ---- choices ---- */

static QnStatus tune_plan(Bench *b, const QnPlan *p, bool *changed)
{
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnTuneResult results[QN_TUNE_MAX_KERNELS];
        char key[QN_SELECT_KEY_BYTES];
        int n = 0;
        const QnNode *node = qn_plan_step(p, i).node;
        const QnChoice *known = qn_choices_find(b->choices, qn_select_key(b->device, node, key));
        if (known && known->ns > 0)
            continue;
        QN_TRY(qn_tune_node(b->device, node, b->choices, results, &n));
        *changed = *changed || n > 0;
    }
    return QN_OK;
}

static QnStatus tune(Bench *b)
{
    bool changed = false;
    for (int i = 0; i < b->n_variants; i++)
        QN_TRY(tune_plan(b, b->variants[i].plan, &changed));
    if (b->recipe)
        QN_TRY(tune_plan(b, recipe_plan(b->recipe), &changed));
    if (!changed)
        return QN_OK;
    if (b->options.choices)
        QN_TRY(qn_choices_write(b->choices, b->options.choices));
    for (int i = 0; i < b->n_variants; i++)
        QN_TRY(compile(b, &b->variants[i]));
    if (!b->recipe)
        return QN_OK;
    recipe_close(b->recipe);
    b->recipe = NULL;
    return recipe_open(b->row, &b->options, b->device, b->choices, &b->recipe);
}

/* ---- opening ---- */

static QnStatus open_all(Bench *b)
{
    const MeasureOptions *o = &b->options;
    QnDeviceOptions d = { .n_threads = o->n_threads };
    QN_TRY(qn_device_open_named("cpu", &d, &b->device));
    if (o->choices)
        QN_TRY(qn_choices_read(o->choices, &b->choices));
    else if (!(b->choices = qn_choices_new()))
        return QN_ENOMEM;
    if (is_timed(b->row)) { /* measuring limits takes time and memory */
        b->limits = o->peaks;
        if (b->limits.flops_per_s <= 0)
            QN_TRY(qn_cpu_limits(&b->device->env, &b->limits));
        if (!(b->ns = qn_alloc_array(MAX_RUNS, sizeof *b->ns)))
            return QN_ENOMEM;
    }
    if (!b->row->build)
        QN_TRY(recipe_open(b->row, o, b->device, b->choices, &b->recipe));
    for (int i = 0; b->row->build && i <= (b->row->how == HOW_LAYOUTS); i++) {
        b->n_variants = i + 1;
        QN_TRY(open_variant(b, &b->variants[i], i ? QN_LAYOUT_CHANNELS_LAST : QN_LAYOUT_PLAIN));
    }
    return o->tune ? tune(b) : QN_OK;
}

QnStatus bench_open(const Row *row, const MeasureOptions *o, Bench **out)
{
    Bench *b = qn_alloc(sizeof *b);
    if (!b)
        return QN_ENOMEM;
    *b = (Bench){ .row = row, .options = *o };
    QnStatus st = open_all(b);
    if (st == QN_OK)
        *out = b;
    else
        bench_close(b);
    return st;
}

void bench_close(Bench *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->n_variants; i++)
        close_variant(&b->variants[i]);
    recipe_close(b->recipe);
    qn_choices_free(b->choices);
    qn_device_close(b->device);
    qn_free(b->ns);
    qn_free(b);
}

/* ---- measuring ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static QnStatus run_once(Bench *b, int variant, double *ns)
{
    return b->recipe ? recipe_run(b->recipe, ns) : run_variant(b, &b->variants[variant], ns);
}

static QnStatus median_ns(Bench *b, int variant, double *median, int64_t *runs)
{
    bool short_run = b->row->how != HOW_EPOCH;
    double ns = 0;
    int n = 0;
    for (int i = 0; short_run && i < WARM_UP_RUNS; i++)
        QN_TRY(run_once(b, variant, &ns));
    int64_t begin = qn_clock_ns();
    do {
        QN_TRY(run_once(b, variant, &ns));
        b->ns[n++] = ns;
    } while (short_run && n < MAX_RUNS &&
             (n < LEAST_RUNS || (double)(qn_clock_ns() - begin) < b->options.seconds * 1e9));
    qsort(b->ns, (size_t)n, sizeof *b->ns, by_value);
    *median = b->ns[n / 2];
    *runs = n;
    return QN_OK;
}

static double limit_ns(const Bench *b)
{
    double ns = 0;
    const QnPlan *p = b->recipe ? recipe_plan(b->recipe) : b->variants[0].plan;
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, i);
        ns += qn_cpu_limit_ns(&b->limits, s.node, &s.cost);
    }
    return b->recipe ? ns * (double)recipe_steps(b->recipe) : ns;
}

static double in_unit(const Row *row, double ns)
{
    switch (row->unit) {
    case UNIT_GFLOPS:
    case UNIT_GBPS: return row->work / ns;
    case UNIT_IMAGES: return row->work / (ns * 1e-9);
    case UNIT_S: return ns * 1e-9;
    case UNIT_MS: return ns * 1e-6;
    case UNIT_US: return ns * 1e-3;
    case UNIT_MB: break;
    }
    return NAN;
}

/* The kernel's count of what this process has had resident at most. */
static QnStatus peak_resident(double *mb)
{
    char line[256];
    long long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f)
        return qn_fail(QN_EIO, "/proc/self/status: cannot open");
    while (fgets(line, sizeof line, f) && kib < 0) {
        if (!strncmp(line, "VmHWM:", 6))
            kib = strtoll(line + 6, NULL, 10);
    }
    fclose(f);
    *mb = (double)kib * 1024 * 1e-6;
    return kib < 0 ? qn_fail(QN_EIO, "/proc/self/status: no VmHWM") : QN_OK;
}

static QnStatus measure_first_step(Bench *b, Measured *out)
{
    double ns;
    const char *start = getenv("QUERN_BENCH_START_NS"); /* of the monotonic clock */
    if (!start)
        return qn_fail(QN_EUSAGE, "QUERN_BENCH_START_NS is not set; bench/run.py sets it");
    QN_TRY(run_once(b, 0, &ns));
    stage(b, "first step done");
    out->value = in_unit(b->row, (double)(qn_clock_ns() - strtoll(start, NULL, 10)));
    out->runs = 1;
    return QN_OK;
}

/* The pages of memory are there after the first runs, which would show in the nodes' times. */
static QnStatus measure_profile(Bench *b)
{
    Profile f;
    double ns;
    int64_t runs;
    for (int i = 0; i < WARM_UP_RUNS; i++)
        QN_TRY(run_once(b, 0, &ns));
    QN_TRY(profile_begin(b->recipe ? recipe_plan(b->recipe) : b->variants[0].plan, &f));
    QnStatus st = median_ns(b, 0, &ns, &runs);
    QnStatus end = profile_end(&f, &b->limits);
    return st != QN_OK ? st : end;
}

QnStatus bench_measure(Bench *b, Measured *out)
{
    double best = INFINITY, ns;
    *out = (Measured){ .limit = NAN };
    if (b->row->how == HOW_FIRST_STEP)
        return measure_first_step(b, out);
    if (b->row->how == HOW_MEMORY) {
        for (int i = 0; i < LEAST_RUNS; i++)
            QN_TRY(run_once(b, 0, &ns));
        out->runs = LEAST_RUNS;
        return peak_resident(&out->value);
    }
    if (b->options.profile)
        QN_TRY(measure_profile(b));
    for (int i = 0; i < (b->recipe ? 1 : b->n_variants); i++) {
        QN_TRY(median_ns(b, i, &ns, &out->runs));
        if (ns < best && b->n_variants > 1)
            out->layout = i ? "channels_last" : "contiguous";
        best = fmin(best, ns);
    }
    out->value = in_unit(b->row, best);
    out->limit = in_unit(b->row, limit_ns(b));
    return QN_OK;
}

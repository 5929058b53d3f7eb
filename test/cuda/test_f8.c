/* Products of 8-bit floats through the CUDA plugin: by cuBLASLt, which is the stub's and holds the
 * plugin to the documentation's conditions, where it takes them, else by wider ones; and rounding
 * to 8 bits by device text. timeout: 900 */
#include "cuda/device.h"

#include "backend/device_f8.h"
#include "backend/device_node.h"
#include "nn/optim.h"
#include "pass/grad.h"
#include "pass/precision.h"

static bool have;

#define E4 QN_DTYPE_F8E4M3FN
#define E5 QN_DTYPE_F8E5M2

static int group_setup(void **state)
{
    (void)state;
    have = cuda_setup();
    return 0;
}

static QnDevice *open_with(const StubOptions *o)
{
    QnDevice *d;
    StubOptions runs = *o;
    if (!have)
        skip_because("built without CUDA's headers");
    runs.runs_kernels = true;
    stub_set(&runs);
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    return d;
}

static void close_all(QnDevice *d)
{
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
    assert_nothing_left("after the device is closed");
}

static void test_casts(void **state)
{
    (void)state;
    QnDevice *d = open_with(&(StubOptions){ 0 });
    check_f8_casts(d);
    close_all(d);
}

static void test_matrices(void **state)
{
    (void)state;
    QnDevice *d = open_with(&(StubOptions){ 0 });
    check_f8_matrices(d);
    close_all(d);
}

/* ---- products ---- */

typedef struct Product {
    int64_t m, n, k;
    QnDtype a, b, y;
    bool bias;
    int64_t steps; /* of the plan where the library has products of 8 bits; 0: emulated there too */
} Product;

/* Numbers of rows are free, of columns and of what is summed they divide by 16 bytes. */
static const Product products[] = {
    { 16, 32, 48, E4, E4, QN_DTYPE_BF16, false, 1 },
    { 7, 16, 16, E4, E5, QN_DTYPE_BF16, false, 1 },
    { 33, 8, 64, E5, E4, QN_DTYPE_F16, false, 1 },
    { 5, 4, 32, E4, E4, QN_DTYPE_F32, false, 1 },
    { 16, 16, 32, E4, E4, QN_DTYPE_BF16, true, 1 },
    { 16, 16, 32, E5, E4, QN_DTYPE_F16, true, 1 },
    { 16, 16, 32, E4, E5, QN_DTYPE_F32, true, 2 }, /* no f32 bias: a sum behind */
    { 16, 16, 32, E5, E5, QN_DTYPE_BF16, false, 0 },
    { 16, 16, 24, E4, E4, QN_DTYPE_BF16, false, 0 },
    { 16, 12, 32, E4, E4, QN_DTYPE_BF16, true, 0 },
};

static QnGraph *product_graph(const Product *c)
{
    QnGraph *g = qn_graph_new();
    QnValue *a = qn_input(g, "a", c->a, &QN_SHAPE(c->m, c->k));
    QnValue *b = qn_input(g, "b", c->b, &QN_SHAPE(c->n, c->k));
    QnValue *s = qn_input(g, "s", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *t = qn_input(g, "t", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *y = qn_matmul_f8(g, a, b, s, t, NULL, c->y);
    if (c->bias)
        y = qn_add(g, y, qn_input(g, "bias", c->y, &QN_SHAPE(c->n)));
    assert_ok(qn_graph_output(g, "y", y));
    return g;
}

/* A scale: a power of two that is not its own reciprocal. */
static void feed_scale(QnEval *e, QnPlan *p, const QnGraph *g, const char *name, double scale)
{
    float narrow = (float)scale;
    QN_GRAPH_EACH(g, n)
    {
        if ((n->op->traits & QN_INPUT) && !strcmp(qn_node_label(n), name))
            assert_ok(qn_eval_set(e, &n->out[0], &scale));
    }
    assert_ok(qn_plan_write(p, name, &narrow, sizeof narrow));
}

/* How many steps the plan has. */
static int64_t run_product(QnDevice *d, const Product *c)
{
    QnGraph *g = product_graph(c), *planned = product_graph(c);
    QnPipelineOptions o = qn_device_passes(d);
    QnPlan *p;
    const double *want;
    o.verify = true;
    assert_ok(qn_pipeline_run(planned, &o));
    assert_ok(qn_plan_new(planned, d, NULL, NULL, &p));
    QnEval *e = qn_eval_new(g, false);
    assert_non_null(e);
    for (int run = 0; run < 2; run++) { /* the second as a graph */
        node_feed(g, e, p, 1);
        feed_scale(e, p, g, "s", 8);
        feed_scale(e, p, g, "t", 0.5);
        assert_ok(qn_plan_run(p));
        const QnValue *y = g->outputs[0].value;
        void *got = node_output(p, &y->type, "y");
        assert_ok(qn_eval_get(e, y, &want));
        node_compare("matmul_f8", &y->type, got, want,
                     c->y == QN_DTYPE_F32   ? 1e-5
                     : c->y == QN_DTYPE_F16 ? 2e-3
                                            : 2e-2);
        free(got);
    }
    int64_t steps = qn_plan_n_steps(p);
    qn_plan_free(p);
    qn_eval_free(e);
    qn_graph_free(planned);
    qn_graph_free(g);
    return steps;
}

static void test_products(void **state)
{
    (void)state;
    QnDevice *d = open_with(&(StubOptions){ 0 });
    for (int i = 0; i < QN_COUNT(products); i++) {
        const Product *c = &products[i];
        int64_t before = counts().products_f8, steps = run_product(d, c);
        if ((counts().products_f8 - before > 0) != (c->steps > 0) ||
            (c->steps && steps != c->steps))
            fail_msg("product %d: %lld by the library, %lld steps", i,
                     (long long)(counts().products_f8 - before), (long long)steps);
    }
    close_all(d);
}

/* Ampere has no such products, some libraries know none, none may be there: the same results. */
static void test_products_are_emulated(void **state)
{
    (void)state;
    static const StubOptions without[] = { { .sm = 80 },
                                           { .knows_no_f8 = true },
                                           { .knows_no_product = true } };
    for (int k = 0; k < QN_COUNT(without); k++) {
        char folder[32];
        snprintf(folder, sizeof folder, "without-%d", k);
        setenv("XDG_CACHE_HOME", temp_path(folder), 1);
        QnDevice *d = open_with(&without[k]);
        for (int i = 0; i < QN_COUNT(products); i++)
            assert_true(run_product(d, &products[i]) > 1);
        assert_int_equal(counts().products_f8, 0);
        close_all(d);
    }
}

/* What the library chose for a product in 8 bits is not taken for one of the same lengths in other
 * types. */
static void test_choices_are_kept_by_types(void **state)
{
    (void)state;
    Product c = products[0];
    setenv("XDG_CACHE_HOME", temp_path("types"), 1);
    static const QnDtype types[][3] = { { E4, E4, QN_DTYPE_BF16 },
                                        { E5, E4, QN_DTYPE_BF16 },
                                        { E4, E5, QN_DTYPE_BF16 },
                                        { E4, E4, QN_DTYPE_F32 } };
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < QN_COUNT(types); i++) {
            c.a = types[i][0], c.b = types[i][1], c.y = types[i][2];
            QnDevice *d = open_with(&(StubOptions){ 0 });
            assert_int_equal(run_product(d, &c), 1);
            assert_int_equal(counts().asked, !again);
            close_all(d);
        }
    }
}

static void test_reasons(void **state)
{
    (void)state;
    QnDevice *d = open_with(&(StubOptions){ .sm = 80 });
    QnGraph *g = product_graph(&products[0]);
    const char *why = NULL;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; n->op == &qn_op_matmul_f8 && i < d->backend->n_kernels; i++) {
            const QnKernel *k = d->backend->kernels[i];
            why = strcmp(k->name, "cublaslt.matmul") ? why : k->accepts(n, &d->env);
        }
    }
    assert_contains(why, "no products of 8 bits");
    qn_graph_free(g);
    close_all(d);
}

/* ---- training ---- */

enum { ROWS = 32, IN = 48, HIDDEN = 32, OUT = 16, STEPS = 4 };

/* Two layers in f32 around products by 8 bits, so that only the order of sums differs. */
static QnGraph *training_step(void)
{
    static const char *const first[] = { "h0.x", "h0.w", "h0.dy" };
    static const char *const second[] = { "h1.x", "h1.w", "h1.dy" };
    QnGraph *g = qn_graph_new();
    QnStateAttr w = {
        .name = "w", .dims = { 2, { IN, HIDDEN } }, .init = QN_INIT_NORMAL, .b = 0.2
    };
    QnStateAttr v = {
        .name = "v", .dims = { 2, { OUT, HIDDEN } }, .init = QN_INIT_NORMAL, .b = 0.2
    };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(ROWS, IN)), *grads[2];
    QnValue *params[] = { qn_state(g, &w), qn_state(g, &v) };
    QnValue *h = qn_tanh(g, qn_matmul_by_f8(g, x, params[0], false, first, true));
    QnValue *y = qn_matmul_by_f8(g, h, params[1], true, second, true);
    QnValue *loss = qn_mean(g, qn_square(g, y), QN_ALL_AXES, false);
    assert_ok(qn_grad(g, loss, params, 2, grads));
    for (int i = 0; i < 2; i++)
        qn_assign(g, params[i], qn_sub(g, params[i], qn_mul_scalar(g, grads[i], 0.5)));
    assert_ok(qn_graph_output(g, "loss", loss));
    return g;
}

/* All states after some steps; *by_library: steps that are matmul_f8. */
static float *train(QnDevice *d, int64_t *n, int *by_library)
{
    F8Plan f;
    float x[ROWS * IN];
    f8_open(&f, d, training_step());
    *by_library = 0;
    for (int64_t i = 0; i < qn_plan_n_steps(f.p); i++)
        *by_library += qn_plan_step(f.p, i).node->op == &qn_op_matmul_f8;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * IN; i++)
            x[i] = sinf((float)(i * (step + 2)));
        assert_ok(qn_plan_write(f.p, "x", x, sizeof x));
        assert_ok(qn_plan_run(f.p));
    }
    float *all = calloc((size_t)f.store->bytes + 4, 1);
    *n = 0;
    for (int64_t i = 0; i < f.store->n; i++) {
        assert_ok(qn_store_read(f.store, &f.store->slots[i], all + *n));
        *n += f.store->slots[i].bytes / 4;
    }
    f8_close(&f);
    return all;
}

/* Weights and histories are those of the CPU, by the library's products and without them. */
static void test_training(void **state)
{
    (void)state;
    int64_t n, n_cpu;
    int by_library, none;
    for (int k = 0; k < 2; k++) {
        setenv("XDG_CACHE_HOME", temp_path(k ? "train-without" : "train-with"), 1);
        QnDevice *d = open_with(&(StubOptions){ .knows_no_f8 = k == 1 }), *cpu;
        assert_ok(qn_device_open_named("cpu", NULL, &cpu));
        float *got = train(d, &n, &by_library), *want = train(cpu, &n_cpu, &none);
        assert_int_equal(none, 0);
        assert_int_equal(by_library, k ? 0 : 5); /* the first layer's input has no gradient */
        assert_int_equal(counts().products_f8, k ? 0 : 5 * 2); /* run, captured, then replayed */
        assert_int_equal(counts().replays, STEPS - 1);
        assert_int_equal(n, n_cpu);
        for (int64_t i = 0; i < n; i++) {
            if (!(fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
                fail_msg("state element %lld is %g, on the CPU %g", (long long)i, (double)got[i],
                         (double)want[i]);
        }
        free(got);
        free(want);
        qn_device_close(cpu);
        close_all(d);
    }
}

/* What evaluation needs is one orientation of each operand. */
static void test_evaluation_is_trimmed(void **state)
{
    (void)state;
    QnDevice *d = open_with(&(StubOptions){ 0 });
    QnGraph *g = qn_graph_new(), *mixed;
    QnValue **map;
    QnStateAttr w = { .name = "w", .dims = { 2, { IN, OUT } }, .trainable = true };
    QnStateAttr b = { .name = "b", .dims = { 1, { OUT } }, .trainable = true };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(ROWS, IN));
    QnValue *y = qn_matmul(g, x, qn_state(g, &w), qn_state(g, &b), false, false);
    assert_ok(qn_graph_output(g, "y", y));
    assert_ok(qn_precision(g, &(QnPrecisionOptions){ .low = E4 }, &mixed, &map, NULL));
    F8Plan f;
    f8_open(&f, d, mixed);
    int quantised = 0, multiplied = 0;
    for (int64_t i = 0; i < qn_plan_n_steps(f.p); i++) {
        const QnNode *n = qn_plan_step(f.p, i).node;
        if (n->op == &qn_op_quantize_f8)
            assert_int_equal(n->n_out, 1);
        quantised += n->op == &qn_op_quantize_f8;
        multiplied += n->op == &qn_op_matmul_f8 && n->n_in == 5; /* with the bias */
    }
    assert_int_equal(quantised, 2);
    assert_int_equal(multiplied, 1);
    f8_close(&f);
    qn_graph_free(g);
    close_all(d);
}

/* ---- failures ---- */

static QnStatus try_training(bool *by_library)
{
    QnDevice *d = NULL;
    QnGraph *g = training_step();
    QnStore *s = NULL;
    QnPlan *p = NULL;
    float x[ROWS * IN] = { 1 }, w[IN * HIDDEN];
    *by_library = false;
    QnStatus st = qn_device_open_named("cuda:0", NULL, &d);
    if (st != QN_OK)
        goto done;
    QnPipelineOptions o = qn_device_passes(d);
    QN_TRY_DONE(qn_pipeline_run(g, &o));
    QN_GRAPH_EACH(g, n)
    *by_library |= n->op == &qn_op_matmul_f8;
    s = qn_store_new(d);
    QN_TRY_DONE(s ? qn_store_add(s, g) : QN_ENOMEM);
    QN_TRY_DONE(qn_store_alloc(s));
    QN_TRY_DONE(qn_store_fill(s, 1));
    QN_TRY_DONE(qn_plan_new(g, d, s, NULL, &p));
    for (int i = 0; i < 2; i++) {
        QN_TRY_DONE(qn_plan_write(p, "x", x, sizeof x));
        QN_TRY_DONE(qn_plan_run(p));
    }
    QN_TRY_DONE(qn_store_read(s, qn_store_find(s, "w"), w));
done:
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
    if (d)
        qn_device_close(d);
    return st;
}

/* A call of cublasLt that fails: while the graph is made, that product is emulated; later the error
 * is told. */
static void fail_each(const char *call, int *failed, int *went_on)
{
    bool done = false, by_library;
    for (int n = 1; !done; n++) {
        char folder[100];
        snprintf(folder, sizeof folder, "%.60s-%d", call, n);
        setenv("XDG_CACHE_HOME", temp_path(folder), 1);
        stub_set(&(StubOptions){ .fail_call = call, .fail_at = n, .fail_error = 700 });
        qn_error_clear();
        QnStatus st = try_training(&by_library);
        done = counts().failed == 0;
        if (st != QN_OK && (st != QN_EDEVICE || !strstr(qn_error_last()->text, "cublasLt")))
            fail_msg("%s, call %d: %s: %s", call, n, qn_status_name(st), qn_error_last()->text);
        *failed += st != QN_OK;
        *went_on += st == QN_OK && !done;
        assert_true(st != QN_OK || by_library); /* the other products */
        assert_true(!done || st == QN_OK);
        assert_nothing_left(call);
    }
}

static void test_every_call_of_the_library_may_fail(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "cublasLtMatmulDescCreate",       "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",     "cublasLtMatrixLayoutSetAttribute",
        "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
    };
    int failed = 0, went_on = 0;
    if (!have)
        skip_because("built without CUDA's headers");
    for (int i = 0; i < QN_COUNT(calls); i++)
        fail_each(calls[i], &failed, &went_on);
    print_message("%d failures end the run, after %d others it goes on\n", failed, went_on);
    assert_true(failed > 10 && went_on > 10);
}

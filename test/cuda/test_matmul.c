/* Matrix products by cuBLASLt, which is the stub's, against the reference: transposed and not, with
 * and without a bias, in batches, in each type; and what it refuses runs otherwise. */
#include "cuda/device.h"

#include "base/rng.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include <math.h>

static bool have;

static int group_setup(void **state)
{
    have = cuda_setup();
    return 0;
}

typedef struct Product {
    QnShape a, b, bias; /* bias of rank 0: none */
    bool trans_a, trans_b;
    const char *kernel;
} Product;

static double *elements(QnRng *rng, const QnType *t, void **narrow)
{
    int64_t n = qn_shape_count(&t->shape);
    double *x = calloc((size_t)n + 1, sizeof *x);
    *narrow = calloc((size_t)n + 1, 8);
    for (int64_t i = 0; i < n; i++)
        x[i] = qn_rng_uniform(rng) - 0.5;
    qn_dtype_from_f64(t->dtype, x, *narrow, n);
    qn_dtype_to_f64(t->dtype, *narrow, x, n);
    return x;
}

static void feed(QnEval *e, QnPlan *p, QnValue *v, const char *name, QnRng *rng)
{
    void *narrow;
    double *x = elements(rng, &v->type, &narrow);
    assert_ok(qn_eval_set(e, v, x));
    assert_ok(qn_plan_write(p, name, narrow, (size_t)qn_type_bytes(&v->type)));
    free(narrow);
    free(x);
}

static void compare(QnPlan *p, const char *name, const QnValue *y, const double *want, double tol)
{
    int64_t n = qn_shape_count(&y->type.shape);
    void *narrow = calloc((size_t)n, 8);
    double *got = calloc((size_t)n, sizeof *got);
    assert_ok(qn_plan_read(p, name, narrow, (size_t)qn_type_bytes(&y->type)));
    qn_dtype_to_f64(y->type.dtype, narrow, got, n);
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i]))))
            fail_msg("%s: element %lld is %g, not %g", name, (long long)i, got[i], want[i]);
    }
    free(got);
    free(narrow);
}

static void check(QnDevice *d, const Product *c, QnDtype dtype)
{
    QnGraph *g = qn_graph_new();
    QnPlan *p;
    QnRng rng;
    const double *want;
    QnValue *a = qn_input(g, "a", dtype, &c->a), *b = qn_input(g, "b", dtype, &c->b);
    QnValue *bias = c->bias.rank ? qn_input(g, "bias", dtype, &c->bias) : NULL;
    QnValue *y = qn_matmul(g, a, b, bias, c->trans_a, c->trans_b);
    assert_ok(qn_graph_output(g, "y", y));
    QnEval *e = qn_eval_new(g, false);
    assert_non_null(e);
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    assert_string_equal(qn_plan_step(p, 0).kernel->name, c->kernel);
    qn_rng_init(&rng, 3, 0);
    feed(e, p, a, "a", &rng);
    feed(e, p, b, "b", &rng);
    if (bias)
        feed(e, p, bias, "bias", &rng);
    assert_ok(qn_eval_get(e, y, &want));
    bool library = !strcmp(c->kernel, "cublaslt.matmul");
    for (int run = 0; run < 3 && library; run++) { /* the last two as a graph */
        assert_ok(qn_plan_run(p));
        compare(p, "y", y, want,
                dtype == QN_DTYPE_F32   ? 1e-5
                : dtype == QN_DTYPE_F16 ? 2e-3
                                        : 1e-2);
    }
    assert_true(!library || qn_plan_is_captured(p, NULL));
    qn_plan_free(p);
    qn_eval_free(e);
    qn_graph_free(g);
}

#define LT "cublaslt.matmul"

static const Product products[] = {
    { QN_SHAPE(5, 7), QN_SHAPE(7, 3), { 0 }, false, false, LT },
    { QN_SHAPE(7, 5), QN_SHAPE(7, 3), { 0 }, true, false, LT },
    { QN_SHAPE(5, 7), QN_SHAPE(3, 7), { 0 }, false, true, LT },
    { QN_SHAPE(7, 5), QN_SHAPE(3, 7), { 0 }, true, true, LT },
    { QN_SHAPE(5, 7), QN_SHAPE(3, 7), QN_SHAPE(3), false, true, LT },
    { QN_SHAPE(1, 7), QN_SHAPE(7, 1), QN_SHAPE(1, 1), false, false, LT },
    { QN_SHAPE(2, 3, 5, 7), QN_SHAPE(2, 3, 7, 4), { 0 }, false, false, LT },
    { QN_SHAPE(2, 3, 7, 5), QN_SHAPE(2, 3, 4, 7), QN_SHAPE(1, 4), true, true, LT },
    { QN_SHAPE(2, 3, 5, 7), QN_SHAPE(7, 4), QN_SHAPE(4), false, false, LT },
    { QN_SHAPE(6, 7, 5), QN_SHAPE(4, 7), { 0 }, true, true, LT },
    { QN_SHAPE(5, 7), QN_SHAPE(6, 7, 4), { 0 }, false, false, LT },
    { QN_SHAPE(2, 1, 5, 7), QN_SHAPE(2, 3, 7, 4), { 0 }, false, false, "cuda.text" },
    { QN_SHAPE(5, 7), QN_SHAPE(7, 3), QN_SHAPE(5, 1), false, false, "cuda.text" },
    { QN_SHAPE(5, 7), QN_SHAPE(7, 3), QN_SHAPE(1), false, false, "cuda.text" },
    { QN_SHAPE(5, 0), QN_SHAPE(0, 3), { 0 }, false, false, "cuda.text" },
};

static void check_all(QnDtype dtype)
{
    QnDevice *d;
    if (!have)
        skip_because("built without CUDA's headers");
    stub_set(&(StubOptions){ 0 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    for (int i = 0; i < QN_COUNT(products); i++)
        check(d, &products[i], dtype);
    assert_true(counts().products > 0);
    qn_device_close(d);
    assert_nothing_left("after the products");
}

static void test_f32(void **state)
{
    check_all(QN_DTYPE_F32);
}

static void test_f16(void **state)
{
    check_all(QN_DTYPE_F16);
}

static void test_bf16(void **state)
{
    check_all(QN_DTYPE_BF16);
}

static int64_t asked_by_new_device(const Product *c, QnDtype dtype, const StubOptions *o)
{
    QnDevice *d;
    stub_set(o);
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    check(d, c, dtype);
    check(d, c, dtype);
    qn_device_close(d);
    return counts().asked;
}

/* The library is asked once for each product, and never again: not for another node, nor in a
 * later start, unless it, the driver or the device is another. */
static void test_choices_are_kept(void **state)
{
    Product c = products[4];
    StubOptions same = { 0 }, other_device = { .sm = 80 },
                other_driver = { .driver_version = 12080 };
    StubOptions other_library = { .blas_version = 120901 }, none = { .knows_no_product = true };
    if (!have)
        skip_because("built without CUDA's headers");
    setenv("XDG_CACHE_HOME", temp_path("choices"), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &same), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &same), 0);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F16, &same), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &other_device), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &other_driver), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &other_library), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &same), 0);
    c.kernel = "cuda.text"; /* the library no longer takes what it chose: the next best */
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &none), 1);
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &none), 0);
    assert_nothing_left("after choices");
}

/* A cut or changed entry is made anew, one of no known form as well. */
static void test_damaged_choices_are_made_anew(void **state)
{
    Product c = products[4];
    StubOptions same = { 0 };
    char folder[1200], command[1400];
    if (!have)
        skip_because("built without CUDA's headers");
    setenv("XDG_CACHE_HOME", temp_path("damaged"), 1);
    snprintf(folder, sizeof folder, "%s/quern/programs", getenv("XDG_CACHE_HOME"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &same), 1);
        assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &same), 0);
        snprintf(command, sizeof command,
                 i == 0   ? "truncate -s 60 '%s'/*.qnc"
                 : i == 1 ? "truncate -s 0 '%s'/*.qnc"
                          : "for f in '%s'/*.qnc; do printf x | dd of=\"$f\" bs=1 seek=45 "
                            "conv=notrunc status=none; done",
                 folder);
        assert_int_equal(system(command), 0);
    }
    assert_int_equal(asked_by_new_device(&c, QN_DTYPE_F32, &same), 1);
    assert_nothing_left("after choices");
}

/* ---- epilogues ---- */

typedef struct Epilogue {
    const char *map;
    bool bias, trans_b, keep, sums;
} Epilogue;

static const Epilogue epilogues[] = {
    { .map = "relu" },
    { .map = "relu", .bias = true, .trans_b = true },
    { .map = "gelu_tanh" },
    { .map = "gelu_tanh", .bias = true },
    { .map = "gelu_tanh", .keep = true },
    { .map = "gelu_tanh", .bias = true, .keep = true, .trans_b = true },
    { .map = "gelu_tanh_grad" },
    { .map = "gelu_tanh_grad", .sums = true, .trans_b = true },
    { .map = "add", .bias = true },
    { .map = "add" },
};

/* What the library has no epilogue for stays beside the product. */
static const Epilogue others[] = {
    { .map = "gelu" },
    { .map = "relu", .keep = true },
    { .map = "gelu_tanh_grad", .bias = true },
    { .map = "add", .keep = true },
};

static QnValue *map_on(QnGraph *g, const Epilogue *e, QnValue *y, QnValue *x)
{
    const char *name = e->map;
    return !strcmp(name, "relu")        ? qn_relu(g, y)
           : !strcmp(name, "gelu")      ? qn_gelu(g, y)
           : !strcmp(name, "gelu_tanh") ? qn_gelu_tanh(g, y)
           : !strcmp(name, "add")       ? qn_add(g, x, y)
                                        : qn_gelu_tanh_grad(g, y, x);
}

/* The graph as it is evaluated, and the optimised one that is planned. */
static QnGraph *with_epilogue(const Epilogue *e, QnDtype dtype, int cols)
{
    QnGraph *g = qn_graph_new();
    QnShape of_b = e->trans_b ? QN_SHAPE(cols, 7) : QN_SHAPE(7, cols);
    QnValue *a = qn_input(g, "a", dtype, &QN_SHAPE(2, 3, 7)), *b = qn_input(g, "b", dtype, &of_b);
    QnValue *bias = e->bias ? qn_input(g, "bias", dtype, &QN_SHAPE(cols)) : NULL;
    bool beside = !strcmp(e->map, "add") || !strcmp(e->map, "gelu_tanh_grad");
    QnValue *x = beside ? qn_input(g, "x", dtype, &QN_SHAPE(2, 3, cols)) : NULL;
    QnValue *p = qn_matmul(g, a, b, bias, false, e->trans_b);
    QnValue *y = map_on(g, e, p, x);
    assert_ok(qn_graph_output(g, "y", y));
    if (e->keep)
        assert_ok(qn_graph_output(g, "p", p));
    if (e->sums)
        assert_ok(qn_graph_output(g, "sums", qn_sum(g, y, (QnInts){ 2, { 0, 1 } }, false)));
    return g;
}

static void feed_named(QnEval *e, QnPlan *p, const QnGraph *g)
{
    QnRng rng;
    qn_rng_init(&rng, 3, 0);
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_INPUT)
            feed(e, p, &n->out[0], qn_node_label(n), &rng);
    }
}

/* How many steps the plan has; each output is the reference's. */
static int64_t run_epilogue(QnDevice *d, const Epilogue *e, QnDtype dtype, int cols,
                            const char *kernel)
{
    QnGraph *g = with_epilogue(e, dtype, cols), *planned = with_epilogue(e, dtype, cols);
    QnPlan *p;
    QnPipelineOptions o = qn_device_passes(d);
    const double *want;
    o.verify = true;
    assert_ok(qn_pipeline_run(planned, &o));
    assert_ok(qn_plan_new(planned, d, NULL, NULL, &p));
    int64_t n_steps = qn_plan_n_steps(p);
    assert_string_equal(qn_plan_step(p, 0).kernel->name, kernel);
    QnEval *eval = qn_eval_new(g, false);
    assert_non_null(eval);
    for (int run = 0; run < 2; run++) { /* the second as a graph */
        feed_named(eval, p, g);         /* a run may write over its inputs */
        assert_ok(qn_plan_run(p));
        for (int64_t i = 0; i < g->n_outputs; i++) {
            assert_ok(qn_eval_get(eval, g->outputs[i].value, &want));
            compare(p, g->outputs[i].name, g->outputs[i].value, want,
                    dtype == QN_DTYPE_F32   ? 1e-5
                    : dtype == QN_DTYPE_F16 ? 4e-3
                                            : 3e-2);
        }
    }
    qn_plan_free(p);
    qn_eval_free(eval);
    qn_graph_free(planned);
    qn_graph_free(g);
    return n_steps;
}

static void test_epilogues(void **state)
{
    static const QnDtype types[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    QnDevice *d;
    if (!have)
        skip_because("built without CUDA's headers");
    stub_set(&(StubOptions){ .runs_kernels = true });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    for (int t = 0; t < QN_COUNT(types); t++) {
        for (int i = 0; i < QN_COUNT(epilogues); i++)
            assert_int_equal(run_epilogue(d, &epilogues[i], types[t], 8, LT), 1);
        for (int i = 0; i < QN_COUNT(others); i++)
            assert_int_equal(run_epilogue(d, &others[i], types[t], 8, LT), 2);
        /* an auxiliary matrix of rows that do not divide by 8 */
        assert_int_equal(run_epilogue(d, &epilogues[4], types[t], 6, LT), 2);
    }
    qn_device_close(d);
    assert_nothing_left("after epilogues");
}

/* Where the library knows no algorithm, device text takes the maps in. */
static void test_epilogues_without_the_library(void **state)
{
    QnDevice *d;
    if (!have)
        skip_because("built without CUDA's headers");
    setenv("XDG_CACHE_HOME", temp_path("refused"), 1);
    stub_set(&(StubOptions){ .runs_kernels = true, .knows_no_product = true });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    for (int i = 0; i < QN_COUNT(epilogues); i++)
        assert_int_equal(run_epilogue(d, &epilogues[i], QN_DTYPE_F32, 8, "cuda.text"),
                         1 + epilogues[i].sums);
    for (int i = 0; i < QN_COUNT(others); i++)
        assert_int_equal(run_epilogue(d, &others[i], QN_DTYPE_BF16, 6, "cuda.text"), 1);
    assert_int_equal(counts().products, 0);
    qn_device_close(d);
    assert_nothing_left("after epilogues");
}

/* ---- gradients of biases ---- */

/* Gradients of a linear layer of either orientation: of its weight, and the sums of rows that are
 * those of its bias. */
static QnGraph *layer_gradients(QnDtype dtype, bool trans_b, bool early)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", dtype, &QN_SHAPE(6, 8));
    QnValue *dy = qn_input(g, "dy", dtype, &QN_SHAPE(2, 3, 5));
    QnValue *rows = qn_reshape(g, dy, &QN_SHAPE(6, 5));
    QnValue *db = qn_sum(g, dy, (QnInts){ 2, { 0, 1 } }, false);
    if (early) /* it is read before the product is there */
        x = qn_mul(g, x, qn_sum(g, db, QN_INTS(0), false));
    QnValue *dw = trans_b ? qn_matmul(g, rows, x, NULL, true, false)
                          : qn_matmul(g, x, rows, NULL, true, false);
    assert_ok(qn_graph_output(g, "dw", dw));
    assert_ok(qn_graph_output(g, "db", db));
    return g;
}

static int64_t run_gradients(QnDevice *d, QnDtype dtype, bool trans_b, bool early)
{
    QnGraph *g = layer_gradients(dtype, trans_b, early);
    QnGraph *planned = layer_gradients(dtype, trans_b, early);
    QnPipelineOptions o = qn_device_passes(d);
    const double *want;
    QnPlan *p;
    o.verify = true;
    assert_ok(qn_pipeline_run(planned, &o));
    assert_ok(qn_plan_new(planned, d, NULL, NULL, &p));
    QnEval *eval = qn_eval_new(g, false);
    assert_non_null(eval);
    for (int run = 0; run < 2; run++) {
        feed_named(eval, p, g);
        assert_ok(qn_plan_run(p));
        for (int64_t i = 0; i < g->n_outputs; i++) {
            assert_ok(qn_eval_get(eval, g->outputs[i].value, &want));
            compare(p, g->outputs[i].name, g->outputs[i].value, want,
                    dtype == QN_DTYPE_F32   ? 1e-5
                    : dtype == QN_DTYPE_F16 ? 4e-3
                                            : 3e-2);
        }
    }
    int64_t steps = qn_plan_n_steps(p);
    qn_plan_free(p);
    qn_eval_free(eval);
    qn_graph_free(planned);
    qn_graph_free(g);
    return steps;
}

static void test_gradients_of_biases(void **state)
{
    static const QnDtype types[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    enum { OF_FIRST = 256, OF_SECOND = 512 }; /* bits of cublasLtEpilogue_t */
    QnDevice *d;
    if (!have)
        skip_because("built without CUDA's headers");
    setenv("XDG_CACHE_HOME", temp_path("biases"), 1);
    stub_set(&(StubOptions){ .runs_kernels = true });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    for (int t = 0; t < QN_COUNT(types); t++) {
        assert_int_equal(run_gradients(d, types[t], false, false), 1);
        assert_int_equal(run_gradients(d, types[t], true, false), 1);
        assert_true(run_gradients(d, types[t], false, true) > 2);
    }
    assert_int_equal(counts().epilogues & (OF_FIRST | OF_SECOND), OF_FIRST | OF_SECOND);
    qn_device_close(d);
    assert_nothing_left("after gradients of biases");
    setenv("XDG_CACHE_HOME", temp_path("biases-refused"), 1);
    stub_set(&(StubOptions){ .runs_kernels = true, .knows_no_product = true });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    assert_int_equal(run_gradients(d, QN_DTYPE_BF16, false, false), 2);
    qn_device_close(d);
    assert_nothing_left("after gradients of biases");
}

/* Turing has no products of bf16; without the library, device text runs. */
static void test_what_is_missing_is_left_out(void **state)
{
    QnDevice *d;
    if (!have)
        skip_because("built without CUDA's headers");
    Product c = products[0];
    stub_set(&(StubOptions){ .sm = 75 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    check(d, &c, QN_DTYPE_F16);
    c.kernel = "cuda.text";
    check(d, &c, QN_DTYPE_BF16);
    qn_device_close(d);
    char stub[1100];
    snprintf(stub, sizeof stub, "%s", getenv("QUERN_LIBCUBLASLT"));
    setenv("QUERN_LIBCUBLASLT", "/nowhere/libcublasLt.so", 1);
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    check(d, &c, QN_DTYPE_F32);
    const QnKernel *k = NULL;
    for (int i = 0; i < d->backend->n_kernels; i++)
        k = strcmp(d->backend->kernels[i]->name, LT) ? k : d->backend->kernels[i];
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, 2));
    const char *why = k->accepts(qn_matmul(g, x, x, NULL, false, false)->node, &d->env);
    assert_contains(why, "/nowhere/libcublasLt.so");
    qn_graph_free(g);
    qn_device_close(d);
    setenv("QUERN_LIBCUBLASLT", stub, 1);
}

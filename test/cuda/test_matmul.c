/* Matrix products by cuBLASLt, which is the stub's, against the reference: transposed and not, with
 * and without a bias, in batches, in each type; and what it refuses runs otherwise. */
#include "cuda/device.h"

#include "base/rng.h"
#include "ir/eval.h"
#include "ops/ops.h"
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

static void compare(QnPlan *p, const QnValue *y, const double *want, double tol)
{
    int64_t n = qn_shape_count(&y->type.shape);
    void *narrow = calloc((size_t)n, 8);
    double *got = calloc((size_t)n, sizeof *got);
    assert_ok(qn_plan_read(p, "y", narrow, (size_t)qn_type_bytes(&y->type)));
    qn_dtype_to_f64(y->type.dtype, narrow, got, n);
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i]))))
            fail_msg("element %lld is %g, not %g", (long long)i, got[i], want[i]);
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
        compare(p, y, want, dtype == QN_DTYPE_F32 ? 1e-5 : dtype == QN_DTYPE_F16 ? 2e-3 : 1e-2);
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

/* Asked once a device for each product, however many nodes have it. */
static void test_choices_are_kept(void **state)
{
    QnDevice *d;
    Product c = products[4];
    if (!have)
        skip_because("built without CUDA's headers");
    stub_set(&(StubOptions){ 0 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    check(d, &c, QN_DTYPE_F32);
    check(d, &c, QN_DTYPE_F32);
    assert_int_equal(counts().asked, 1);
    check(d, &c, QN_DTYPE_F16);
    assert_int_equal(counts().asked, 2);
    qn_device_close(d);
    stub_set(&(StubOptions){ .knows_no_product = true });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    c.kernel = "cuda.text"; /* the next best */
    check(d, &c, QN_DTYPE_F32);
    qn_device_close(d);
    assert_nothing_left("after choices");
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

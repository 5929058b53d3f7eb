/* Products by CLBlast where a recorded choice says so, against the reference; what it does not
 * take; and that it is measured against device text. timeout: 900 */
#include "test.h"

#include "backend/opencl/opencl.h"

#if defined(QN_HAVE_OPENCL) && defined(QN_HAVE_CLBLAST)
#include "base/rng.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "rt/plan.h"
#include "rt/tune.h"

#include <math.h>

static QnDevice *device;

static void open_device(void)
{
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    assert_ok(qn_device_open_named("opencl:0", NULL, &device));
}

static void close_device(void)
{
    assert_int_equal(device->now_bytes, 0);
    qn_device_close(device);
}

typedef struct Product {
    QnShape a, b, bias; /* bias of rank 0: none */
    bool trans_a, trans_b;
} Product;

static QnValue *emit(QnGraph *g, const Product *p, QnDtype dtype)
{
    QnValue *a = qn_input(g, "a", dtype, &p->a), *b = qn_input(g, "b", dtype, &p->b);
    QnValue *bias = p->bias.rank ? qn_input(g, "bias", dtype, &p->bias) : NULL;
    return qn_matmul(g, a, b, bias, p->trans_a, p->trans_b);
}

static const QnKernel *clblast(void)
{
    for (int i = 0; i < device->backend->n_kernels; i++) {
        if (!strcmp(device->backend->kernels[i]->name, "clblast.matmul"))
            return device->backend->kernels[i];
    }
    fail_msg("no kernel clblast.matmul");
    return NULL;
}

/* The matmul behind the views that its builder may put around it. */
static QnNode *matmul_of(QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        if (n->op == &qn_op_matmul)
            return n;
    }
    fail_msg("no matmul");
    return NULL;
}

static void feed(QnEval *e, QnPlan *p, const QnGraph *g, QnRng *rng)
{
    QN_GRAPH_EACH(g, n)
    {
        if (!(n->op->traits & QN_INPUT))
            continue;
        int64_t count = qn_shape_count(&n->out[0].type.shape);
        double *x = calloc((size_t)count, sizeof *x);
        float *narrow = calloc((size_t)count, sizeof *narrow);
        for (int64_t i = 0; i < count; i++)
            x[i] = narrow[i] = (float)(qn_rng_uniform(rng) - 0.5);
        assert_ok(qn_eval_set(e, &n->out[0], x));
        assert_ok(qn_plan_write(p, qn_node_label(n), narrow, (size_t)count * sizeof *narrow));
        free(narrow);
        free(x);
    }
}

static void compare(const QnPlan *p, const QnValue *y, const double *want)
{
    int64_t n = qn_shape_count(&y->type.shape);
    float *got = calloc((size_t)n, sizeof *got);
    assert_ok(qn_plan_read(p, "y", got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
            fail_msg("element %lld is %g, not %g", (long long)i, (double)got[i], want[i]);
    }
    free(got);
}

static void check(const Product *c)
{
    QnGraph *g = qn_graph_new();
    QnChoices *choices = qn_choices_new();
    char key[QN_SELECT_KEY_BYTES];
    QnPlan *p;
    QnRng rng;
    const double *want;
    QnValue *y = emit(g, c, QN_DTYPE_F32);
    assert_ok(qn_graph_output(g, "y", y));
    assert_ok(
        qn_choices_set(choices, qn_select_key(device, matmul_of(g), key), "clblast.matmul", 1));
    assert_ok(qn_plan_new(g, device, NULL, &(QnPlanOptions){ .choices = choices }, &p));
    assert_string_equal(qn_plan_step(p, 0).kernel->name, "clblast.matmul");
    QnEval *e = qn_eval_new(g, false);
    assert_non_null(e);
    qn_rng_init(&rng, 5, 0);
    for (int run = 0; run < 3; run++) {
        feed(e, p, g, &rng);
        assert_ok(qn_plan_run(p));
        assert_ok(qn_eval_get(e, y, &want));
        compare(p, y, want);
        qn_eval_free(e);
        e = qn_eval_new(g, false);
        assert_non_null(e);
    }
    qn_eval_free(e);
    qn_plan_free(p);
    qn_choices_free(choices);
    qn_graph_free(g);
}

static const Product products[] = {
    { QN_SHAPE(5, 7), QN_SHAPE(7, 3), { 0 }, false, false },
    { QN_SHAPE(7, 5), QN_SHAPE(7, 3), { 0 }, true, false },
    { QN_SHAPE(5, 7), QN_SHAPE(3, 7), QN_SHAPE(3), false, true },
    { QN_SHAPE(7, 5), QN_SHAPE(3, 7), QN_SHAPE(1, 3), true, true },
    { QN_SHAPE(1, 1), QN_SHAPE(1, 1), QN_SHAPE(1), false, false },
    { QN_SHAPE(2, 33, 40), QN_SHAPE(40, 65), QN_SHAPE(65), false, false },
    { QN_SHAPE(2, 33, 40), QN_SHAPE(1, 40, 65), { 0 }, false, false },
    { QN_SHAPE(200, 130), QN_SHAPE(150, 130), QN_SHAPE(150), false, true },
};

static void check_products(void)
{
    open_device();
    for (int i = 0; i < QN_COUNT(products); i++)
        check(&products[i]);
    close_device();
}

static void assert_refused(const Product *c, QnDtype dtype, const char *why)
{
    QnGraph *g = qn_graph_new();
    emit(g, c, dtype);
    assert_contains(clblast()->accepts(matmul_of(g), &device->env), why);
    qn_graph_free(g);
}

static void check_refusals(void)
{
    Product batch = { QN_SHAPE(2, 5, 7), QN_SHAPE(2, 7, 3), { 0 }, false, false };
    Product turned = { QN_SHAPE(2, 7, 5), QN_SHAPE(7, 3), { 0 }, true, false };
    Product column = { QN_SHAPE(5, 7), QN_SHAPE(7, 3), QN_SHAPE(5, 1), false, false };
    Product one = { QN_SHAPE(5, 7), QN_SHAPE(7, 3), QN_SHAPE(1), false, false };
    Product empty = { QN_SHAPE(5, 0), QN_SHAPE(0, 3), { 0 }, false, false };
    open_device();
    assert_refused(&products[0], QN_DTYPE_F16, "f32 only");
    assert_refused(&products[0], QN_DTYPE_BF16, "f32 only");
    assert_refused(&batch, QN_DTYPE_F32, "one product only");
    assert_refused(&turned, QN_DTYPE_F32, "one product only");
    assert_refused(&column, QN_DTYPE_F32, "one row");
    assert_refused(&one, QN_DTYPE_F32, "one row");
    assert_refused(&empty, QN_DTYPE_F32, "empty");
    close_device();
}

/* Nobody chose: device text runs. Tuning measures both, and finds both right. */
static void measure(void)
{
    QnTuneResult rows[QN_TUNE_MAX_KERNELS];
    int n = 0, right = 0;
    open_device();
    QnGraph *g = qn_graph_new();
    QnChoices *choices = qn_choices_new();
    const QnKernel *k;
    char key[QN_SELECT_KEY_BYTES];
    emit(g, &products[7], QN_DTYPE_F32);
    const QnNode *node = matmul_of(g);
    assert_ok(qn_select(device, node, NULL, &k));
    assert_string_equal(k->name, "opencl.text");
    assert_ok(qn_tune_node(device, node, choices, rows, &n));
    for (int i = 0; i < n; i++) {
        print_message("%s: %.0f ns %s\n", rows[i].kernel->name, rows[i].ns,
                      rows[i].refused ? rows[i].refused : "");
        right += !rows[i].refused && rows[i].ns > 0;
    }
    assert_int_equal(right, 2);
    const QnChoice *best = qn_choices_find(choices, qn_select_key(device, node, key));
    assert_non_null(best);
    assert_true(best->ns > 0);
    qn_choices_free(choices);
    qn_graph_free(g);
    close_device();
}
#else
static void check_products(void)
{
    skip_because("built without OpenCL or CLBlast");
}

static void check_refusals(void)
{
    skip_because("built without OpenCL or CLBlast");
}

static void measure(void)
{
    skip_because("built without OpenCL or CLBlast");
}
#endif

static void test_products(void **state)
{
    (void)state;
    check_products();
}

/* Where a device has no shared memory. */
static void test_products_of_buffers(void **state)
{
    (void)state;
    setenv("QUERN_OPENCL_SVM", "0", 1);
    check_products();
    unsetenv("QUERN_OPENCL_SVM");
}

static void test_what_it_does_not_take(void **state)
{
    (void)state;
    check_refusals();
}

static void test_it_is_measured(void **state)
{
    (void)state;
    measure();
}

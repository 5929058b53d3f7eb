/* Kernels measured against each other, and the choices that are kept. The device here is the CPU
 * with kernels planted into it. */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "io/temp.h"
#include "ops/ops.h"
#include "rt/tune.h"

#include <math.h>

/* ---- planted kernels ---- */

static QnStatus add(const QnPrepared *p, const void *const *in, void *const *out, float factor)
{
    int64_t n = qn_shape_count(&p->node->out[0].type.shape);
    const float *a = in[0], *b = in[1];
    float *y = out[0];
    for (int64_t i = 0; i < n; i++)
        y[i] = (a[i] + b[i]) * factor;
    return QN_OK;
}

static QnStatus add_right(const QnPrepared *p, const void *const *in, void *const *out, void *space)
{
    return add(p, in, out, 1);
}

static QnStatus add_slow(const QnPrepared *p, const void *const *in, void *const *out, void *space)
{
    for (int64_t until = qn_clock_ns() + 1000000; qn_clock_ns() < until;)
        continue;
    return add(p, in, out, 1);
}

static QnStatus add_wrong(const QnPrepared *p, const void *const *in, void *const *out, void *space)
{
    return add(p, in, out, 1.001f);
}

static QnStatus always_fail(const QnPrepared *p, const void *const *in, void *const *out,
                            void *space)
{
    return qn_fail(QN_EINTERNAL, "planted");
}

static QnStatus fail_to_prepare(QnPrepared *p)
{
    return qn_fail(QN_ENOMEM, "planted");
}

static const char *never(const QnNode *n, const QnKernelEnv *env)
{
    return "planted to refuse";
}

static const QnKernel right = { .name = "right", .op = &qn_op_add, .rank = 20, .run = add_right };
static const QnKernel slow = { .name = "slow", .op = &qn_op_add, .rank = 70, .run = add_slow };
static const QnKernel wrong = { .name = "wrong", .op = &qn_op_add, .rank = 60, .run = add_wrong };
static const QnKernel failing = {
    .name = "failing", .op = &qn_op_add, .rank = 50, .run = always_fail
};
static const QnKernel unready = {
    .name = "unready", .op = &qn_op_add, .rank = 40, .prepare = fail_to_prepare, .run = add_right
};
static const QnKernel refusing = {
    .name = "refusing", .op = &qn_op_add, .rank = 90, .accepts = never, .run = always_fail
};
extern const QnKernel qn_kernel_reference;

/* ---- a device of given kernels ---- */

typedef struct Bench {
    QnBackend backend;
    QnDevice *device;
    QnGraph *g;
    QnChoices *choices;
    QnTuneResult rows[QN_TUNE_MAX_KERNELS];
    int n_rows;
} Bench;

static Bench b;

static void bench_open(const QnKernel *const *kernels, int n)
{
    b = (Bench){ .backend = qn_backend_cpu };
    b.backend.kernels = kernels;
    b.backend.n_kernels = n;
    assert_ok(qn_device_open(&b.backend, &(QnDeviceOptions){ .n_threads = 1 }, &b.device));
    b.g = qn_graph_new();
    b.choices = qn_choices_new();
    assert_non_null(b.choices);
}

#define BENCH(...)                                                                                 \
    const QnKernel *const kernels_[] = { __VA_ARGS__ };                                            \
    bench_open(kernels_, QN_COUNT(kernels_))

static void bench_close(void)
{
    qn_choices_free(b.choices);
    qn_graph_free(b.g);
    qn_device_close(b.device);
}

static const QnNode *add_node(void)
{
    QnValue *x = qn_input(b.g, "x", QN_DTYPE_F32, &QN_SHAPE(16, 40));
    return qn_add(b.g, x, qn_input(b.g, "z", QN_DTYPE_F32, &QN_SHAPE(16, 40)))->node;
}

static const QnTuneResult *row(const char *kernel)
{
    for (int i = 0; i < b.n_rows; i++) {
        if (!strcmp(b.rows[i].kernel->name, kernel))
            return &b.rows[i];
    }
    fail_msg("no row of kernel %s", kernel);
    return NULL;
}

static const char *refusal(const char *kernel)
{
    const char *why = row(kernel)->refused;
    return why ? why : "none";
}

static const QnChoice *choice_of(const QnNode *n)
{
    char key[QN_SELECT_KEY_BYTES];
    return qn_choices_find(b.choices, qn_select_key(b.device, n, key));
}

static void tune(const QnNode *n)
{
    assert_ok(qn_tune_node(b.device, n, b.choices, b.rows, &b.n_rows));
}

/* ---- choosing ---- */

static void test_fastest_right_kernel_wins(void **state)
{
    BENCH(&qn_kernel_reference, &wrong, &slow, &right, &failing, &unready, &refusing);
    const QnNode *n = add_node();
    tune(n);
    assert_int_equal(b.n_rows, 6); /* the refusing one never ran */
    assert_string_equal(refusal("wrong"), "its result is wrong");
    assert_true(fabs(row("wrong")->error - 1e-3) < 1e-5);
    assert_string_equal(refusal("failing"), "it failed");
    assert_string_equal(refusal("unready"), "it failed");
    assert_contains(refusal("reference"), "nothing else can");
    assert_string_equal(refusal("slow"), "none");
    assert_true(row("slow")->ns >= 1e6);
    assert_true(row("right")->ns > 0 && row("right")->ns < row("slow")->ns);
    assert_string_equal(choice_of(n)->kernel, "right");
    assert_true(choice_of(n)->ns == row("right")->ns);
    bench_close();
}

static void test_slow_and_right_beats_fast_and_wrong(void **state)
{
    BENCH(&wrong, &slow, &failing, &qn_kernel_reference);
    const QnNode *n = add_node();
    tune(n);
    assert_string_equal(choice_of(n)->kernel, "slow");
    bench_close();
}

static void test_no_choice_where_every_kernel_is_wrong(void **state)
{
    BENCH(&wrong, &failing, &qn_kernel_reference);
    const QnNode *n = add_node();
    tune(n);
    assert_null(choice_of(n));
    bench_close();
}

static void test_one_kernel_is_not_timed(void **state)
{
    BENCH(&right, &qn_kernel_reference, &refusing);
    const QnNode *n = add_node();
    tune(n);
    assert_int_equal(b.n_rows, 0);
    assert_null(choice_of(n));
    bench_close();
}

/* ---- nodes that the reference is slow on ---- */

enum { SIDE = 300 }; /* 5.4e7 FLOP */

static QnStatus multiply(const void *const *in, void *const *out, float first)
{
    const float *a = in[0], *w = in[1];
    float *y = out[0];
    memset(y, 0, sizeof *y * SIDE * SIDE);
    for (int i = 0; i < SIDE; i++) {
        for (int k = 0; k < SIDE; k++) {
            for (int j = 0; j < SIDE; j++)
                y[i * SIDE + j] += a[i * SIDE + k] * w[k * SIDE + j];
        }
    }
    y[0] *= first;
    return QN_OK;
}

static QnStatus matmul_right(const QnPrepared *p, const void *const *in, void *const *out, void *s)
{
    return multiply(in, out, 1);
}

static QnStatus matmul_wrong(const QnPrepared *p, const void *const *in, void *const *out, void *s)
{
    return multiply(in, out, 1.005f);
}

static const QnKernel product = {
    .name = "product", .op = &qn_op_matmul, .rank = 50, .run = matmul_right
};
static const QnKernel again = {
    .name = "again", .op = &qn_op_matmul, .rank = 60, .run = matmul_right
};
static const QnKernel off = { .name = "off", .op = &qn_op_matmul, .rank = 10, .run = matmul_wrong };

static const QnNode *matmul_node(void)
{
    QnValue *x = qn_input(b.g, "x", QN_DTYPE_F32, &QN_SHAPE(SIDE, SIDE));
    QnValue *w = qn_input(b.g, "w", QN_DTYPE_F32, &QN_SHAPE(SIDE, SIDE));
    return qn_matmul(b.g, x, w, NULL, false, false)->node;
}

static void test_large_nodes_hold_kernels_against_each_other(void **state)
{
    BENCH(&product, &again, &qn_kernel_reference);
    const QnNode *n = matmul_node();
    tune(n);
    assert_contains(refusal("reference"), "too slow");
    assert_string_equal(refusal("product"), "none");
    assert_string_equal(refusal("again"), "none");
    assert_non_null(choice_of(n));
    bench_close();
}

/* One element half a percent off, in the kernel that the others are first held against. */
static void test_reference_settles_disagreement_on_large_nodes(void **state)
{
    BENCH(&off, &product, &qn_kernel_reference);
    const QnNode *n = matmul_node();
    tune(n);
    assert_string_equal(refusal("off"), "its result is wrong");
    assert_string_equal(refusal("product"), "none");
    assert_string_equal(choice_of(n)->kernel, "product");
    bench_close();
}

/* ---- integer operands ---- */

/* Fails unless the indices stay below the axis and are not all the same. */
static QnStatus gather_rows(const QnPrepared *p, const void *const *in, void *const *out, void *s)
{
    const QnType *x = &p->node->in[0]->type, *i = &p->node->in[1]->type;
    const int64_t *index = in[1];
    int64_t width = x->shape.dim[1], most = 0;
    for (int64_t k = 0; k < qn_shape_count(&i->shape); k++) {
        if (index[k] < 0 || index[k] >= x->shape.dim[0])
            return qn_fail(QN_EARG, "index %lld", (long long)index[k]);
        most = QN_MAX(most, index[k]);
        memcpy((float *)out[0] + k * width, (const float *)in[0] + index[k] * width,
               (size_t)width * sizeof(float));
    }
    return most > 0 ? QN_OK : qn_fail(QN_EARG, "all indices are 0");
}

static const QnKernel rows_a = { .name = "a", .op = &qn_op_gather, .rank = 50, .run = gather_rows };
static const QnKernel rows_b = { .name = "b", .op = &qn_op_gather, .rank = 60, .run = gather_rows };

static void test_indices_are_in_range_and_differ(void **state)
{
    BENCH(&rows_a, &rows_b, &qn_kernel_reference);
    QnValue *x = qn_input(b.g, "x", QN_DTYPE_F32, &QN_SHAPE(3, 40));
    QnValue *i = qn_input(b.g, "i", QN_DTYPE_I64, &QN_SHAPE(50));
    const QnNode *n = qn_gather(b.g, x, i, 0)->node;
    tune(n);
    assert_string_equal(refusal("a"), "none");
    assert_string_equal(refusal("b"), "none");
    bench_close();
}

/* The library's kernels and Quern's own find each other right. */
static void test_kernels_of_two_origins_agree(void **state)
{
#ifndef QN_HAVE_ONEDNN
    skip_because("built without oneDNN");
#else
    bench_open(qn_backend_cpu.kernels, qn_backend_cpu.n_kernels);
    QnValue *a = qn_input(b.g, "a", QN_DTYPE_F32, &QN_SHAPE(100, 120));
    QnValue *w = qn_input(b.g, "w", QN_DTYPE_F32, &QN_SHAPE(120, 90));
    QnValue *large = qn_input(b.g, "large", QN_DTYPE_F32, &QN_SHAPE(400, 500));
    QnValue *x = qn_input(b.g, "x", QN_DTYPE_F32, &QN_SHAPE(2, 8, 12, 12));
    QnValue *k = qn_input(b.g, "k", QN_DTYPE_F32, &QN_SHAPE(16, 8, 3, 3));
    QnValue *const values[] = { qn_matmul(b.g, a, w, NULL, false, false),
                                qn_matmul(b.g, large, large, NULL, true, false),
                                qn_conv(b.g, x, k, NULL, &(QnConvAttr){ .groups = 1 }) };
    for (int i = 0; i < QN_COUNT(values); i++) {
        tune(values[i]->node);
        assert_true(b.n_rows >= 3);
        for (int r = 0; r < b.n_rows; r++) {
            if (b.rows[r].kernel->rank > 0 && b.rows[r].refused)
                fail_msg("%s: %s (error %g)", b.rows[r].kernel->name, b.rows[r].refused,
                         b.rows[r].error);
        }
        assert_non_null(choice_of(values[i]->node));
    }
    bench_close();
#endif
}

/* ---- choices ---- */

static void test_set_replaces(void **state)
{
    QnChoices *c = qn_choices_new();
    assert_ok(qn_choices_set(c, "m", "one", 1));
    assert_ok(qn_choices_set(c, "z", "two", 2));
    assert_ok(qn_choices_set(c, "a", "three", 3));
    assert_ok(qn_choices_set(c, "m", "four", 4));
    assert_int_equal(c->n, 3);
    assert_string_equal(qn_choices_find(c, "m")->kernel, "four");
    assert_true(qn_choices_find(c, "m")->ns == 4);
    assert_string_equal(qn_choices_find(c, "a")->kernel, "three");
    assert_null(qn_choices_find(c, "b"));
    qn_choices_free(c);
}

static void test_file_round_trip(void **state)
{
    const char *path = temp_path("kernels.json");
    QnChoices *c, *back;
    assert_ok(qn_choices_read(path, &c)); /* missing: no choices */
    assert_int_equal(c->n, 0);
    for (int i = 0; i < 50; i++) {
        char key[80];
        snprintf(key, sizeof key, "op.1 \"%d\" v4/2 f32[%d]->f32", i * 7 % 50, i);
        assert_ok(qn_choices_set(c, key, i % 2 ? "onednn.conv" : "cpu.conv.gather", i + 0.125));
    }
    assert_ok(qn_choices_write(c, path));
    assert_ok(qn_choices_read(path, &back));
    assert_int_equal(back->n, c->n);
    for (int64_t i = 0; i < c->n; i++) {
        assert_string_equal(back->items[i].key, c->items[i].key);
        assert_string_equal(back->items[i].kernel, c->items[i].kernel);
        assert_true(back->items[i].ns == c->items[i].ns);
    }
    qn_choices_free(back);
    qn_choices_free(c);
}

static void test_damaged_files_are_refused_by_name(void **state)
{
    static const char *const texts[] = { "",
                                         "{",
                                         "[]",
                                         "{\"k\": 3}",
                                         "{\"k\": {\"kernel\": \"a\"}}",
                                         "{\"k\": {\"kernel\": 1, \"ns\": 1}}",
                                         "{\"k\": {\"kernel\": \"a\", \"ns\": \"fast\"}}",
                                         "{\"k\": {\"kernel\": \"a\", \"ns\": 1}} more" };
    for (int i = 0; i < QN_COUNT(texts); i++) {
        QnChoices *c = NULL;
        const char *path = temp_file("damaged.json", texts[i], strlen(texts[i]));
        assert_fails(qn_choices_read(path, &c), QN_EFORMAT, "damaged.json");
        assert_null(c);
    }
}

/* ---- selection ---- */

static const QnKernel *selected(const QnNode *n)
{
    const QnKernel *k = NULL;
    assert_ok(qn_select(b.device, n, b.choices, &k));
    return k;
}

static void test_select_follows_a_choice(void **state)
{
    BENCH(&slow, &right, &qn_kernel_reference);
    const QnNode *n = add_node();
    char key[QN_SELECT_KEY_BYTES];
    assert_ptr_equal(selected(n), &slow); /* the highest rank */
    assert_ok(qn_choices_set(b.choices, qn_select_key(b.device, n, key), "right", 5));
    assert_ptr_equal(selected(n), &right);
    QnValue *x = qn_input(b.g, "other", QN_DTYPE_F32, &QN_SHAPE(8));
    assert_ptr_equal(selected(qn_add(b.g, x, x)->node), &slow); /* another shape, another key */
    bench_close();
}

static void test_select_falls_back(void **state)
{
    BENCH(&right, &refusing, &qn_kernel_reference);
    const QnNode *n = add_node();
    char key[QN_SELECT_KEY_BYTES];
    qn_select_key(b.device, n, key);
    assert_ok(qn_choices_set(b.choices, key, "refusing", 5));
    assert_ptr_equal(selected(n), &right);
    assert_ok(qn_choices_set(b.choices, key, "gone", 5));
    assert_ptr_equal(selected(n), &right);
    bench_close();
}

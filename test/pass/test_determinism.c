/* Under `strict` the same graph gives the same bits on 1, 2 and 3 threads; and on one device a run
 * repeats bit for bit.
 * labels: threads */
#include "random_run.h"

static QnDevice *device[3];

static int group_setup(void **state)
{
    for (int i = 0; i < 3; i++) {
        QnDeviceOptions o = { .n_threads = i + 1, .strict = true };
        if (qn_device_open(&qn_backend_cpu, &o, &device[i]) != QN_OK)
            return 1;
    }
    return 0;
}

static int group_teardown(void **state)
{
    for (int i = 0; i < 3; i++)
        qn_device_close(device[i]);
    return 0;
}

static void assert_same_bits(const Case *c, const Run *a, const Run *b)
{
    char name[40];
    QnValue *v;
    for (int i = 0; (v = target(c->g, i, name)); i++) {
        int64_t n = qn_shape_count(&v->type.shape);
        double *x = qn_alloc_array((size_t)n + 1, sizeof *x);
        double *y = qn_alloc_array((size_t)n + 1, sizeof *y);
        assert_true(read_target(c, a, i, x, n) && read_target(c, b, i, y, n));
        if (memcmp(x, y, (size_t)n * sizeof *x))
            fail_msg("seed %llu: %s differs", (unsigned long long)c->seed, name);
        qn_free(x);
        qn_free(y);
    }
}

static Config config(int threads)
{
    QnDevice *d = device[threads - 1];
    return (Config){ .device = d,
                     .optimise = true,
                     .o = { .level = QN_O2,
                            .keep = has_kernel,
                            .keep_ctx = d,
                            .prefers = qn_device_prefers,
                            .tuned = qn_device_is_tuned,
                            .tuned_ctx = d } };
}

static void compare_threads(const Case *c)
{
    Run one = { 0 }, more = { 0 };
    Config k = config(1);
    assert_ok(run(c, &k, &one));
    for (int threads = 2; threads <= 3; threads++) {
        k = config(threads);
        assert_ok(run(c, &k, &more));
        assert_same_bits(c, &one, &more);
        run_free(&more);
        more = (Run){ 0 };
    }
    assert_ok(run(c, &(Config){ .device = device[0], .optimise = true, .o = config(1).o }, &more));
    assert_same_bits(c, &one, &more);
    run_free(&one);
    run_free(&more);
}

static void test_random_graphs(void **state)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        Case *c = case_new(seed * 13);
        compare_threads(c);
        case_free(c);
    }
}

static QnValue *leaf(Case *c, int rank, const int64_t *dim, bool parameter)
{
    Leaf *l = &c->leaf[c->n_leaf];
    QnShape s = qn_shape_make(rank, dim);
    *l = (Leaf){ .n = qn_shape_count(&s), .dtype = QN_DTYPE_F32 };
    l->values = qn_alloc_array((size_t)l->n, sizeof *l->values);
    snprintf(l->name, sizeof l->name, "v%d", c->n_leaf++);
    for (int64_t i = 0; i < l->n; i++)
        l->values[i] = (double)(float)uniform(c, -0.1, 0.1);
    QnStateAttr attr = { .name = l->name, .dims = { s.rank, { 0 } } };
    memcpy(attr.dims.d, s.dim, sizeof attr.dims.d);
    return parameter ? qn_state(c->g, &attr) : qn_input(c->g, l->name, QN_DTYPE_F32, &s);
}

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / 8), (int64_t[])                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Large enough that every kernel splits its work: convolution, pooling, products, reductions,
 * softmax, and an update of each parameter. */
static void test_training_step(void **state)
{
    Case *c = calloc(1, sizeof *c);
    QnGraph *g = c->g = qn_graph_new();
    QnValue *x = leaf(c, DIMS(16, 3, 24, 24), false), *dw[4], *w[4];
    w[0] = leaf(c, DIMS(16, 3, 3, 3), true);
    w[1] = leaf(c, DIMS(16, 1, 1), true);
    w[2] = leaf(c, DIMS(16 * 11 * 11, 200), true);
    w[3] = leaf(c, DIMS(200), true);
    QnValue *h =
        qn_gelu(g, qn_add(g, qn_conv(g, x, w[0], NULL, &(QnConvAttr){ .groups = 1 }), w[1]));
    h = qn_avg_pool(g, h, &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } });
    h = qn_reshape(g, h, &QN_SHAPE(16, 16 * 11 * 11));
    QnValue *y = qn_softmax(g, qn_add(g, qn_matmul(g, h, w[2], NULL, false, false), w[3]), 1);
    QnValue *loss = qn_sum(g, qn_mul(g, y, y), QN_ALL_AXES, false);
    assert_ok(qn_grad(g, loss, w, 4, dw));
    for (int i = 0; i < 4; i++)
        qn_assign(g, w[i], qn_sub(g, w[i], qn_mul(g, dw[i], qn_scalar_like(g, dw[i], 0.1))));
    assert_ok(qn_graph_output(g, "loss", loss));
    assert_ok(qn_graph_output(g, "y", y));
    assert_ok(qn_graph_verify(g));
    compare_threads(c);
    case_free(c);
}

/* States that become constants: which ones, what they hold, what is refused, and that a refusal
 * or a failed allocation leaves the graph sound. labels: rt */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "base/fault.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan_impl.h"
#include "rt/store.h"

#include <string.h>

enum { X = 2 * 32 * 14 * 14, W = 48 * 32 * 3 * 3, Y = 2 * 48 * 14 * 14 };

/* y = conv(x, w) + count, and count counts runs: of two states one is written. */
static QnGraph *graph(bool counts)
{
    QnGraph *g = qn_graph_new();
    if (!g)
        return NULL;
    QnConvAttr same = { .pads = QN_INTS(1, 1, 1, 1) };
    QnStateAttr w = {
        .name = "w", .dims = { 4, { 48, 32, 3, 3 } }, .init = QN_INIT_NORMAL, .b = 0.1
    };
    QnStateAttr count = { .name = "count", .dims = { 0 }, .init = QN_INIT_CONSTANT, .a = 7 };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, 32, 14, 14));
    QnValue *n = qn_state(g, &count);
    QnValue *y = qn_add(g, qn_conv(g, x, qn_state(g, &w), NULL, &same), n);
    if (counts)
        qn_assign(g, n, qn_add_scalar(g, n, 1));
    if (qn_graph_check(g) == QN_OK && qn_graph_output(g, "y", y) == QN_OK)
        return g;
    qn_graph_free(g);
    return NULL;
}

static int count_of(const QnGraph *g, const QnOp *op)
{
    int n = 0;
    QN_GRAPH_EACH(g, node)
    n += node->op == op;
    return n;
}

static QnStatus filled_store(QnDevice *d, const QnGraph *g, QnStore **out)
{
    QnStore *s = qn_store_new(d);
    QnStatus st = s ? qn_store_add(s, g) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_store_alloc(s);
    if (st == QN_OK)
        st = qn_store_fill(s, 3);
    if (st == QN_OK)
        *out = s;
    else
        qn_store_free(s);
    return st;
}

/* What a plan does with weights. Which kernel runs depends on the machine, and not
 * all pack. */
typedef struct Packing {
    int64_t packed_bytes, constant_bytes;
} Packing;

static QnStatus run_twice(QnGraph *g, QnDevice *d, QnStore *s, float y[2][Y], Packing *packing)
{
    static float x[X];
    QnPipelineOptions o = qn_device_passes(d);
    QnPlan *p;
    for (int i = 0; i < X; i++)
        x[i] = (float)(i % 13) / 13 - 0.5f;
    o.level = QN_O2;
    QN_TRY(qn_pipeline_run(g, &o));
    QN_TRY(qn_plan_new(g, d, s, NULL, &p));
    QnStatus st = QN_OK;
    for (int i = 0; st == QN_OK && i < 2; i++) {
        st = qn_plan_write(p, "x", x, sizeof x);
        if (st == QN_OK)
            st = qn_plan_run(p);
        if (st == QN_OK)
            st = qn_plan_read(p, "y", y[i], sizeof y[i]);
    }
    *packing = (Packing){ .constant_bytes = qn_plan_memory(p).constant_bytes };
    for (int64_t i = 0; i < p->n_steps; i++)
        packing->packed_bytes += (int64_t)p->steps[i].prepared.packed_bytes;
    qn_plan_free(p);
    return st;
}

static void assert_near(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        assert_float_equal(a[i], b[i], 1e-4);
}

static void check_states_that_stay(const QnBackend *backend)
{
    static float want[2][Y], got[2][Y];
    QnDevice *d;
    QnStore *s = NULL;
    Packing packing;
    assert_ok(qn_device_open(backend, &(QnDeviceOptions){ .n_threads = 1 }, &d));
    for (int frozen = 0; frozen < 2; frozen++) {
        QnGraph *g = graph(true);
        assert_ok(filled_store(d, g, &s));
        if (frozen) {
            assert_ok(qn_graph_freeze(g, s));
            assert_ok(qn_graph_verify(g));
            assert_int_equal(count_of(g, &qn_op_state), 1); /* the one that is written */
            assert_int_equal(count_of(g, &qn_op_constant), 1);
        }
        assert_ok(run_twice(g, d, s, frozen ? got : want, &packing));
        qn_store_free(s);
        qn_graph_free(g);
    }
    assert_near(want[0], got[0], Y);
    assert_near(want[1], got[1], Y);
    assert_float_equal(got[1][0] - got[0][0], 1, 1e-4); /* it counts on */
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

static void test_states_that_are_written_stay(void **state)
{
    (void)state;
    check_states_that_stay(&qn_backend_cpu);
}

/* Where the host cannot read the device's memory, the store keeps a copy. */
static void test_memory_that_the_host_cannot_read(void **state)
{
    QnBackend far = qn_backend_cpu;
    (void)state;
    far.is_host = false;
    check_states_that_stay(&far);
}

static void test_weights_are_packed_and_the_store_is_given_back(void **state)
{
    static float want[2][Y], got[2][Y];
    QnDevice *d;
    QnStore *s = NULL;
    Packing packing;
    (void)state;
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 1 }, &d));
    QnGraph *g = graph(false);
    assert_ok(filled_store(d, g, &s));
    assert_ok(run_twice(g, d, s, want, &packing));
    assert_int_equal(packing.packed_bytes, 0);
    qn_graph_free(g);

    g = graph(false);
    assert_ok(qn_graph_freeze(g, s));
    assert_int_equal(count_of(g, &qn_op_state), 0);
    assert_ok(run_twice(g, d, NULL, got, &packing));
    qn_graph_free(g);
    assert_near(want[0], got[0], Y);
#if defined(QN_HAVE_ONEDNN) && defined(__x86_64__)
    assert_true(packing.packed_bytes >= W * 4);
#endif
    assert_true(packing.constant_bytes >= W * 4); /* once, as packed or as it is */
    assert_true(packing.constant_bytes < 2 * W * 4);

    qn_store_release(s);
    assert_int_equal(d->now_bytes, 0);
    assert_fails(qn_store_read(s, qn_store_find(s, "w"), got), QN_EARG, "not allocated");
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_store_read(s, qn_store_find(s, "w"), got));
    assert_float_equal(got[0][0], 0, 0);
    qn_store_free(s);
    qn_device_close(d);
}

/* The graph is as it was. */
static void assert_untouched(QnGraph *g)
{
    assert_ok(qn_graph_verify(g));
    assert_int_equal(count_of(g, &qn_op_state), 2);
    assert_int_equal(count_of(g, &qn_op_constant), 0);
}

static void test_states_without_content(void **state)
{
    QnDevice *d, *null;
    QnStore *s = NULL;
    QnGraph *g = graph(false), *other = qn_graph_new();
    QnStateAttr w = { .name = "w", .dims = { 1, { 3 } } };
    (void)state;
    assert_ok(qn_device_open(&qn_backend_cpu, NULL, &d));
    assert_ok(qn_device_open(&qn_backend_null, NULL, &null));
    assert_fails(qn_graph_freeze(g, NULL), QN_ENOTFOUND, "'count' has no value");
    assert_untouched(g);

    QnStore *empty = qn_store_new(d);
    assert_fails(qn_graph_freeze(g, empty), QN_ENOTFOUND, "'count' has no value");
    assert_ok(qn_store_add(empty, g));
    assert_fails(qn_graph_freeze(g, empty), QN_EARG, "not allocated");
    assert_untouched(g);
    qn_store_free(empty);

    qn_state(other, &w);
    assert_ok(filled_store(d, other, &s));
    assert_fails(qn_graph_freeze(g, s), QN_ENOTFOUND, "'count' has no value");
    qn_store_free(s);
    assert_untouched(g);

    assert_ok(filled_store(d, g, &s));
    assert_fails(qn_graph_freeze(other, s), QN_ESHAPE, "'w' is f32[3] in the graph");
    qn_store_free(s);

    assert_ok(filled_store(null, g, &s));
    assert_fails(qn_graph_freeze(g, s), QN_EUNSUPPORTED, "only counts");
    qn_store_free(s);
    assert_untouched(g);

    qn_graph_free(g);
    qn_graph_free(other);
    qn_device_close(d);
    qn_device_close(null);
}

static QnStatus all_of_it(QnDevice *d)
{
    static float y[2][Y];
    QnGraph *g = graph(false);
    QnStore *s = NULL;
    Packing packing;
    QnStatus st = g ? filled_store(d, g, &s) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_graph_freeze(g, s);
    if (st == QN_OK)
        st = run_twice(g, d, NULL, y, &packing);
    qn_graph_free(g);
    qn_store_free(s);
    return st;
}

static void test_every_allocation_may_fail(void **state)
{
    QnBackend far = qn_backend_cpu;
    QnDevice *d;
    bool done = false;
    (void)state;
    far.is_host = false;
    assert_ok(qn_device_open(&far, &(QnDeviceOptions){ .n_threads = 1 }, &d));
    for (int64_t n = 1; !done; n++) {
        qn_fault_arm(n);
        QnStatus st = all_of_it(d);
        done = qn_fault_events() < n;
        qn_fault_arm(0);
        assert_true(done || st == QN_ENOMEM);
        assert_int_equal(d->now_bytes, 0);
    }
    qn_device_close(d);
}

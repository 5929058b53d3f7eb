/* How states start: the same numbers whatever draws them. */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "base/hash.h"
#include "base/rng.h"
#include "ops/ops.h"
#include "rt/store.h"

#include <math.h>

enum { N = 10007 }; /* over several parts, and the last one is short */

static QnStore *store_of(QnDevice *d, const QnStateAttr *a)
{
    QnGraph *g = qn_graph_new();
    QnStore *s = qn_store_new(d);
    qn_state(g, a);
    assert_ok(qn_graph_check(g));
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    qn_graph_free(g);
    return s;
}

/* Calls in the wrong order are refused. */
static void test_before_alloc(void **state)
{
    QnDevice *d;
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 1 }, &d));
    QnGraph *g = qn_graph_new();
    QnStore *s = qn_store_new(d);
    QnStateAttr a = { .name = "w", .dtype = QN_DTYPE_F32, .init = QN_INIT_NORMAL, .b = 1 };
    QnValue *w = qn_state(g, &a);
    assert_ok(qn_store_fill(s, 7)); /* nothing to fill */
    assert_ok(qn_store_add(s, g));
    assert_fails(qn_store_fill(s, 7), QN_EARG, "call qn_store_alloc");
    assert_null(qn_store_at(s, 1));
    assert_null(qn_store_at(s, -1));
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_store_fill(s, 7));
    assert_fails(qn_graph_output(g, NULL, w), QN_EARG, "needs a name");
    qn_graph_free(g);
    qn_store_free(s);
    qn_device_close(d);
}

static void filled(const QnStateAttr *a, int n_threads, float *x)
{
    QnDevice *d;
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = n_threads }, &d));
    QnStore *s = store_of(d, a);
    float *memory = qn_store_ptr(s, qn_store_at(s, 0));
    for (int i = 0; i < N; i++)
        memory[i] = NAN;
    assert_ok(qn_store_fill(s, 7));
    assert_ok(qn_store_read(s, qn_store_at(s, 0), x));
    qn_store_free(s);
    qn_device_close(d);
}

/* One element after the other, from the sequence of the state's name. */
static float drawn(const QnStateAttr *a, QnRng *rng)
{
    float z;
    switch ((QnInit)a->init) {
    case QN_INIT_ZEROS: return 0;
    case QN_INIT_CONSTANT: return (float)a->a;
    case QN_INIT_UNIFORM: return (float)(a->a + (a->b - a->a) * qn_rng_uniform(rng));
    case QN_INIT_NORMAL: return (float)(a->a + a->b * qn_rng_normal(rng));
    case QN_INIT_TRUNC_NORMAL: break;
    }
    do
        z = qn_rng_normal(rng);
    while (fabsf(z) > 2);
    return (float)(a->a + a->b * z);
}

static void test_threads_draw_one_sequence(void **state)
{
    static const QnInit kinds[] = { QN_INIT_ZEROS, QN_INIT_CONSTANT, QN_INIT_UNIFORM,
                                    QN_INIT_NORMAL, QN_INIT_TRUNC_NORMAL };
    static float x[N];
    (void)state;
    for (int k = 0; k < QN_COUNT(kinds); k++) {
        QnStateAttr a = { .name = "layer.weight",
                          .dims = { 1, { N } },
                          .init = (int)kinds[k],
                          .a = -0.25,
                          .b = 0.75 };
        for (int threads = 1; threads <= 3; threads++) {
            QnRng rng;
            qn_rng_init(&rng, 7, qn_hash_str(a.name));
            filled(&a, threads, x);
            for (int i = 0; i < N; i++) {
                if (x[i] != drawn(&a, &rng))
                    fail_msg("init %d, %d threads: element %d is %g", a.init, threads, i,
                             (double)x[i]);
            }
        }
    }
}

static void test_averages_start_as_what_they_average(void **state)
{
    static float x[N], ema[N];
    QnStateAttr a = { .name = "w", .dims = { 1, { N } }, .init = QN_INIT_NORMAL, .b = 1 };
    (void)state;
    filled(&a, 2, x);
    a.name = "ema.w";
    filled(&a, 2, ema);
    assert_memory_equal(x, ema, sizeof x);
    a.name = "v";
    filled(&a, 2, ema);
    assert_memory_not_equal(x, ema, sizeof x);
}

static void test_narrow_states_round(void **state)
{
    QnStateAttr a = {
        .name = "w", .dtype = QN_DTYPE_BF16, .dims = { 1, { N } }, .init = QN_INIT_NORMAL, .b = 1
    };
    static uint16_t x[N];
    QnDevice *d;
    QnRng rng;
    (void)state;
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 2 }, &d));
    QnStore *s = store_of(d, &a);
    assert_ok(qn_store_fill(s, 7));
    assert_ok(qn_store_read(s, qn_store_at(s, 0), x));
    qn_rng_init(&rng, 7, qn_hash_str(a.name));
    for (int i = 0; i < N; i++) {
        uint16_t want;
        float z = drawn(&a, &rng);
        qn_dtype_from_f32(QN_DTYPE_BF16, &z, &want, 1);
        assert_int_equal(x[i], want);
    }
    qn_store_free(s);
    qn_device_close(d);
}

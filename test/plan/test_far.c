/* The price of plans that lie in memory of the host: OpenCL's where there is a device, and the
 * arithmetic on the CPU as a backend with far memory of its own. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "plan/far.h"

#include <math.h>

static void *alloc_far(QnDevice *d, size_t bytes)
{
    return bytes > 1 << 20 ? NULL : d->backend->alloc(d, bytes);
}

static void free_far(QnDevice *d, void *p, size_t bytes)
{
    d->backend->free(d, p, bytes);
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.12g, expected %.12g", got, want);
}

enum { N = 1000, BYTES = 4 * N };

/* y = exp(x), z = tanh(y): x, y, z and one of them over another, by what the planner does. */
static QnPlan *plan_on(QnDevice *d, QnGraph **g)
{
    QnPlan *p;
    *g = qn_graph_new();
    QnValue *x = qn_input(*g, "x", QN_DTYPE_F32, &QN_SHAPE(N));
    QnValue *y = qn_exp(*g, x);
    assert_ok(qn_graph_output(*g, "y", y));
    assert_ok(qn_graph_output(*g, "z", qn_tanh(*g, y)));
    assert_ok(qn_graph_check(*g));
    assert_ok(qn_plan_new(*g, d, NULL, NULL, &p));
    return p;
}

static QnDevice *open_cpu(QnBackend *b, int64_t memory_bytes)
{
    QnDevice *d;
    *b = qn_backend_cpu;
    b->alloc_far = alloc_far;
    b->free_far = free_far;
    assert_ok(
        qn_device_open(b, &(QnDeviceOptions){ .n_threads = 1, .memory_bytes = memory_bytes }, &d));
    return d;
}

static const QnDeviceRates rates = { .copy = 1e6, .to = 1e5, .from = 1e5 };

static void test_traffic_and_price(void **state)
{
    QnBackend b;
    QnGraph *g;
    QnDevice *d = open_cpu(&b, BYTES);
    QnPlan *p = plan_on(d, &g);
    /* read x, write y, read y, write z */
    assert_int_equal(qn_plan_far_traffic(p), 4 * BYTES);
    assert_true(d->far_bytes >= 2 * BYTES);
    QnFarRun runs[] = { { p, 3 }, { NULL, 1 } };
    QnDeviceInfo info = { .far = "memory of the host" };
    QnFarPrice f = qn_far_price(runs, 2, d, &info, &rates);
    assert_near(f.bus_bytes, 3 * 4 * BYTES);
    assert_near(f.bus_s, 3 * 4 * BYTES / 1e5);
    assert_near(f.step_s, 3 * 4 * BYTES / 1e6);
    assert_near(f.factor, 11);
    assert_near(f.has_bytes, BYTES);
    assert_near(f.out_bytes, (double)d->far_bytes);
    /* of pages that move, only those that have no place go out and come back */
    info.far_moves = true;
    f = qn_far_price(runs, 2, d, &info, &rates);
    double out = (double)d->now_bytes - BYTES;
    assert_near(f.out_bytes, out);
    assert_near(f.bus_bytes, 3 * fmin(4 * BYTES, 2 * out));
    assert_near(f.batch_share, BYTES / (double)d->now_bytes);
    qn_plan_free(p);
    qn_graph_free(g);
    assert_int_equal(d->far_bytes, 0);
    qn_device_close(d);
}

static void test_nothing_is_far(void **state)
{
    QnBackend b;
    QnGraph *g;
    QnDevice *d = open_cpu(&b, 1 << 20);
    QnPlan *p = plan_on(d, &g);
    assert_int_equal(qn_plan_far_traffic(p), 0);
    QnFarPrice f = qn_far_price(&(QnFarRun){ p, 1 }, 1, d, &(QnDeviceInfo){ 0 }, &rates);
    assert_true(f.far_bytes == 0 && f.bus_bytes == 0 && f.factor == 1 && f.batch_share == 1);
    qn_plan_free(p);
    qn_graph_free(g);
    qn_device_close(d);
}

static void test_neither_has_room(void **state)
{
    QnBackend b;
    QnDevice *d = open_cpu(&b, 1000);
    assert_null(qn_device_alloc(d, 2 << 20));
    assert_int_equal(qn_error_last()->code, QN_ENOMEM);
    assert_contains(qn_error_last()->text,
                    "1000 bytes of the device may be used (--device-memory)");
    void *p = qn_device_alloc(d, 1001); /* and the next best is still taken */
    assert_true(qn_device_is_far(d, p));
    qn_device_free(d, p, 1001);
    b.alloc_far = NULL;
    assert_null(qn_device_alloc(d, 1001));
    assert_contains(qn_error_last()->text, "cpu: cannot allocate 1001 bytes");
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

static void test_measured_rates(void **state)
{
    QnDevice *d;
    QnDeviceRates r;
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .memory_bytes = 1 << 20 }, &d));
    assert_ok(qn_device_measure(d, &r));
    assert_true(r.copy > 1e8 && r.to > 1e8 && r.from > 1e8 && r.multiply > 1e7);
    assert_contains(r.multiplies, "matmul");
    assert_int_equal(d->now_bytes, 0);
    assert_int_equal(d->peak_bytes, 0);
    assert_int_equal(d->limit_bytes, 1 << 20);
    qn_device_close(d);
}

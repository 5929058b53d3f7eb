/* Whatever call of the driver fails, in opening, planning, training or reading: an error with
 * words, or a run that did without; and nothing is left. */
#include "cuda/device.h"

#include "backend/small_net.h"
#include "base/fault.h"
#include "ops/ops.h"

static bool have;

static int group_setup(void **state)
{
    have = cuda_setup();
    return 0;
}

/* w -= 0.1 * mean over rows of x'x + w, by a library's kernel and device text. */
static QnGraph *small_step(void)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(8, 3));
    QnValue *w = qn_state(g, &(QnStateAttr){ .name = "w", .dims = { 1, { 3 } } });
    QnValue *rate = qn_full(g, 0.1, QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *y = qn_matmul(g, x, x, w, true, false);
    QnValue *d = qn_mul(g, qn_mean(g, y, QN_INTS(0), false), rate);
    qn_assign(g, w, qn_sub(g, w, d));
    assert_ok(qn_graph_check(g));
    assert_ok(qn_pipeline_run(g, &(QnPipelineOptions){ .level = QN_O2 }));
    return g;
}

static QnStatus run_plan(QnDevice *d, QnStore *s, QnPlan *p)
{
    float x[24] = { 1 }, w[3];
    for (int i = 0; i < 3; i++) {
        QN_TRY(qn_plan_write(p, "x", x, sizeof x));
        QN_TRY(qn_plan_run(p));
    }
    QN_TRY(d->backend->sync(d));
    return qn_store_read(s, qn_store_find(s, "w"), w);
}

static QnStatus train_all(QnGraph *g, bool *captured)
{
    QnDevice *d = NULL;
    QnPlan *p = NULL;
    QnStore *s = NULL;
    QnStatus st = qn_device_open_named("cuda:0", NULL, &d);
    if (st != QN_OK)
        return st;
    s = qn_store_new(d);
    st = s ? qn_store_add(s, g) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_store_alloc(s);
    if (st == QN_OK)
        st = qn_store_fill(s, 1);
    if (st == QN_OK)
        st = qn_plan_new(g, d, s, NULL, &p);
    if (st == QN_OK)
        st = run_plan(d, s, p);
    *captured = p && qn_plan_is_captured(p, NULL);
    qn_plan_free(p);
    qn_store_free(s);
    qn_device_close(d);
    return st;
}

/* With an empty cache every time, so that NVRTC's calls are among them. */
static void fail_each(int error, QnStatus status)
{
    QnGraph *g = small_step();
    int failed = 0, without = 0;
    bool done = false, captured;
    for (int n = 1; !done; n++) {
        char folder[64], when[64];
        snprintf(folder, sizeof folder, "cache-%d-%d", error, n);
        snprintf(when, sizeof when, "call %d failed", n);
        setenv("XDG_CACHE_HOME", temp_path(folder), 1);
        stub_set(&(StubOptions){ .fail_at = n, .fail_error = error });
        qn_error_clear();
        QnStatus st = train_all(g, &captured);
        done = counts().calls < n;
        if (st != QN_OK && st != status && st != QN_EDEVICE && st != QN_EUNSUPPORTED)
            fail_msg("%s: %s: %s", when, qn_status_name(st), qn_error_last()->text);
        assert_true(st == QN_OK || strlen(qn_error_last()->text) > 10);
        failed += st != QN_OK;
        without += st == QN_OK && !captured;
        assert_true(!done || (st == QN_OK && captured));
        assert_nothing_left(when);
    }
    print_message("%d calls fail the run, without %d it goes on\n", failed, without);
    assert_true(failed > 30 && without > 3);
    qn_graph_free(g);
}

static void test_every_call_may_fail(void **state)
{
    if (!have)
        skip_because("built without CUDA's headers");
    fail_each(700, QN_EDEVICE);
}

static void test_every_call_may_find_no_memory(void **state)
{
    if (!have)
        skip_because("built without CUDA's headers");
    fail_each(2, QN_ENOMEM);
}

/* The host's own allocations and files. */
static void test_every_allocation_of_the_host_may_fail(void **state)
{
    bool done = false, captured;
    if (!have)
        skip_because("built without CUDA's headers");
    QnGraph *g = small_step();
    stub_set(&(StubOptions){ 0 });
    for (int64_t n = 1; !done; n++) {
        char folder[64];
        snprintf(folder, sizeof folder, "host-%d", (int)n);
        setenv("XDG_CACHE_HOME", temp_path(folder), 1);
        qn_fault_arm(n);
        QnStatus st = train_all(g, &captured);
        done = qn_fault_events() < n;
        qn_fault_arm(0);
        if (done)
            assert_int_equal(st, QN_OK);
        assert_nothing_left("an allocation failed");
    }
    qn_graph_free(g);
}

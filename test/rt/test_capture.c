/* Runs captured as a graph, on a backend made for it: the CPU's, which notes what is asked of it.
 */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

static struct {
    int begins, ends, replays, frees, runs;
    bool begin_fails, end_fails, run_fails;
} seen;

static QnStatus capture_begin(QnDevice *d)
{
    seen.begins++;
    return seen.begin_fails ? qn_fail(QN_EDEVICE, "no capture today") : QN_OK;
}

static QnStatus capture_end(QnDevice *d, void **graph)
{
    seen.ends++;
    if (seen.end_fails)
        return qn_fail(QN_EDEVICE, "no graph of it");
    *graph = &seen;
    return QN_OK;
}

static QnStatus replay(QnDevice *d, void *graph)
{
    assert_ptr_equal(graph, &seen);
    seen.replays++;
    return QN_OK;
}

static void capture_free(QnDevice *d, void *graph)
{
    assert_ptr_equal(graph, &seen);
    seen.frees++;
}

static QnStatus run_kernel(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    seen.runs++;
    return seen.run_fails && seen.begins > seen.ends ? qn_fail(QN_EDEVICE, "not while captured")
                                                     : QN_OK;
}

static QnKernel kernel = { .name = "test.any", .backend = "test", .run = run_kernel };
static const QnKernel *const kernels[] = { &kernel };
static QnBackend backend;
static QnGraph *g;
static QnDevice *d;
static QnPlan *p;

static int setup(void **state)
{
    memset(&seen, 0, sizeof seen);
    kernel.flags = 0;
    backend = qn_backend_cpu;
    backend.kernels = kernels;
    backend.n_kernels = 1;
    backend.capture_begin = capture_begin;
    backend.capture_end = capture_end;
    backend.replay = replay;
    backend.capture_free = capture_free;
    g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4));
    assert_ok(qn_graph_output(g, "y", qn_exp(g, qn_tanh(g, x))));
    assert_ok(qn_device_open(&backend, NULL, &d));
    return 0;
}

static int teardown(void **state)
{
    qn_plan_free(p);
    p = NULL;
    assert_int_equal(seen.frees, seen.replays > 0);
    qn_graph_free(g);
    qn_device_close(d);
    return 0;
}

static void run_times(const QnPlanOptions *o, int n)
{
    assert_ok(qn_plan_new(g, d, NULL, o, &p));
    for (int i = 0; i < n; i++)
        assert_ok(qn_plan_run(p));
}

/* And the reason has these words, or there is none. */
static void is_not_captured(const char *words)
{
    const char *reason = "?";
    assert_false(qn_plan_is_captured(p, &reason));
    assert_true(words[0] ? strstr(reason, words) != NULL : !reason[0]);
    assert_int_equal(seen.replays, 0);
}

static void test_the_second_run_is_captured(void **state)
{
    run_times(NULL, 5);
    assert_int_equal(seen.begins, 1);
    assert_int_equal(seen.runs, 2 * 2); /* launched once, captured once */
    assert_int_equal(seen.replays, 4);
    assert_true(qn_plan_is_captured(p, NULL));
}

static void test_one_run_is_not_worth_it(void **state)
{
    run_times(NULL, 1);
    assert_int_equal(seen.begins, 0);
    is_not_captured("");
}

static void test_profiles_and_options_launch(void **state)
{
    run_times(&(QnPlanOptions){ .profile = true }, 3);
    is_not_captured("");
    qn_plan_free(p);
    run_times(&(QnPlanOptions){ .no_capture = true }, 3);
    is_not_captured("");
    assert_int_equal(seen.begins, 0);
    assert_int_equal(seen.runs, 12);
}

static void test_a_node_on_the_host_is_named(void **state)
{
    kernel.flags = QN_KERNEL_WAITS;
    run_times(NULL, 4);
    assert_int_equal(seen.begins, 0);
    is_not_captured("node tanh runs by test.any, which waits for the device");
}

/* Tried once; every run has its steps, and no error is left of it. */
static void check_failure(const char *words, int extra_runs)
{
    run_times(NULL, 4);
    is_not_captured(words);
    assert_int_equal(seen.begins, 1);
    assert_int_equal(seen.runs, 4 * 2 + extra_runs);
    assert_int_equal(qn_error_last()->code, QN_OK);
}

static void test_capture_that_does_not_begin(void **state)
{
    seen.begin_fails = true;
    check_failure("no capture today", 0);
    assert_int_equal(seen.ends, 0);
}

static void test_capture_that_does_not_end(void **state)
{
    seen.end_fails = true;
    check_failure("no graph of it", 2);
}

static void test_step_that_cannot_be_captured(void **state)
{
    seen.run_fails = true;
    check_failure("not while captured", 1);
    assert_int_equal(seen.ends, 1);
    seen.replays = 1; /* its graph is given back at once: teardown counts one */
}

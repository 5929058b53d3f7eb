/* The warning of steps that a device leaves to the host. labels: cli */
#include "test.h"

#include "cli/host_steps.c"

#include "backend/cpu/cpu.h"
#include "ops/ops.h"

static const char *takes_exp(const QnNode *n, const QnKernelEnv *env)
{
    return n->op == &qn_op_exp ? NULL : "its file has no device text";
}

static QnStatus run_nothing(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    return QN_OK;
}

static const QnKernel text = {
    .name = "test.text", .backend = "test", .rank = 10, .accepts = takes_exp, .run = run_nothing
};
static const QnKernel host = {
    .name = "test.host", .backend = "test", .flags = QN_KERNEL_WAITS, .run = run_nothing
};
static const QnKernel *const kernels[] = { &text, &host };

/* What is said of exp, and of `n` tanh after it. */
static const char *said(int n)
{
    static char line[1024];
    QnBackend backend = qn_backend_cpu;
    QnGraph *g = qn_graph_new();
    QnDevice *d;
    QnPlan *p;
    QnLog log;
    FILE *out = tmpfile();
    assert_non_null(out);
    backend.kernels = kernels;
    backend.n_kernels = QN_COUNT(kernels);
    QnValue *y = qn_exp(g, qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4)));
    for (int i = 0; i < n; i++)
        y = qn_tanh(g, y);
    assert_ok(qn_graph_output(g, "y", y));
    assert_ok(qn_device_open(&backend, NULL, &d));
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    qn_log_init(&log, out, QN_LOG_WARN);
    qn_host_steps_warn(p, d, &log);
    qn_host_steps_warn(NULL, d, &log);
    rewind(out);
    line[fread(line, 1, sizeof line - 1, out)] = '\0';
    fclose(out);
    qn_plan_free(p);
    qn_device_close(d);
    qn_graph_free(g);
    return line;
}

static void test_none_is_silent(void **state)
{
    assert_string_equal(said(0), "");
}

static void test_one_and_several(void **state)
{
    assert_contains(said(1), "1 of 2 steps run on the host");
    assert_contains(said(1), "tanh (its file has no device text)");
    assert_null(strstr(said(1), "others"));
    assert_contains(said(3), "3 of 4 steps");
    assert_contains(said(3), "and others");
}

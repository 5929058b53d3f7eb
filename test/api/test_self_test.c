/* What quern doctor finds wrong with a device: on the CPU nothing, on one with planted faults
 * these. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "base/fault.h"
#include "api/libraries.h"
#include "api/self_test.h"
#include "ops/ops.h"

#include <unistd.h>

static const char *fault;

static const char *accepts(const QnNode *n, const QnKernelEnv *env)
{
    return strcmp(n->op->name, fault) ? "another operator's" : NULL;
}

/* All is one, which is wrong for whatever is tested. */
static QnStatus run_ones(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    float *y = out[0];
    int64_t n = qn_shape_count(&p->node->out[0].type.shape);
    for (int64_t i = 0; i < n; i++)
        y[i] = 1;
    return QN_OK;
}

static QnStatus run_nan(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    memset(out[0], 0xff, (size_t)qn_type_bytes(&p->node->out[0].type));
    return QN_OK;
}

static QnStatus run_error(const QnPrepared *p, const void *const *in, void *const *out,
                          void *workspace)
{
    return qn_fail(QN_EDEVICE, "planted");
}

static QnKernel planted = {
    .name = "test.planted", .backend = "cpu", .rank = 1000, .accepts = accepts
};
static const QnKernel *kernels[512];
static QnBackend backend;

static QnDevice *open_device(void)
{
    QnDevice *d;
    backend = qn_backend_cpu;
    kernels[0] = &planted;
    assert_true(backend.n_kernels < QN_COUNT(kernels));
    memcpy(kernels + 1, backend.kernels, (size_t)backend.n_kernels * sizeof *kernels);
    backend.kernels = kernels;
    backend.n_kernels++;
    assert_ok(qn_device_open(&backend, &(QnDeviceOptions){ .n_threads = 1 }, &d));
    return d;
}

static void finds(const char *op,
                  QnStatus (*run)(const QnPrepared *, const void *const *, void *const *, void *),
                  const char *words)
{
    QnSelfTest t;
    fault = op;
    planted.run = run;
    QnDevice *d = open_device();
    assert_ok(qn_self_test(d, &t));
    assert_true(t.n_bad >= 1 && t.n_bad <= 2); /* the gradient has it too */
    assert_contains(qn_str_text(&t.bad), words);
    qn_self_test_fini(&t);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

static void test_the_cpu_is_sound(void **state)
{
    QnSelfTest t;
    fault = "none";
    QnDevice *d = open_device();
    assert_ok(qn_self_test(d, &t));
    assert_int_equal(t.n_bad, 0);
    assert_int_equal(t.n_cases, 11);
    assert_true(t.worst > 0 && t.worst < 1e-5);
    assert_int_equal(t.bad.n + t.on_host.n, 0);
    qn_self_test_fini(&t);
    qn_device_close(d);
}

static void test_wrong_kernels_are_named(void **state)
{
    finds("softmax", run_ones, "softmax: ");
    finds("softmax", run_ones, "off by test.planted");
    finds("conv", run_nan, "conv: inf off");
    finds("embedding", run_error, "node embedding (test.planted): planted");
}

static void test_what_runs_on_the_host_is_named(void **state)
{
    QnSelfTest t;
    fault = "max_pool";
    planted.run = run_ones;
    planted.flags = QN_KERNEL_WAITS;
    QnDevice *d = open_device();
    assert_ok(qn_self_test(d, &t));
    assert_string_equal(qn_str_text(&t.on_host), "max_pool");
    qn_self_test_fini(&t);
    qn_device_close(d);
    planted.flags = 0;
}

static void test_no_memory(void **state)
{
    fault = "none";
    QnDevice *d = open_device();
    for (int64_t n = 1; n < 400; n += 7) {
        QnSelfTest t;
        qn_fault_arm(n);
        QnStatus st = qn_self_test(d, &t);
        qn_fault_arm(0);
        assert_true(st == QN_ENOMEM || t.n_bad == 1);
        qn_self_test_fini(&t);
        assert_int_equal(d->now_bytes, 0);
    }
    qn_device_close(d);
}

static void test_libraries_say_where_they_are(void **state)
{
    QnLibrary all[QN_LIBRARIES];
    qn_libraries(all);
    for (int i = 0; i < QN_LIBRARIES; i++) {
        assert_true(all[i].name[0] && all[i].use[0]);
        if (!all[i].is_there)
            assert_int_equal(all[i].version[0] + all[i].path[0], 0);
        if (all[i].path[0])
            assert_int_equal(access(all[i].path, R_OK), 0);
        if (!strcmp(all[i].name, "zlib") && all[i].path[0]) /* a test need not be linked with it */
            assert_true(all[i].version[0] == '1' && all[i].path[0] == '/');
    }
}

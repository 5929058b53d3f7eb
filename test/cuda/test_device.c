/* The CUDA plugin's host code on the stub driver: memory, copies, what it says when something is
 * missing, too old or fails. */
#include "cuda/device.h"

#include "base/cache.h"
#include "ir/graph.h"
#include "ops/ops.h"
#include "quern/plan.h"
#include "rt/plan.h"

static bool have;
static char stub_path[1100];

static int group_setup(void **state)
{
    have = cuda_setup();
    if (have)
        snprintf(stub_path, sizeof stub_path, "%s", getenv("QUERN_LIBCUDA"));
    return 0;
}

static int setup(void **state)
{
    if (!have)
        return 0;
    setenv("QUERN_LIBCUDA", stub_path, 1);
    setenv("QUERN_LIBNVRTC", stub_path, 1);
    stub_set(&(StubOptions){ 0 });
    return 0;
}

static int teardown(void **state)
{
    if (have)
        assert_nothing_left("after the test");
    return 0;
}

#define NEEDS_PLUGIN()                                                                             \
    if (!have)                                                                                     \
    skip_because("built without CUDA's headers")

static void refused(const StubOptions *o, QnStatus status, const char *words)
{
    QnDevice *d = NULL;
    stub_set(o);
    assert_fails(qn_device_open_named("cuda:0", NULL, &d), status, words);
    assert_null(d);
}

static void test_missing_driver_names_every_place(void **state)
{
    NEEDS_PLUGIN();
    setenv("QUERN_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    refused(&(StubOptions){ 0 }, QN_ENOTFOUND, "/nowhere/libcuda.so.1");
    setenv("QUERN_LIBCUDA", "", 1);
    QnDevice *d;
    if (qn_device_open_named("cuda:0", NULL, &d) == QN_OK) {
        qn_device_close(d);
        skip_because("this machine has a driver");
    }
    if (strstr(qn_error_last()->text, "no libcuda.so.1")) {
        assert_contains(qn_error_last()->text, "/usr/local/cuda/lib64/libcuda.so.1");
        assert_contains(qn_error_last()->text, "QUERN_LIBCUDA");
    }
}

static void test_driver_without_a_function(void **state)
{
    NEEDS_PLUGIN();
    setenv("QUERN_LIBCUDA", "libm.so.6", 1);
    refused(&(StubOptions){ 0 }, QN_EUNSUPPORTED, "has no cuInit");
}

static void test_old_driver_and_devices(void **state)
{
    NEEDS_PLUGIN();
    refused(&(StubOptions){ .driver_version = 11080 }, QN_EUNSUPPORTED, "speaks CUDA 11.8");
    refused(&(StubOptions){ .devices = -1 }, QN_ENOTFOUND, "sees no CUDA device");
    refused(&(StubOptions){ .sm = 70 }, QN_EUNSUPPORTED, "compute capability 7.0; 7.5 is needed");
    QnDevice *d;
    stub_set(&(StubOptions){ .devices = 2 });
    assert_fails(qn_device_open_named("cuda:2", NULL, &d), QN_ENOTFOUND, "there are 0 to 1");
    assert_ok(qn_device_open_named("cuda:1", NULL, &d));
    qn_device_close(d);
}

/* ---- memory ---- */

static void test_copies_of_every_size(void **state)
{
    NEEDS_PLUGIN();
    static const size_t sizes[] = { 0, 1, 1000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 25 << 20 };
    QnDevice *d;
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    for (int i = 0; i < QN_COUNT(sizes); i++) {
        size_t n = sizes[i];
        unsigned char *x = malloc(n + 1), *y = calloc(n + 1, 1);
        for (size_t k = 0; k < n; k++)
            x[k] = (unsigned char)(k * 2654435761u >> 13);
        void *a = qn_device_alloc(d, n), *b = qn_device_alloc(d, n);
        assert_non_null(a);
        assert_ok(d->backend->write(d, a, x, n));
        assert_ok(d->backend->copy(d, b, a, n));
        assert_ok(d->backend->read(d, y, b, n));
        assert_memory_equal(x, y, n);
        assert_int_equal(d->now_bytes, 2 * n);
        qn_device_free(d, a, n);
        qn_device_free(d, b, n);
        free(x);
        free(y);
    }
    assert_ok(d->backend->sync(d));
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

static void test_no_memory_is_said_with_numbers(void **state)
{
    NEEDS_PLUGIN();
    QnDevice *d;
    stub_set(&(StubOptions){
        .memory_bytes = 1 << 20, .fail_call = "cuMemAllocManaged", .fail_at = 1, .fail_error = 2 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    void *p = qn_device_alloc(d, 1 << 19);
    assert_non_null(p);
    assert_null(qn_device_alloc(d, 1 << 20));
    assert_contains(qn_error_last()->text, "cannot allocate 1048576 bytes");
    assert_int_equal(qn_error_last()->code, QN_ENOMEM);
    qn_device_free(d, p, 1 << 19);
    qn_device_close(d);
}

/* ---- programs ---- */

/* y = exp(x) and its largest element, planned; with the kernel of exp. */
static QnStatus plan_exp(QnDevice *d, QnGraph **g, QnPlan **p)
{
    *g = qn_graph_new();
    QnValue *x = qn_input(*g, "x", QN_DTYPE_F32, &QN_SHAPE(5));
    assert_ok(qn_graph_output(*g, "y", qn_exp(*g, x)));
    assert_ok(qn_graph_check(*g));
    return qn_plan_new(*g, d, NULL, NULL, p);
}

/* What compiled, and by which kernel it runs. */
static int64_t compiles_of(const StubOptions *o, const char *kernel)
{
    QnDevice *d;
    QnGraph *g;
    QnPlan *p;
    stub_set(o);
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    assert_ok(plan_exp(d, &g, &p));
    assert_string_equal(qn_plan_step(p, 0).kernel->name, kernel);
    float x[5] = { 0, 1, -1, 2, 0.5f }, y[5];
    assert_ok(qn_plan_write(p, "x", x, sizeof x));
    assert_ok(qn_plan_run(p));
    assert_ok(qn_plan_read(p, "y", y, sizeof y));
    if (!strcmp(kernel, "cuda.host"))
        assert_float_equal(y[1], 2.7182818f, 1e-6);
    qn_plan_free(p);
    qn_graph_free(g);
    qn_device_close(d);
    return counts().compiles;
}

static void test_programs_are_compiled_once_a_machine(void **state)
{
    NEEDS_PLUGIN();
    setenv("XDG_CACHE_HOME", temp_path("once"), 1);
    assert_int_equal(compiles_of(&(StubOptions){ 0 }, "cuda.text"), 1);
    assert_int_equal(compiles_of(&(StubOptions){ 0 }, "cuda.text"), 0);
    assert_int_equal(compiles_of(&(StubOptions){ .sm = 86 }, "cuda.text"), 1);
    assert_int_equal(compiles_of(&(StubOptions){ .sm = 86 }, "cuda.text"), 0);
    /* newer than NVRTC: PTX for the newest that it knows */
    assert_int_equal(compiles_of(&(StubOptions){ .sm = 130 }, "cuda.text"), 1);
    assert_int_equal(compiles_of(&(StubOptions){ .sm = 130 }, "cuda.text"), 0);
    /* an image that the driver refuses is compiled again */
    StubOptions fails = { .fail_call = "cuModuleLoadData", .fail_at = 1, .fail_error = 209 };
    assert_int_equal(compiles_of(&fails, "cuda.text"), 1);
}

/* The real one, if there is any: machine code of the device's architecture, PTX for a newer one. */
static void test_real_nvrtc_gives_what_drivers_load(void **state)
{
    NEEDS_PLUGIN();
    QnDevice *d;
    setenv("QUERN_LIBNVRTC", "", 1);
    setenv("XDG_CACHE_HOME", temp_path("real"), 1);
    stub_set(&(StubOptions){ 0 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    QnGraph *g = qn_graph_new();
    QnNode *n = qn_exp(g, qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(5)))->node;
    const QnKernel *k;
    assert_ok(qn_select(d, n, NULL, &k));
    bool found = strcmp(k->name, "cuda.text") == 0;
    qn_graph_free(g);
    qn_device_close(d);
    if (!found)
        skip_because("no libnvrtc");
    assert_int_equal(compiles_of(&(StubOptions){ .sm = 90 }, "cuda.text"), 0); /* by the stub */
    assert_int_equal(compiles_of(&(StubOptions){ .sm = 250 }, "cuda.text"), 0);
    StubCounts c = counts();
    assert_true(c.launches > 0);
}

static void test_without_nvrtc_the_reference_runs(void **state)
{
    NEEDS_PLUGIN();
    setenv("QUERN_LIBNVRTC", "/nowhere/libnvrtc.so", 1);
    assert_int_equal(compiles_of(&(StubOptions){ 0 }, "cuda.host"), 0);
    setenv("QUERN_LIBNVRTC", "libm.so.6", 1);
    assert_int_equal(compiles_of(&(StubOptions){ 0 }, "cuda.host"), 0);
    setenv("QUERN_LIBNVRTC", stub_path, 1);
    assert_int_equal(compiles_of(&(StubOptions){ .newest_arch = 75, .sm = 75 }, "cuda.text"), 1);
}

static void test_text_that_does_not_compile(void **state)
{
    NEEDS_PLUGIN();
    QnDevice *d;
    QnGraph *g;
    QnPlan *p = NULL;
    setenv("XDG_CACHE_HOME", temp_path("broken"), 1);
    stub_set(&(StubOptions){ .fail_call = "nvrtcCompileProgram", .fail_at = 1 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    assert_fails(plan_exp(d, &g, &p), QN_EDEVICE, "stub(1): error: as the test asked");
    assert_contains(qn_error_last()->text, "node exp: cuda.text");
    qn_graph_free(g);
    qn_device_close(d);
}

static void test_failed_launch_names_the_kernel(void **state)
{
    NEEDS_PLUGIN();
    QnDevice *d;
    QnGraph *g;
    QnPlan *p;
    stub_set(&(StubOptions){ .fail_call = "cuLaunchKernel", .fail_at = 1, .fail_error = 719 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    assert_ok(plan_exp(d, &g, &p));
    assert_fails(qn_plan_run(p), QN_EDEVICE, "CUDA_ERROR_LAUNCH_FAILED");
    assert_contains(qn_error_last()->text, "node exp (cuda.text): kernel qn_map");
    assert_ok(qn_plan_run(p));
    qn_plan_free(p);
    qn_graph_free(g);
    qn_device_close(d);
}

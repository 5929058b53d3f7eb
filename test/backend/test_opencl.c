/* A training step on an OpenCL device (PoCL where there is no GPU) against the CPU: the same graph,
 * the same weights after some steps. timeout: 300 */
#include "test.h"

#include "backend/small_net.h"
#include "backend/opencl/opencl.h"
#include "base/cache.h"
#include "io/temp.h"
#include "ops/ops.h"

#include <dirent.h>

#ifdef QN_HAVE_OPENCL
static void compare_with_cpu(const SmallNet *net)
{
    QnDevice *cl, *cpu;
    int on_host = 0;
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    assert_ok(qn_device_open_named("opencl:0", NULL, &cl));
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    compare_devices(net, cl, cpu, &on_host);
    assert_int_equal(on_host, 0);
    qn_device_close(cl);
    qn_device_close(cpu);
}

/* Entries of the cache; each becomes `with`, in a file that is whole, unless that is NULL. */
static int visit_cache(const char *folder, const char *with)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        QnCacheKey key = { "" };
        if (e->d_name[0] == '.')
            continue;
        n++;
        memcpy(key.hex, e->d_name, QN_SHA256_HEX - 1);
        if (with)
            assert_ok(qn_cache_write(folder, &key, with, strlen(with), 0));
    }
    if (dir)
        closedir(dir);
    return n;
}

static void train_once(float *first)
{
    QnDevice *d;
    int64_t n;
    int on_host = 0;
    assert_ok(qn_device_open_named("opencl:0", NULL, &d));
    float *got = train(&conv_net, d, &n, &on_host);
    *first = got[0];
    free(got);
    qn_device_close(d);
}

static void keep_programs(void)
{
    float from_text, from_cache, from_junk;
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    setenv("XDG_CACHE_HOME", temp_path("cache"), 1);
    const char *folder = temp_path("cache/quern/programs");
    assert_int_equal(visit_cache(folder, NULL), 0);
    train_once(&from_text);
    int n = visit_cache(folder, NULL);
    assert_true(n > 5);
    train_once(&from_cache);
    assert_int_equal(visit_cache(folder, NULL), n);
    assert_int_equal(visit_cache(folder, "no program of any driver"), n);
    train_once(&from_junk);
    assert_true(from_text == from_cache && from_text == from_junk);
}

/* As on a device of small work groups: what needs larger ones runs on the host, the rest here. */
static void small_groups(size_t most)
{
    QnDevice *cl, *cpu;
    int on_host = 0;
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    assert_ok(qn_device_open_named("opencl:0", NULL, &cl));
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    QnOpencl *impl = cl->impl;
    impl->max_group = most;
    compare_devices(&conv_net, cl, cpu, &on_host);
    assert_true(on_host > 3);
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4, 1000));
    const QnNode *row = qn_softmax(g, x, 1)->node, *item = qn_exp(g, x)->node;
    const QnKernel *k;
    assert_ok(qn_select(cl, row, NULL, &k));
    assert_string_equal(k->name, "opencl.host");
    assert_ok(qn_select(cl, item, NULL, &k));
    assert_string_equal(k->name, "opencl.text");
    for (int i = 0; i < cl->backend->n_kernels; i++)
        if (!strcmp(cl->backend->kernels[i]->name, "opencl.text"))
            assert_contains(qn_select_reason(cl, cl->backend->kernels[i], row),
                            "needs larger work groups than the ");
    qn_graph_free(g);
    qn_device_close(cl);
    qn_device_close(cpu);
}

static void open_bad_devices(void)
{
    QnDevice *d;
    assert_fails(qn_device_open_named("opencl:999", NULL, &d), QN_ENOTFOUND, "opencl");
    assert_fails(qn_device_open_named("opencl:x", NULL, &d), QN_EUSAGE, "opencl:x");
    assert_fails(qn_device_open_named("vulkan", NULL, &d), QN_EUSAGE, "vulkan");
}
#else
static void compare_with_cpu(const SmallNet *net)
{
    skip_because("built without OpenCL");
}

static void keep_programs(void)
{
    skip_because("built without OpenCL");
}

static void small_groups(size_t most)
{
    skip_because("built without OpenCL");
}

static void open_bad_devices(void)
{
    QnDevice *d;
    assert_fails(qn_device_open_named("opencl", NULL, &d), QN_EUSAGE, "without OpenCL");
}
#endif

static void test_training_equals_cpu(void **state)
{
    (void)state;
    compare_with_cpu(&conv_net);
}

static void test_a_transformer_equals_cpu(void **state)
{
    (void)state;
    compare_with_cpu(&gpt_net);
}

static void test_programs_are_kept_on_disk(void **state)
{
    (void)state;
    keep_programs();
}

static void test_small_work_groups(void **state)
{
    (void)state;
    small_groups(64);
    small_groups(1);
}

static void test_bad_devices_are_named(void **state)
{
    (void)state;
    open_bad_devices();
}

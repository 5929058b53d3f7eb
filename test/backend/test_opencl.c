/* A training step on an OpenCL device (PoCL where there is no GPU) against the CPU: the same graph,
 * the same weights after some steps.
 * timeout: 900 pocl: -cl-opt-disable */
#include "test.h"

#include "backend/device_batches.h"
#include "backend/device_convs.h"
#include "backend/device_folds.h"
#include "backend/small_net.h"
#include "backend/opencl/opencl.h"
#include "base/cache.h"
#include "io/temp.h"
#include "ops/ops.h"

#include <dirent.h>
#include <math.h>

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

static void with_device(void (*check)(QnDevice *d))
{
    QnDevice *d;
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    assert_ok(qn_device_open_named("opencl:0", NULL, &d));
    check(d);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

/* A convolutional classifier's step, for so many images. */
static QnGraph *classifier(int64_t batch)
{
    QnGraph *g = qn_graph_new();
    QnNet net;
    qn_net_init(&net, g, true);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(batch, 3, 12, 12));
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(batch));
    QnConvSpec spec = { .out = 6, .kernel = 3, .pad = 1, .bias = true };
    QnValue *h = qn_gelu(g, qn_nn_batch_norm(&net, "bn", qn_nn_conv(&net, "conv", x, &spec)));
    h = qn_nn_layer_norm(&net, "ln", qn_mean(g, h, (QnInts){ 2, { 2, 3 } }, false), true);
    h = qn_nn_linear(&net, "fc", qn_softmax(g, h, -1), 5, true);
    QnValue *loss = qn_cross_entropy(g, h, y, 0.1, -100, QN_REDUCTION_MEAN);
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim o = { .name = "adam", .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .clip_norm = 1 };
    assert_ok(qn_optim_minimise(&net, &o, loss, lr, step, NULL));
    assert_ok(qn_graph_output(g, "loss", loss));
    qn_net_fini(&net);
    return g;
}

static void plan_classifier(QnDevice *d, int64_t batch)
{
    QnGraph *g = classifier(batch);
    QnStore *s = qn_store_new(d);
    QnPlan *p;
    QnPipelineOptions o = qn_device_passes(d);
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_plan_new(g, d, s, NULL, &p));
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
}

/* Sizes are arguments of kernels and not part of their text. */
static void check_programs(QnDevice *d)
{
    const QnOpencl *cl = d->impl;
    plan_classifier(d, 8);
    int64_t n = cl->n_programs;
    assert_true(n > 10);
    plan_classifier(d, 64);
    plan_classifier(d, 37);
    for (int64_t i = n; i < cl->n_programs; i++)
        print_message("compiled again:\n%s\n", cl->programs[i].key);
    assert_int_equal(cl->n_programs, n);
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
    QnOpencl *impl = d->impl;
    impl->max_price = HUGE_VAL; /* all binaries are kept, however slowly they come */
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

static void with_device(void (*check)(QnDevice *d))
{
    (void)check;
    skip_because("built without OpenCL");
}

static void check_programs(QnDevice *d)
{
    (void)d;
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

static void test_large_reductions(void **state)
{
    (void)state;
    with_device(check_folds);
}

static void test_large_channels(void **state)
{
    (void)state;
    with_device(check_batch_norm);
}

static void test_scatter_add(void **state)
{
    (void)state;
    with_device(check_scatter_add);
}

static void test_maps_go_into_convolutions(void **state)
{
    (void)state;
    with_device(check_conv_maps);
}

static void test_weights_of_convolutions(void **state)
{
    (void)state;
    with_device(check_conv_dw);
}

static void test_many_steps_are_one_launch(void **state)
{
    (void)state;
    with_device(check_batches);
}

static void test_steps_that_need_each_other_are_apart(void **state)
{
    (void)state;
    with_device(check_chain);
}

/* Scores are 0 up to the label and at the end, and -inf between, which takes no part. */
static void run_masked(QnDevice *d, const char *off)
{
    enum { R = 3, C = 600 };
    const int64_t labels[R] = { 0, 2, 299 };
    float x[R * C], dx[R * C], loss;
    double want = 0;
    QnGraph *g = qn_graph_new();
    QnPlan *p;
    QnPipelineOptions o = qn_device_passes(d);
    QnValue *in = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(R, C)), *grad;
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(R));
    QnValue *sum = qn_cross_entropy(g, in, y, 0, -100, QN_REDUCTION_SUM);
    assert_ok(qn_grad(g, sum, &in, 1, &grad));
    assert_ok(qn_graph_output(g, "loss", sum));
    assert_ok(qn_graph_output(g, "dx", grad));
    o.off = off;
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    for (int i = 0; i < R * C; i++)
        x[i] = i % C <= labels[i / C] || i % C >= C - 1 ? 0 : -INFINITY;
    assert_ok(qn_plan_write(p, "x", x, sizeof x));
    assert_ok(qn_plan_write(p, "y", labels, sizeof labels));
    assert_ok(qn_plan_run(p));
    assert_ok(qn_plan_read(p, "loss", &loss, sizeof loss));
    assert_ok(qn_plan_read(p, "dx", dx, sizeof dx));
    for (int r = 0; r < R; r++)
        want += log((double)labels[r] + 2);
    assert_true(fabs(loss - want) < 1e-5 * want);
    for (int i = 0; i < R * C; i++) {
        double share = x[i] == 0 ? 1 / ((double)labels[i / C] + 2) : 0;
        assert_true(fabs(dx[i] - (share - (i % C == labels[i / C]))) < 1e-5);
    }
    qn_plan_free(p);
    qn_graph_free(g);
}

static void check_masked_scores(QnDevice *d)
{
    run_masked(d, NULL);
    run_masked(d, "fuse_loss");
}

static void test_masked_scores_take_no_part_in_a_loss(void **state)
{
    with_device(check_masked_scores);
}

static void test_another_batch_size_compiles_nothing(void **state)
{
    (void)state;
    with_device(check_programs);
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

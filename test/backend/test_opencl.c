/* A training step on an OpenCL device (PoCL where there is no GPU) against the CPU: the same graph,
 * the same weights after some steps. timeout: 300 */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "backend/opencl/opencl.h"
#include "base/cache.h"
#include "io/temp.h"
#include "nn/optim.h"
#include "pass/pipeline.h"
#include "quern/plan.h"
#include "rt/plan.h"

#include <dirent.h>
#include <math.h>

#ifdef QN_HAVE_OPENCL
enum { BATCH = 4, STEPS = 3 };

static QnGraph *build(void)
{
    QnGraph *g = qn_graph_new();
    QnNet net;
    qn_net_init(&net, g, true);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(BATCH, 1, 8, 8));
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(BATCH));
    QnConvSpec spec = { .out = 4, .kernel = 3, .pad = 1 };
    QnPoolAttr pool = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 2, 2 } } };
    QnValue *h = qn_relu(g, qn_nn_batch_norm(&net, "bn", qn_nn_conv(&net, "conv", x, &spec)));
    h = qn_nn_linear(&net, "fc", qn_flatten(g, qn_max_pool(g, h, &pool), 1), 5, true);
    QnValue *loss = qn_cross_entropy(g, h, y, 0.1, -100, QN_REDUCTION_MEAN);
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim o = { .name = "adamw",
                  .beta1 = 0.9,
                  .beta2 = 0.999,
                  .eps = 1e-4,
                  .weight_decay = 0.01,
                  .clip_norm = 1 };
    assert_ok(qn_optim_minimise(&net, &o, loss, lr, step, NULL));
    assert_ok(qn_graph_output(g, "loss", loss));
    qn_net_fini(&net);
    return g;
}

static void fill(QnStore *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const QnSlot *slot = &s->slots[i];
        float *x = calloc((size_t)slot->bytes + 4, 1);
        int64_t n = slot->bytes / 4;
        bool moment = !strncmp(slot->name, "optim.", 6);
        for (int64_t k = 0; k < n && !moment; k++)
            x[k] = strstr(slot->name, "var") ? 1.0f : 0.3f * sinf((float)(k * 7 + i));
        assert_ok(qn_store_write(s, slot, x));
        free(x);
    }
}

static void feed(QnDevice *d, QnPlan *p, int step)
{
    float x[BATCH * 64], lr = 0.01f;
    int64_t y[BATCH] = { 1, 4, 0, 2 }, t = step;
    for (int i = 0; i < BATCH * 64; i++)
        x[i] = cosf((float)(i * (step + 3)));
    assert_ok(d->backend->write(d, qn_plan_input(p, "x", NULL), x, sizeof x));
    assert_ok(d->backend->write(d, qn_plan_input(p, "y", NULL), y, sizeof y));
    assert_ok(d->backend->write(d, qn_plan_input(p, "lr", NULL), &lr, sizeof lr));
    assert_ok(d->backend->write(d, qn_plan_input(p, "step", NULL), &t, sizeof t));
}

/* All states after some steps, one after the other; *n elements. The caller frees. */
static float *train(QnDevice *d, int64_t *n, int *on_host)
{
    QnGraph *g = build();
    QnStore *s = qn_store_new(d);
    QnPlan *p;
    QnPipelineOptions o = {
        .level = QN_O2, .verify = true, .keep = qn_device_has_kernel, .keep_ctx = d
    };
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    fill(s);
    assert_ok(qn_plan_new(g, d, s, NULL, &p));
    assert_int_equal(qn_plan_memory(p).planned_peak_bytes, d->peak_bytes);
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++)
        *on_host += !strcmp(qn_plan_step(p, i).kernel->name, "opencl.host");
    for (int i = 0; i < STEPS; i++) {
        feed(d, p, i);
        assert_ok(qn_plan_run(p));
    }
    float *all = calloc((size_t)s->bytes, 1);
    *n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        assert_ok(qn_store_read(s, &s->slots[i], all + *n));
        *n += s->slots[i].bytes / 4;
    }
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
    return all;
}

static void compare_with_cpu(void)
{
    QnDevice *cl, *cpu;
    int64_t n_cl, n_cpu;
    int on_host = 0;
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    assert_ok(qn_device_open_named("opencl:0", NULL, &cl));
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    float *got = train(cl, &n_cl, &on_host), *want = train(cpu, &n_cpu, &on_host);
    assert_int_equal(n_cl, n_cpu);
    assert_true(n_cl > 300);
    assert_true(on_host <= 4); /* nearly all of it is device text */
    for (int64_t i = 0; i < n_cl; i++) {
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
            fail_msg("state element %lld is %g on OpenCL, %g on the CPU", (long long)i, got[i],
                     want[i]);
    }
    free(got);
    free(want);
    assert_int_equal(cl->now_bytes, 0);
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
    float *got = train(d, &n, &on_host);
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

static void open_bad_devices(void)
{
    QnDevice *d;
    assert_fails(qn_device_open_named("opencl:999", NULL, &d), QN_ENOTFOUND, "opencl");
    assert_fails(qn_device_open_named("opencl:x", NULL, &d), QN_EUSAGE, "opencl:x");
    assert_fails(qn_device_open_named("cuda", NULL, &d), QN_EUSAGE, "cuda");
}
#else
static void compare_with_cpu(void)
{
    skip_because("built without OpenCL");
}

static void keep_programs(void)
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
    compare_with_cpu();
}

static void test_programs_are_kept_on_disk(void **state)
{
    (void)state;
    keep_programs();
}

static void test_bad_devices_are_named(void **state)
{
    (void)state;
    open_bad_devices();
}

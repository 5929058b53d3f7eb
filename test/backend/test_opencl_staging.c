/* Batches that travel to an OpenCL device (PoCL where there is no GPU) while it computes: the same
 * bits as without. timeout: 900 */
#include "backend/staged.h"

#include "backend/opencl/opencl.h"
#include "quern/plan.h"

static char recipe[512];

static int group_setup(void **state)
{
    toy_images("a", 40);
    toy_images("b", 21);
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", STAGED_RECIPE));
    return 0;
}

static QnDevice *open_device(void)
{
    QnDevice *d = NULL;
#ifdef QN_HAVE_OPENCL
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    assert_ok(qn_device_open_named("opencl:0", NULL, &d));
#else
    skip_because("built without OpenCL");
#endif
    return d;
}

static void test_training_gives_the_same_bits(void **state)
{
    QnDevice *d = open_device();
    check_staged(d, recipe, "train.accumulate=1");
    check_staged(d, recipe, "train.accumulate=2");
    qn_device_close(d);
}

/* The device computes on a batch while the next one arrives. */
static void test_batches_do_not_mix(void **state)
{
    enum { N = 1 << 18, ROUNDS = 9 };
    QnDevice *d = open_device();
    QnStaging *s;
    size_t bytes = N * sizeof(int);
    int *x = malloc(bytes), *y = malloc(bytes);
    assert_ok(qn_staging_new(d, &bytes, 1, &s));
    char *block = qn_device_alloc(d, bytes), *all = qn_device_alloc(d, ROUNDS * bytes);
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < N; i++)
            x[i] = i * 31 + r;
        assert_ok(qn_staging_send(s, (const void *[]){ x }));
        assert_ok(qn_staging_take(s, (void *[]){ block }));
        assert_ok(d->backend->copy(d, all + (size_t)r * bytes, block, bytes));
    }
    for (int r = 0; r < ROUNDS; r++) {
        assert_ok(d->backend->read(d, y, all + (size_t)r * bytes, bytes));
        for (int i = 0; i < N; i++)
            assert_true(y[i] == i * 31 + r);
    }
    qn_staging_free(s);
    qn_device_free(d, block, bytes);
    qn_device_free(d, all, ROUNDS * bytes);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
    free(x);
    free(y);
}

/* What does not fit into the device's memory lies in the host's, and nothing else changes. */
static void test_far_memory_gives_the_same_bits(void **state)
{
    QnDevice *d = open_device();
    const char *setting = "train.steps=3";
    QnDeviceInfo info;
    float *near = NULL, *far = NULL;
    int64_t n, m;
    bool sends;
    assert_ok(qn_device_info(d, &info));
    if (!info.far) {
        qn_device_close(d);
        skip_because("the device reaches no memory of the host");
    }
    assert_true(info.memory_bytes > 1 << 20 && info.units > 0 && info.name[0]);
    assert_ok(qn_file_make_dirs(temp_path("run")));
    assert_ok(staged_train(d, recipe, &setting, 1, "run", &near, &n, &sends));
    d->limit_bytes = d->peak_bytes / 2;
    assert_ok(staged_train(d, recipe, &setting, 1, "run", &far, &m, &sends));
    assert_int_equal(n, m);
    assert_memory_equal(near, far, (size_t)n * sizeof *near);
    void *p = qn_device_alloc(d, d->limit_bytes + 1);
    assert_true(qn_device_is_far(d, p));
    qn_device_free(d, p, d->limit_bytes + 1);
    free(near);
    free(far);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

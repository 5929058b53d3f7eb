/* Batches that travel to an OpenCL device (PoCL where there is no GPU) while it computes: the same
 * bits as without. timeout: 300 */
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

/* Plans that take more than the device has, through the CUDA plugin on the stub driver: managed
 * memory, pinned memory of the host, or an error that says why neither. labels: slow timeout: 300
 */
#include "cuda/device.h"

#include "backend/staged.h"

static bool have;
static char recipe[512];
static const char *const none[] = { "train.steps=3" };

static int group_setup(void **state)
{
    have = cuda_setup();
    toy_images("a", 40);
    toy_images("b", 21);
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", STAGED_RECIPE));
    assert_ok(qn_file_make_dirs(temp_path("run")));
    return 0;
}

#define NEEDS_PLUGIN()                                                                             \
    if (!have)                                                                                     \
    skip_because("built without CUDA's headers")

static QnDevice *open_limited(int64_t memory_bytes)
{
    QnDevice *d;
    assert_ok(
        qn_device_open_named("cuda:0", &(QnDeviceOptions){ .memory_bytes = memory_bytes }, &d));
    return d;
}

static void test_what_does_not_fit_is_managed(void **state)
{
    QnDeviceInfo info;
    NEEDS_PLUGIN();
    for (int pinned = 0; pinned < 2; pinned++) {
        stub_set(&(StubOptions){ .no_managed = pinned });
        QnDevice *d = open_limited(1000);
        int64_t before = counts().pinned;
        assert_ok(qn_device_info(d, &info));
        assert_string_equal(info.far, pinned ? "pinned memory of the host" : "managed memory");
        assert_int_equal(info.far_moves, !pinned);
        assert_string_equal(info.name, "Stub 0");
        char *near = qn_device_alloc(d, 600), *far = qn_device_alloc(d, 500);
        char *more = qn_device_alloc(d, 400);
        assert_true(near && far && more);
        assert_false(qn_device_is_far(d, near) || qn_device_is_far(d, more));
        assert_true(qn_device_is_far(d, far) && qn_device_is_far(d, far + 499));
        assert_false(qn_device_is_far(d, far + 500));
        assert_int_equal(d->far_bytes, 500);
        assert_int_equal(d->now_bytes, 1500);
        assert_int_equal(counts().managed, !pinned);
        assert_int_equal(counts().pinned - before, pinned);
        char x[500], y[500];
        memset(x, 7, sizeof x);
        assert_ok(d->backend->write(d, far, x, sizeof x));
        assert_ok(d->backend->read(d, y, far, sizeof y));
        assert_memory_equal(x, y, sizeof x);
        qn_device_free(d, far, 500);
        assert_int_equal(d->far_bytes, 0);
        qn_device_free(d, near, 600);
        qn_device_free(d, more, 400);
        assert_int_equal(d->now_bytes, 0);
        qn_device_close(d);
        assert_nothing_left("after the allocations");
    }
}

/* Without any limit: what the driver refuses goes there too. */
static void test_a_full_device(void **state)
{
    NEEDS_PLUGIN();
    stub_set(&(StubOptions){ .memory_bytes = 1 << 20 });
    QnDevice *d = open_limited(0);
    void *near = qn_device_alloc(d, 1 << 19), *far = qn_device_alloc(d, 1 << 20);
    assert_true(near && far && qn_device_is_far(d, far));
    qn_device_free(d, near, 1 << 19);
    qn_device_free(d, far, 1 << 20);
    stub_set(&(StubOptions){
        .memory_bytes = 1, .fail_call = "cuMemAllocManaged", .fail_at = 1, .fail_error = 2 });
    assert_null(qn_device_alloc(d, 1 << 20));
    assert_int_equal(qn_error_last()->code, QN_ENOMEM);
    assert_contains(qn_error_last()->text, "cannot allocate 1048576 bytes");
    assert_contains(qn_error_last()->text, "cuMemAllocAsync fails");
    assert_contains(qn_error_last()->text, "nor has the host: cuda: cuMemAllocManaged fails");
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
    assert_nothing_left("after the refusal");
}

/* The same weights wherever the plan lies. */
static void test_training_gives_the_same_bits(void **state)
{
    float *near = NULL, *far = NULL;
    int64_t n, m;
    bool sends;
    NEEDS_PLUGIN();
    stub_set(&(StubOptions){ .runs_kernels = true });
    QnDevice *d = open_limited(0);
    assert_ok(staged_train(d, recipe, none, 1, "run", &near, &n, &sends));
    int64_t peak = (int64_t)d->peak_bytes;
    assert_int_equal(counts().managed, 0);
    d->peak_bytes = 0;
    d->limit_bytes = (size_t)peak / 2;
    assert_ok(staged_train(d, recipe, none, 1, "run", &far, &m, &sends));
    assert_int_equal(d->peak_bytes, peak);
    assert_int_equal(n, m);
    assert_memory_equal(near, far, (size_t)n * sizeof *near);
    free(near);
    free(far);
    qn_device_close(d);
    assert_nothing_left("after training");
}

/* Of a run whose plans are managed, with kernels that are only counted. */
static void test_every_call_may_fail(void **state)
{
    int64_t calls = 1;
    int failed = 0;
    NEEDS_PLUGIN();
    for (int64_t n = 0; n <= calls; n++) {
        char when[64];
        QnDevice *d = NULL;
        bool sends;
        QnDeviceOptions o = { .memory_bytes = 4096 };
        snprintf(when, sizeof when, "call %d failed", (int)n);
        stub_set(&(StubOptions){ .fail_at = n, .fail_error = 2 });
        QnStatus st = qn_device_open_named("cuda:0", &o, &d);
        if (st == QN_OK)
            st = staged_train(d, recipe, none, 1, "run", NULL, NULL, &sends);
        failed += st != QN_OK;
        if (st != QN_OK && strlen(qn_error_last()->text) < 10)
            fail_msg("%s: %s", when, qn_error_last()->text);
        if (d) {
            assert_int_equal(d->now_bytes, 0);
            assert_int_equal(d->far_bytes, 0);
        }
        qn_device_close(d);
        calls = QN_MAX(calls, counts().calls);
        assert_nothing_left(when);
    }
    print_message("%d of %lld calls fail the run\n", failed, (long long)calls);
    assert_true(failed > 100);
}

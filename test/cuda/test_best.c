/* "auto" with CUDA devices, on the stub driver. */
#include "cuda/device.h"

#include "api/best.h"

static bool have;

static int group_setup(void **state)
{
    have = cuda_setup();
    return 0;
}

#define NEEDS_PLUGIN()                                                                             \
    if (!have)                                                                                     \
    skip_because("built without CUDA's headers")

/* Which is taken, with these words about it. */
static void takes(const StubOptions *o, const char *backend, const char *words)
{
    QnDevice *d = NULL;
    QnStr why = { 0 };
    stub_set(o);
    assert_ok(qn_device_open_best(&(QnDeviceOptions){ .n_threads = 1 }, &d, &why));
    assert_string_equal(d->backend->name, backend);
    assert_contains(qn_str_text(&why), words);
    assert_null(strchr(qn_str_text(&why), '\n'));
    assert_int_equal(qn_error_last()->code, QN_OK);
    qn_str_fini(&why);
    qn_device_close(d);
    stub_set(o);
    assert_ok(qn_device_open_named("auto", NULL, &d));
    assert_string_equal(d->backend->name, backend);
    qn_device_close(d);
    assert_nothing_left("after the choice");
}

static void test_a_card_before_all_else(void **state)
{
    NEEDS_PLUGIN();
    takes(&(StubOptions){ 0 }, "cuda", "cuda:0, Stub 0 (100 units at 1.50 GHz), before ");
    takes(&(StubOptions){ 0 }, "cuda", "cpu");
}

static void test_the_card_with_more_units(void **state)
{
    NEEDS_PLUGIN();
    takes(&(StubOptions){ .devices = 3 }, "cuda",
          "cuda:2, Stub 2 (164 units at 1.50 GHz), before cuda:0, cuda:1");
}

/* Then whatever else this machine has, which in tests is no card. */
static void test_cards_that_cannot_be_used(void **state)
{
    QnDevice *d;
    QnDeviceInfo info = { 0 };
    NEEDS_PLUGIN();
    if (qn_device_open_named("opencl:0", NULL, &d) == QN_OK) {
        assert_ok(qn_device_info(d, &info));
        qn_device_close(d);
        if (info.kind != QN_DEVICE_CPU)
            skip_because("this machine has an OpenCL device that is no CPU");
    }
    takes(&(StubOptions){ .devices = -1 }, "cpu", "cpu; ");
    takes(&(StubOptions){ .driver_version = 11000 }, "cpu", "cpu; ");
    takes(&(StubOptions){ .sm = 70 }, "cpu", "cuda:0 (cannot be used: quern doctor says why)");
}

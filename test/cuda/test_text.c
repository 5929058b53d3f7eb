/* Device text in two stages, and launches that do many steps, through the CUDA plugin on the stub
 * driver. timeout: 900 */
#include "cuda/device.h"

#include "backend/device_batches.h"
#include "backend/device_convs.h"
#include "backend/device_folds.h"

static bool have;

static int group_setup(void **state)
{
    (void)state;
    have = cuda_setup();
    return 0;
}

static void with_device(void (*check)(QnDevice *d))
{
    QnDevice *d;
    if (!have)
        skip_because("built without CUDA's headers");
    stub_set(&(StubOptions){ .runs_kernels = true });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    check(d);
    qn_device_close(d);
    assert_nothing_left("after the device is closed");
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

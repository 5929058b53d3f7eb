/* Batches that travel to an OpenCL device (PoCL where there is no GPU) while it computes: the same
 * bits as without.
 * timeout: 900 pocl: -cl-opt-disable */
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

static void test_batches_do_not_mix(void **state)
{
    check_apart(open_device());
}

static void test_far_memory_gives_the_same_bits(void **state)
{
    QnDevice *d = open_device();
    QnDeviceInfo info;
    assert_ok(qn_device_info(d, &info));
    if (!info.far) {
        qn_device_close(d);
        skip_because("the device reaches no memory of the host");
    }
    check_far(d, recipe);
}

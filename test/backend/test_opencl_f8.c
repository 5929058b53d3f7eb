/* Floats of 8 bits by device text on an OpenCL device (PoCL where there is no GPU), and on the CPU
 * by its kernels.
 * timeout: 900 pocl: -cl-opt-disable */
#include "backend/device_f8.h"

#include "backend/opencl/opencl.h"

static void with_device(const char *name, void (*check)(QnDevice *d))
{
    QnDevice *d;
    assert_ok(qn_device_open_named(name, NULL, &d));
    check(d);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

static void with_opencl(void (*check)(QnDevice *d))
{
#ifdef QN_HAVE_OPENCL
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    with_device("opencl:0", check);
#else
    (void)check;
    skip_because("built without OpenCL");
#endif
}

static void test_casts(void **state)
{
    (void)state;
    with_opencl(check_f8_casts);
}

static void test_matrices(void **state)
{
    (void)state;
    with_opencl(check_f8_matrices);
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    with_device("cpu", check_f8_matrices);
}

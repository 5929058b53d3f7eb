/* A training step through the CUDA plugin, on a stub driver that runs the device text on the host:
 * the same weights as on the CPU, launched one by one and replayed as a graph. labels: slow
 * timeout: 300 */
#include "cuda/device.h"

#include "backend/small_net.h"

static bool have;

static int group_setup(void **state)
{
    have = cuda_setup();
    return 0;
}

static int setup(void **state)
{
    if (have)
        stub_set(&(StubOptions){ .runs_kernels = true });
    return 0;
}

static void test_training_equals_cpu(void **state)
{
    QnDevice *cuda, *cpu;
    int64_t n, n_cpu;
    int on_host = 0, of_cpu = 0;
    if (!have)
        skip_because("built without CUDA's headers");
    assert_ok(qn_device_open_named("cuda:0", NULL, &cuda));
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    float *got = train(cuda, &n, &on_host), *want = train(cpu, &n_cpu, &of_cpu);
    assert_int_equal(n, n_cpu);
    for (int64_t i = 0; i < n; i++) {
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
            fail_msg("state element %lld is %g on CUDA, %g on the CPU", (long long)i, got[i],
                     want[i]);
    }
    free(got);
    free(want);
    assert_int_equal(cuda->now_bytes, 0);
    qn_device_close(cuda);
    qn_device_close(cpu);
    StubCounts c = counts();
    print_message("%d nodes on the host, %lld launches, %lld replays, %lld programs compiled\n",
                  on_host, (long long)c.launches, (long long)c.replays, (long long)c.compiles);
    assert_int_equal(on_host, 0);
    assert_int_equal(c.replays, STEPS - 1);
    assert_nothing_left("after training");
}

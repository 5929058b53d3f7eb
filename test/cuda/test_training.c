/* A training step through the CUDA plugin, on a stub driver that runs the device text on the host:
 * the same weights as on the CPU, launched one by one and replayed as a graph. labels: slow
 * timeout: 900 */
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

/* bits of cublasLtEpilogue_t, which needs CUDA's headers */
enum { GELU = 32, GELU_GRADIENT = 64, BIAS_GRADIENT = 16 };

/* epilogues: those that cublasLt must have had among others */
static void check(const SmallNet *net, unsigned epilogues)
{
    QnDevice *cuda, *cpu;
    int on_host = 0;
    if (!have)
        skip_because("built without CUDA's headers");
    assert_ok(qn_device_open_named("cuda:0", NULL, &cuda));
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    compare_devices(net, cuda, cpu, &on_host);
    qn_device_close(cuda);
    qn_device_close(cpu);
    StubCounts c = counts();
    print_message(
        "%lld launches, %lld products of cublasLt, %lld replays, %lld programs compiled\n",
        (long long)c.launches, (long long)c.products, (long long)c.replays, (long long)c.compiles);
    assert_int_equal(on_host, 0);
    assert_int_equal(c.replays, STEPS - 1);
    assert_true(c.products > 0);
    assert_int_equal(c.epilogues & epilogues, epilogues);
    assert_nothing_left("after training");
}

static void test_convolutional_net(void **state)
{
    check(&conv_net, 0);
}

static void test_transformer(void **state)
{
    check(&gpt_net, GELU | GELU_GRADIENT | BIAS_GRADIENT);
}

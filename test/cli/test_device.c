/* --device auto and --device-memory, as the commands take and document them. labels: cli */
#include "cli/program.h"

#include "backend/opencl/opencl.h"
#include "rt/device.h"

#define RECIPE                                                                                     \
    "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"                           \
    "'train': {'steps': 3, 'batch': 10, 'lr': 0.02, 'threads': 1}}"

static int group_setup(void **state)
{
    toy_images("a", 40);
    toy_images("b", 20);
    toy_recipe("r.json", RECIPE);
    setenv("QUERN_LIBCUDA", "/nowhere/libcuda.so.1", 1); /* whatever this machine has */
    assert_runs("train r.json -o cpu");
    return 0;
}

static bool has_opencl(bool *is_cpu, bool *is_far)
{
    QnDevice *d;
    QnDeviceInfo info;
    if (qn_device_open_named("opencl:0", NULL, &d) != QN_OK)
        return false;
    assert_ok(qn_device_info(d, &info));
    *is_cpu = info.kind == QN_DEVICE_CPU;
    *is_far = info.far != NULL;
    qn_device_close(d);
    return true;
}

static void test_auto_says_what_it_takes(void **state)
{
    static const char *const commands[] = { "train r.json -o auto --device auto",
                                            "eval cpu --device auto",
                                            "explain r.json --device auto" };
    bool is_cpu, is_far, has = has_opencl(&is_cpu, &is_far);
    for (int i = 0; i < QN_COUNT(commands); i++) {
        assert_runs(commands[i]);
        const char *line = strstr(program_err, "--device auto: ");
        assert_non_null(line);
        if (!has)
            assert_contains(line, "--device auto: cpu; there is no other device");
        else if (is_cpu)
            assert_contains(line, "opencl:0 (is the CPU itself)");
        assert_null(strstr(line + 1, "--device auto"));
    }
    if (has && is_cpu)
        assert_contains(program_err, "--device auto: cpu; passed over");
    assert_runs("eval cpu --device cpu");
    assert_null(strstr(program_err, "auto"));
}

/* Memory of a device that has no shared one, or is not to use it, is told in one line. */
static void test_a_device_without_shared_memory(void **state)
{
    bool is_cpu, is_far;
    if (!has_opencl(&is_cpu, &is_far))
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    setenv("QUERN_OPENCL_SVM", "0", 1);
    assert_runs("eval cpu --device opencl:0");
    const char *line = strstr(program_err, "tensors are buffer objects");
    assert_non_null(line);
    assert_null(strstr(line + 1, "tensors are buffer objects"));
    assert_contains(program_err, "QUERN_OPENCL_SVM=0");
    setenv("QUERN_OPENCL_SVM", "off", 1);
    assert_refuses("eval cpu --device opencl:0", 2, "QUERN_OPENCL_SVM is 'off'", "0");
    unsetenv("QUERN_OPENCL_SVM");
    assert_runs("eval cpu --device opencl:0");
    assert_null(strstr(program_err, "buffer objects"));
}

static void test_help_and_mistakes(void **state)
{
    static const char *const commands[] = { "train", "eval",    "predict",  "run",
                                            "diff",  "explain", "generate", "test-onnx" };
    for (int i = 0; i < QN_COUNT(commands); i++) {
        char args[64];
        snprintf(args, sizeof args, "%s --help", commands[i]);
        assert_runs(args);
        assert_contains(program_out, "--device NAME");
        assert_contains(program_out, "auto");
    }
    assert_refuses("train r.json -o x --device fastest", 2, "fastest", "auto");
    assert_refuses("train r.json -o x --device-memory many", 2, "--device-memory", "512M");
    assert_refuses("train r.json -o x --device-memory 0", 2, "--device-memory", "'0'");
    assert_refuses("train r.json -o x --device-memory 6GB", 2, "--device-memory", "'6GB'");
    assert_refuses("train r.json -o x --device-memory 9999999T", 2, "--device-memory", "9999999T");
}

/* The CPU has no other memory to go to. */
static void test_the_cpu_refuses(void **state)
{
    assert_refuses("train r.json -o x --device-memory 10K", 1, "10240 bytes of the device",
                   "cannot allocate");
    assert_true(access(temp_path("x"), F_OK) != 0);
    assert_runs("train r.json -o roomy --device-memory 1G");
    assert_null(strstr(program_err, "this takes"));
}

static void test_far_memory_is_announced(void **state)
{
    bool is_cpu, is_far;
    if (!has_opencl(&is_cpu, &is_far) || !is_far)
        skip_because("no OpenCL device that reaches memory of the host");
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train r.json -o near --device opencl:0 --json");
    assert_null(strstr(program_err, "this takes"));
    const QnJson *sum = qn_json_find(json_lines(arena, &n), "weights_sha256");
    assert_runs("train r.json -o far --device opencl:0 --json --device-memory 8K");
    assert_contains(program_err, "this takes ");
    assert_contains(program_err, "cross the bus, for ");
    assert_contains(program_err, "the update takes ");
    assert_contains(program_err, "batch");
    const QnJson *end = json_lines(arena, &n);
    assert_string_equal(qn_json_find(end, "weights_sha256")->string, sum->string);
    assert_true(json_number(end, "planned_peak_bytes") == json_number(end, "allocated_peak_bytes"));
    assert_runs("eval far --device opencl:0 --device-memory 1K");
    assert_contains(program_err, "each batch");
    qn_arena_free(arena);
}

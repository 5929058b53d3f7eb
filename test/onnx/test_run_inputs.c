/* What `quern run` says about inputs and options that do not go with the model. labels: onnx cli */
#include "cli/program.h"

#include "io/npy.h"
#include "onnx/model.h"

static const float numbers[12] = { 1, -1, 0.5F, 2 };

static int group_setup(void **state)
{
    static const char *const in[] = { "x" }, *const out[] = { "y" };
    Made m;
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(-1, 2));
    ((QnOnnxType *)m.input[0].type)->dim_name[0] = "batch";
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(-1, 2));
    made_node(&m, "Relu", in, 1, out, 1);
    if (qn_onnx_write(&m.model, temp_path("net.onnx"), false) == QN_EUNSUPPORTED)
        return 0; /* each test skips */
    assert_ok(qn_npy_write(temp_path("x.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 2 }, numbers));
    assert_ok(qn_npy_write(temp_path("wide.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 3 }, numbers));
    assert_ok(qn_npy_write(temp_path("flat.npy"), QN_DTYPE_F32, 1, (int64_t[]){ 2 }, numbers));
    assert_ok(qn_npy_write(temp_path("f64.npy"), QN_DTYPE_F64, 2, (int64_t[]){ 2, 2 }, numbers));
    return 0;
}

static void need_onnx(void)
{
    if (access(temp_path("net.onnx"), R_OK))
        skip_because("built without protobuf-c");
}

static void test_types(void **state)
{
    need_onnx();
    assert_runs("run net.onnx -i x=x.npy");
    assert_refuses("run net.onnx -i x=wide.npy", 2, "input 'x' is f32[2,3]",
                   "the model takes f32[batch,2]");
    assert_refuses("run net.onnx -i x=flat.npy", 2, "is f32[2]", "takes f32[batch,2]");
    assert_refuses("run net.onnx -i x=f64.npy", 2, "is f64[2,2]", "takes f32[batch,2]");
    assert_refuses("run net.onnx -i x=x.npy x=wide.npy", 2, "input 'x'", "twice");
    assert_refuses("run net.onnx -i x=x.npy x=x.npy --each x", 2, "input 'x'", "twice");
    assert_refuses("run net.onnx -i x=wide.npy --each x", 2, "is f32[3]", "takes f32[batch,2]");
}

static void test_options(void **state)
{
    need_onnx();
    assert_refuses("run net.onnx --data nodir", 2, "nodir", "no such folder");
    assert_refuses("run net.onnx --data nodir --check", 2, "nodir", "no such folder");
    assert_int_equal(mkdir(temp_path("empty"), 0700), 0);
    assert_refuses("run net.onnx --data empty", 2, "empty", "has no input_0.pb");
    assert_refuses("run net.onnx --data empty --check", 2, "empty", "has no output_0.pb");
    assert_refuses("run net.onnx -i x=x.npy --device null", 2, "null", "computes nothing");
    assert_refuses("run net.onnx -i x=x.npy --feed x=y", 2, "--feed", "--each");
}

static void write_value(const char *path, int64_t columns)
{
    const QnTensor t = { .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(2, columns) },
                         .data = numbers };
    assert_ok(qn_onnx_write_tensor(temp_path(path), "v", &t));
}

/* Relu of 1 -1 0.5 2 is 1 0 0.5 2. */
static void test_check(void **state)
{
    need_onnx();
    assert_int_equal(mkdir(temp_path("set"), 0700), 0);
    write_value("set/input_0.pb", 2);
    write_value("set/output_0.pb", 2);
    assert_int_equal(run("run net.onnx --data set --check"), 3);
    assert_contains(program_out, "\n1 of 4 elements differ; largest error 1\n");
    assert_refuses("run net.onnx --data set --check -i x=x.npy", 2, "--check", "--input");
    write_value("set/output_0.pb", 3);
    assert_int_equal(run("run net.onnx --data set --check"), 3);
    assert_string_equal(program_out, "output 'y' is f32[2,2], expected f32[2,3]\n");
    assert_runs("run net.onnx --data set -i x=x.npy");
}

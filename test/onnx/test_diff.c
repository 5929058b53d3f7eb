/* `quern diff` and `quern run --all`. labels: onnx cli */
#include "cli/program.h"

#include "base/file.h"
#include "io/npy.h"
#include "onnx/model.h"

static const float w[6] = { 1, 2, 3, 4, 5, 6 }, x[4] = { 1, -1, 0.5F, 2 };
static const float bias[3] = { 0, 10, -20 }, other_bias[3] = { 0, 10, -20.5F };

/* h/1 = x w; s = h/1 + b; y = relu(s) */
static QnStatus write_net(const char *path, const float *b)
{
    static const char *const in0[] = { "x", "w" }, *const out0[] = { "h/1" };
    static const char *const in1[] = { "h/1", "b" }, *const out1[] = { "s" };
    static const char *const out2[] = { "y" };
    QnTensor tw = { .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(2, 3) }, .data = w };
    QnTensor tb = { .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(3) }, .data = b };
    Made m;
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(-1, 2));
    ((QnOnnxType *)m.input[0].type)->dim_name[0] = "batch";
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(-1, 3));
    made_init(&m, "w", &tw);
    made_init(&m, "b", &tb);
    made_node(&m, "MatMul", in0, 2, out0, 1);
    made_node(&m, "Add", in1, 2, out1, 1);
    made_node(&m, "Relu", out1, 1, out2, 1);
    return qn_onnx_write(&m.model, temp_path(path), false);
}

static int group_setup(void **state)
{
    if (write_net("net.onnx", bias) == QN_EUNSUPPORTED)
        return 0; /* each test skips */
    assert_ok(write_net("other.onnx", other_bias));
    assert_ok(qn_npy_write(temp_path("x.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 2 }, x));
    assert_runs("run net.onnx --input x=x.npy --all -o all");
    return 0;
}

static void need_onnx(void)
{
    FILE *f = fopen(temp_path("other.onnx"), "rb");
    if (!f)
        skip_because("built without protobuf-c");
    fclose(f);
}

static void test_all(void **state)
{
    QnNpy s;
    need_onnx();
    assert_runs("run net.onnx --input x=x.npy --all -o all");
    assert_contains(program_out, "h/1: f32[2,3]");
    assert_ok(qn_npy_read(temp_path("all/s.npy"), &s));
    /* rows of x w: -3 -3 -3; 8.5 11 13.5 */
    static const float want[6] = { -3, 7, -23, 8.5F, 21, -6.5F };
    assert_memory_equal(s.data, want, sizeof want);
    qn_npy_fini(&s);
    assert_refuses("run net.onnx --input x=x.npy --all", 2, "--all", "--output");
}

static void test_equal(void **state)
{
    need_onnx();
    assert_runs("diff net.onnx --against all --input x=x.npy");
    assert_string_equal(program_out, "equal: 3 values of 3 nodes\n");
    assert_runs("diff net.onnx --against net.onnx --input x=x.npy");
    assert_string_equal(program_out, "equal: 3 values of 3 nodes\n");
}

/* s is wrong in one element, y has no file, and a file is nobody's. */
static void test_different(void **state)
{
    static const float s[6] = { -3, 7, -23, 8.5F, 21.25F, -6.5F },
                       h[6] = { -3, -3, -3, 8.5F, 11, 13.5F };
    need_onnx();
    assert_ok(qn_file_make_dirs(temp_path("bad")));
    assert_ok(qn_npy_write(temp_path("bad/h_1.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 3 }, h));
    assert_ok(qn_npy_write(temp_path("bad/s.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 3 }, s));
    assert_ok(qn_npy_write(temp_path("bad/h_9.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 3 }, s));
    assert_int_equal(run("diff net.onnx --against bad --input x=x.npy"), 3);
    assert_contains(program_out, "first difference: node 's' (Add), number 1\n"
                                 "  reads h/1: f32[2,3]\n  reads b: f32[3]\n"
                                 "  makes s: f32[2,3]\n");
    assert_contains(program_out, "largest error 0.25 at [1,1]: is 21, expected 21.25; 1 elements");
    assert_contains(program_out, "  1 nodes before it agree; 1 of 2 values differ in all\n");
    assert_contains(program_out, "without a reference: y\n");
    assert_contains(program_out, "no value of the model: h_9.npy\n");
    assert_int_equal(run("diff net.onnx --against bad --input x=x.npy --rtol 0.1"), 0);
}

static void test_json(void **state)
{
    int n;
    need_onnx();
    QnArena *arena = qn_arena_new();
    assert_int_equal(run("diff net.onnx --against other.onnx --input x=x.npy --json"), 3);
    const QnJson *o = json_lines(arena, &n);
    assert_string_equal(json_text(o, "node"), "s");
    assert_string_equal(json_text(o, "op"), "Add");
    assert_string_equal(json_text(o, "at"), "[0,2]");
    assert_string_equal(json_text(qn_json_find(o, "inputs"), "b"), "f32[3]");
    assert_true(json_number(o, "got") == -23);
    assert_true(json_number(o, "want") == -23.5);
    assert_true(json_number(o, "nodes_agreed") == 1);
    qn_arena_free(arena);
}

static void test_refused(void **state)
{
    need_onnx();
    assert_refuses("diff net.onnx --input x=x.npy", 2, "--against", "missing");
    assert_refuses("diff net.onnx --input x=x.npy --against nowhere", 2, "nowhere", "no such");
    assert_refuses("diff net.onnx --against all", 2, "'x'", "--input");
    assert_refuses("diff net.onnx --input x=x.npy --against .", 2, "h_1.npy", "no file");
}

static void test_dims(void **state)
{
    need_onnx();
    assert_runs("run net.onnx --input x=x.npy --dim batch=2");
    assert_refuses("run net.onnx --input x=x.npy --dim batch=3", 2, "batch=3", "f32[2,2]");
    assert_refuses("run net.onnx --input x=x.npy --dim seq=3", 2, "'seq'", "there are: batch");
    assert_refuses("run net.onnx --input x=x.npy --dim batch=0", 2, "batch", "'0'");
    assert_runs("export net.onnx --dim batch=5 -o five.onnx --force");
    assert_refuses("run five.onnx --input x=x.npy --dim batch=5", 2, "batch", "all of its dims");
    assert_refuses("export net.onnx -o six.onnx", 2, "'batch'", "--dim");
}

/* A dim that the file gives no name to is called after its input and axis. */
static void test_dims_without_name(void **state)
{
    static const char *const in[] = { "x" }, *const out[] = { "y" };
    Made m;
    need_onnx();
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, -1));
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(2, -1));
    made_node(&m, "Neg", in, 1, out, 1);
    assert_ok(qn_onnx_write(&m.model, temp_path("noname.onnx"), false));
    assert_refuses("explain noname.onnx", 2, "'x:1'", "--dim");
    assert_refuses("bench noname.onnx --steps 1", 2, "'x:1'", "--dim");
    assert_refuses("bench noname.onnx --dim x=3", 2, "'x'", "there are: x:1");
    assert_runs("bench noname.onnx --dim x:1=3 --steps 1");
    assert_refuses("bench noname.onnx --dim x:1=3 --sweep batch", 2, "--sweep", "recipes");
    assert_refuses("bench noname.onnx --dim x:1=3 --eval", 2, "--eval", "recipes");
    assert_refuses("bench noname.onnx --set z=x.npy", 2, "no input 'z'", "its inputs: x");
    assert_runs("explain noname.onnx --dim x:1=3");
    assert_contains(program_out, "f32[2,3]");
    assert_runs("inspect noname.onnx");
    assert_contains(program_out, "the first is 'x:1'");
    assert_refuses("run noname.onnx -i x=x.npy --dim x:1=3", 2, "x:1=3", "f32[2,2]");
}

/* An operator of ours that ONNX files are read to, but not written from. */
static void test_not_written(void **state)
{
    static const char *const in[] = { "x" }, *const out[] = { "y" };
    Made m;
    need_onnx();
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_node(&m, "RandomUniformLike", in, 1, out, 1);
    assert_ok(qn_onnx_write(&m.model, temp_path("random.onnx"), false));
    assert_refuses("export random.onnx -o no.onnx", 4, "random.onnx: node",
                   "does not write operator");
}

/* What bench makes up is said: zeros for integers. */
static void test_bench_integers(void **state)
{
    static const char *const in[] = { "x" }, *const out[] = { "y" };
    Made m;
    need_onnx();
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_I64, QN_SHAPE(2, 2));
    made_output(&m, "y", QN_DTYPE_I64, QN_SHAPE(2, 2));
    made_node(&m, "Neg", in, 1, out, 1);
    assert_ok(qn_onnx_write(&m.model, temp_path("whole.onnx"), false));
    assert_runs("bench whole.onnx --steps 1");
    assert_runs("bench whole.onnx --steps 1 --profile --json");
    assert_contains(program_out, "\"run_ns\": ");
    assert_contains(program_out, "\"share_of_gap\": ");
    assert_contains(program_err, "input 'x', i64[2,2], is not given: it is all zeros");
}

/* Names that would be one file. */
static void test_same_file(void **state)
{
    static const char *const in[] = { "x" }, *const a[] = { "a/b" }, *const b[] = { "a_b" };
    Made m;
    need_onnx();
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_output(&m, "a_b", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_node(&m, "Neg", in, 1, a, 1);
    made_node(&m, "Relu", a, 1, b, 1);
    assert_ok(qn_onnx_write(&m.model, temp_path("same.onnx"), false));
    assert_runs("run same.onnx -i x=x.npy -o one");
    assert_refuses("run same.onnx -i x=x.npy --all -o two", 2, "two/a_b.npy", "two values");
}

/* Strings and sequences are written in files of their own, and found again. */
static void test_other_kinds(void **state)
{
    static const char *const in[] = { "x", "x" }, *const a[] = { "list" };
    static const char *const b[] = { "n" }, *const c[] = { "text" };
    static const QnOnnxAttr to = { .name = "to", .kind = QN_ONNX_INT, .i = 8 };
    Made m;
    need_onnx();
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_output(&m, "n", QN_DTYPE_I64, (QnShape){ 0 });
    made_node(&m, "SequenceConstruct", in, 2, a, 1);
    made_node(&m, "SequenceLength", a, 1, b, 1);
    QnOnnxDef *cast = made_node(&m, "Cast", b, 1, c, 1);
    cast->attr = &to;
    cast->n_attr = 1;
    assert_ok(qn_onnx_write(&m.model, temp_path("kinds.onnx"), false));
    assert_runs("run kinds.onnx -i x=x.npy --all -o kinds");
    assert_runs("diff kinds.onnx -i x=x.npy --against kinds");
    assert_string_equal(program_out, "equal: 3 values of 3 nodes\n");
    assert_ok(qn_npy_write(temp_path("kinds/list.1.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 2, 2 }, w));
    assert_int_equal(run("diff kinds.onnx -i x=x.npy --against kinds"), 3);
    assert_contains(program_out, "node 'list' (SequenceConstruct)");
    assert_contains(program_out, "largest error 3 at [0,1]"); /* -1 where w has 2 */
}

static void test_unsupported(void **state)
{
    static const char *const in[] = { "x" }, *const out[] = { "y" };
    Made m;
    need_onnx();
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(2, 2));
    made_node(&m, "Unheard", in, 1, out, 1);
    assert_ok(qn_onnx_write(&m.model, temp_path("odd.onnx"), false));
    assert_int_equal(run("diff odd.onnx -i x=x.npy --against all"), 4);
    assert_contains(program_err, "Unheard");
}

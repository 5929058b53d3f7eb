/* `quern inspect MODEL.onnx`. labels: onnx cli */
#include "cli/program.h"

#include "io/npy.h"
#include "onnx/model.h"

static const float w[6] = { 1, 2, 3, 4, 5, 6 }, bias[3] = { 0, 10, -20 };
static const QnTensor tw = { .type = { .dtype = QN_DTYPE_F32, .shape = { 2, { 2, 3 } } },
                             .data = w };
static const QnTensor tb = { .type = { .dtype = QN_DTYPE_F32, .shape = { 1, { 3 } } },
                             .data = bias };

static const char *const in_h[] = { "x", "w" }, *const out_h[] = { "h" };
static const char *const in_s[] = { "h", "b" }, *const out_s[] = { "s" };
static const char *const out_t[] = { "t" };

/* s = x w + b, x[batch,2]; `last` (may be NULL) makes t of s. */
static void begin_net(Made *m, const char *last)
{
    made_begin(m, 17);
    made_input(m, "x", QN_DTYPE_F32, QN_SHAPE(-1, 2));
    ((QnOnnxType *)(uintptr_t)m->input[0].type)->dim_name[0] = "batch";
    made_output(m, last ? "t" : "s", QN_DTYPE_F32, QN_SHAPE(-1, 3));
    made_init(m, "w", &tw);
    made_init(m, "b", &tb);
    made_node(m, "MatMul", in_h, 2, out_h, 1);
    made_node(m, "Add", in_s, 2, out_s, 1);
    if (last)
        made_node(m, last, out_s, 1, out_t, 1);
}

static void write_net(const char *path, const char *last)
{
    Made m;
    begin_net(&m, last);
    if (qn_onnx_write(&m.model, temp_path(path), false) == QN_EUNSUPPORTED)
        skip_because("built without protobuf-c");
}

static const QnJson *node(const QnJson *o, int64_t i)
{
    const QnJson *list = qn_json_find(o, "nodes");
    assert_true(list && i < list->n);
    return &list->items[i];
}

static void test_figures(void **state)
{
    int n;
    QnArena *arena = qn_arena_new();
    write_net("net.onnx", NULL);
    assert_runs("inspect net.onnx --json --dim batch=4");
    const QnJson *o = json_lines(arena, &n);
    assert_int_equal(n, 1);
    assert_string_equal(json_text(o, "format"), "ONNX");
    assert_true(json_number(o, "ir_version") == 8);
    assert_string_equal(json_text(&qn_json_find(o, "inputs")->items[0], "type"), "f32[batch,2]");
    const QnJson *h = node(o, 0), *s = node(o, 1);
    assert_string_equal(json_text(h, "op"), "MatMul");
    assert_string_equal(json_text(h, "type"), "f32[4,3]");
    assert_true(json_number(h, "parameters") == 6 && json_number(s, "parameters") == 3);
    assert_true(json_number(h, "flops") == 2 * 4 * 2 * 3 && json_number(s, "flops") == 4 * 3);
    assert_true(json_number(h, "bytes_moved") == 4 * (4 * 2 + 6 + 4 * 3));
    assert_true(json_number(h, "result_bytes") == 4 * 4 * 3);
    assert_true(json_number(o, "parameters") == 9 && json_number(o, "parameter_bytes") == 36);
    assert_true(json_number(o, "flops") == 48 + 12);
    assert_true(json_number(o, "planned_peak_bytes") >= 4 * 4 * 3);
    assert_null(qn_json_find(o, "assumed_dim"));
    assert_runs("inspect net.onnx --json --batch 8");
    assert_string_equal(json_text(node(json_lines(arena, &n), 0), "type"), "f32[8,3]");
    qn_arena_free(arena);
}

static void test_table(void **state)
{
    write_net("net.onnx", NULL);
    assert_runs("inspect net.onnx");
    assert_contains(program_out, "net.onnx: ONNX, IR version 8, opset 17, by test \n");
    assert_contains(program_out, "inputs\n  x  f32[batch,2]\noutputs\n  s  f32[?,3]\n");
    assert_contains(program_out, "layer  operator  output    parameters  computes  moves  result");
    assert_contains(program_out, "h      MatMul    f32[1,3]           6   12 FLOP   44 B    12 B  "
                                 "< 80 % of FLOPs, 60 % of memory\n");
    assert_contains(program_out, "9 parameters, 36 B; 15 FLOP");
    assert_contains(program_out, "open dims are taken to be 1, the first is 'batch'");
    assert_contains(program_out, "FLOPs by operator\nMatMul");
    /* the content tells, whatever the name */
    assert_int_equal(rename(temp_path("net.onnx"), temp_path("net.bin")), 0);
    assert_runs("inspect net.bin");
    assert_contains(program_out, "net.bin: ONNX");
    assert_refuses("inspect net.bin --dim seq=2", 2, "'seq'", "batch");
    assert_refuses("inspect net.bin --stats", 2, "--stats", "weights");
}

/* All that is not supported is listed, also behind another; the rest has its figures. */
static void test_unsupported(void **state)
{
    static const char *const more[] = { "u" };
    Made m;
    write_net("odd.onnx", "Unheard");
    assert_int_equal(run("inspect odd.onnx"), 4);
    assert_contains(program_out, "h      MatMul    f32[1,3]");
    assert_contains(program_out, "\n1 node is not supported:\n  node 't': Unheard-17: not ");
    assert_string_equal(program_err, "");
    begin_net(&m, "Unheard");
    made_node(&m, "Unseen", out_t, 1, more, 1);
    assert_ok(qn_onnx_write(&m.model, temp_path("odd.onnx"), false));
    assert_int_equal(run("inspect odd.onnx"), 4);
    assert_contains(program_out, "\n2 nodes are not supported:\n  node 't'");
    assert_contains(program_out, "\n  node 'u': Unseen-17: not supported\n");
}

/* A loop-like operator whose result's shape depends on the elements: no fault, but shapes end. */
static void test_open(void **state)
{
    static const char *const in[] = { "t" }, *const out[] = { "back" };
    Made m;
    begin_net(&m, "NonZero");
    made_node(&m, "Neg", in, 1, out, 1);
    if (qn_onnx_write(&m.model, temp_path("open.onnx"), false) == QN_EUNSUPPORTED)
        skip_because("built without protobuf-c");
    assert_runs("inspect open.onnx");
    assert_contains(program_out, "1 node needs elements that only a run can tell, first 't' (Non");
    assert_contains(program_out, "back   Neg       ?");
    assert_null(strstr(program_out, "not supported"));
    assert_ok(qn_npy_write(temp_path("x.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 1, 2 }, w));
    assert_runs("inspect open.onnx --input x=x.npy"); /* 1 2 w = 9 12 15, plus b: no zero */
    assert_contains(program_out, "back   Neg       i64[2,3]");
}

/* Composite operators cost what they are made of. */
static void test_composite(void **state)
{
    static const char *const in[] = { "x", "w" }, *const out[] = { "y" };
    static const float k[2 * 3 * 2 * 2];
    static const QnTensor tk = { .type = { .dtype = QN_DTYPE_F32, .shape = { 4, { 2, 3, 2, 2 } } },
                                 .data = k };
    QnArena *arena = qn_arena_new();
    int n;
    Made m;
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(1, 2, 4, 4));
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(1, 3, 5, 5));
    made_init(&m, "w", &tk);
    made_node(&m, "ConvTranspose", in, 2, out, 1);
    if (qn_onnx_write(&m.model, temp_path("up.onnx"), false) == QN_EUNSUPPORTED)
        skip_because("built without protobuf-c");
    assert_runs("inspect up.onnx --json");
    const QnJson *y = node(json_lines(arena, &n), 0);
    assert_string_equal(json_text(y, "type"), "f32[1,3,5,5]");
    /* each of 2 x 4 x 4 elements into 3 x 2 x 2 */
    assert_true(json_number(y, "flops") >= 2.0 * 32 * 12);
    qn_arena_free(arena);
}

/* What quern run and quern test-onnx say about files that are no models, or not for us: quickly, in
 * one line, with the promised exit code. labels: onnx */
#include "cli/program.h"

#include "onnx/wire.h"

static void write_model(const char *name, const char *text)
{
    Wire *w = calloc(1, sizeof *w);
    if (!w || *wire_parse(w, text))
        abort();
    (void)temp_file(name, w->data, w->n);
    free(w);
}

static void skip_without_onnx(void)
{
    write_model("none.onnx", "");
    if (run("run none.onnx") && strstr(program_err, "built without"))
        skip_because("built without protobuf-c");
}

static void test_no_model(void **state)
{
    skip_without_onnx();
    (void)temp_file("text.onnx", "nothing of the kind\n", 20);
    assert_int_equal(mkfifo(temp_path("pipe.onnx"), 0600), 0);
    assert_refuses("run missing.onnx", 2, "missing.onnx", "No such file");
    assert_refuses("run nowhere/model.onnx", 2, "nowhere/model.onnx", "No such file");
    assert_refuses("run .", 2, ".", "not a regular file");
    assert_refuses("run /dev/zero", 2, "/dev/zero", "not a regular file");
    assert_refuses("run pipe.onnx", 2, "pipe.onnx", "not a regular file");
    assert_refuses("run none.onnx", 2, "none.onnx", "no graph");
    assert_refuses("run text.onnx", 2, "text.onnx: byte ", "");
}

static void test_bad_models(void **state)
{
    skip_without_onnx();
    write_model("out.onnx", MODEL("5{8\"w\"2=1 1=4 14=1 13{1\"location\"2\"../w\"}}"));
    write_model("gone.onnx", MODEL("5{8\"w\"2=1 1=4 14=1 13{1\"location\"2\"\033[2Jw\"}}"));
    write_model("esc.onnx", MODEL("1{4\"\033[2J\"}"));
    write_model("node.onnx", MODEL(OP("Neg", IN("x") TO("y")) RESULT("y")));
    write_model("huge.onnx", MODEL(INTS("d", "1=1", "7=1125899906842624")
                                       OP("ConstantOfShape", IN("d") TO("y")) RESULT("y")));
    assert_refuses("run out.onnx", 2, "tensor 'w'", "'../w' is not a plain path");
    assert_refuses("run gone.onnx", 2, "'\\x1b[2Jw'", "No such file");
    assert_refuses("run esc.onnx", 2, "esc.onnx: byte ", "control character");
    assert_refuses("run node.onnx", 2, "node 'y' (Neg-17)", "nothing makes its input 'x'");
    assert_refuses("run huge.onnx", 1, "node 'y'", "f32[1125899906842624]");
}

static void test_unsupported(void **state)
{
    skip_without_onnx();
    write_model("newer.onnx", "1=8 8{2=99}7{2\"g\"}");
    write_model("odd.onnx", MODEL(FLOATS("x", "1=1", "0000803f") OP("Frobnicate", IN("x") TO("y"))
                                      RESULT("y")));
    assert_refuses("run newer.onnx", 4, "opset 99", "are supported");
    assert_int_equal(run("run odd.onnx"), 4);
    assert_non_null(strstr(program_err, "Frobnicate-17: not supported"));
    assert_non_null(strstr(program_err, "1 node is not supported\n"));
}

/* All are listed, also what hangs on another; with --json in the object, with the code of the exit.
 */
static void test_problems(void **state)
{
    int n;
    QnArena *arena = qn_arena_new();
    skip_without_onnx();
    write_model("two.onnx",
                MODEL(FLOATS("x", "1=1", "0000803f") OP("Frobnicate", IN("x") TO("a"))
                          OP("Neg", IN("a") TO("b")) OP("Twist", IN("b") TO("y")) RESULT("y")));
    assert_int_equal(run("run two.onnx --json"), 4);
    const QnJson *o = json_lines(arena, &n), *list = qn_json_find(o, "problems");
    assert_int_equal(n, 1);
    assert_int_equal((int)json_number(o, "exit"), 4);
    assert_non_null(list);
    assert_int_equal(list->n, 2);
    assert_string_equal(list->items[1].string,
                        "node 'y': Twist-17: not supported; the nearest that is: Swish");
    assert_int_equal(run("bench two.onnx"), 4);
    assert_non_null(strstr(program_err, "Frobnicate-17: not supported; node 'y': Twist"));
    assert_null(strstr(program_err, "x0a"));
    assert_int_equal(run("export two.onnx -o no.onnx --json"), 4);
    assert_int_equal((int)json_number(json_lines(arena, &n), "exit"), 4);
    qn_arena_free(arena);
}

static void test_cases(void **state)
{
    skip_without_onnx();
    assert_refuses("test-onnx nowhere", 2, "nowhere", "No such file");
    assert_refuses("test-onnx none.onnx", 2, "none.onnx", "Not a directory");
    assert_int_equal(mkdir(temp_path("cases"), 0700), 0);
    assert_refuses("test-onnx cases", 2, "cases", "no folder below it holds a model.onnx");
    assert_int_equal(mkdir(temp_path("cases/\033[2J"), 0700), 0);
    write_model("cases/\033[2J/model.onnx", MODEL("1{4\"\033[2J\"}"));
    assert_int_equal(run("test-onnx cases"), 1);
    assert_non_null(strstr(program_out, "1 failed"));
    assert_null(strchr(program_out, '\033'));
}

/* Recipes whose model is an ONNX file: the run's folder stands alone. labels: cli onnx */
#include "program.h"

#include "onnx/model.h"

#define OF(model)                                                                                  \
    "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n'model': " model ",\n"                    \
    "'train': {'steps': 12, 'batch': 10, 'lr': 0.02, 'seed': 4, 'checkpoint': {'every': 4}}}"

static bool has_onnx;

static int group_setup(void **state)
{
    toy_images("a", 120);
    toy_images("b", 40);
    toy_recipe("built.json", OF("{'layers': [{'conv': {'out': 4}}, 'batch_norm', 'relu', "
                                "'flatten', {'dropout': 0.2}, {'linear': 'outputs'}]}"));
    assert_runs("train built.json -o built --set train.steps=1");
    has_onnx = run("export built -o m.onnx") == 0;
    toy_recipe("r.json", OF("'m.onnx'"));
    toy_recipe("h.json", OF("{'onnx': 'm.onnx', 'head': 'outputs', 'freeze': ['0*', '1*']}"));
    toy_recipe("n.json", OF("{'onnx': 'm.onnx', 'freeze': '*running*'}"));
    return 0;
}

static const char *weights(const char *args, QnArena *arena)
{
    assert_runs(args);
    const char *line = strstr(program_out, "\"weights_sha256\"");
    assert_non_null(line);
    return qn_arena_printf(arena, "%.90s", line);
}

/* Nothing is asked of the original once the run has begun. */
static void test_the_folder_stands_alone(void **state)
{
    if (!has_onnx)
        skip();
    QnArena *arena = qn_arena_new();
    const char *want = weights("train r.json -o whole --json", arena);
    assert_runs("train r.json -o half --set train.steps=8");
    assert_int_equal(rename(temp_path("m.onnx"), temp_path("away.onnx")), 0);
    assert_string_equal(weights("train r.json -o half --resume --json", arena), want);
    assert_runs("eval half");
    assert_runs("export half -o half.onnx");
    assert_runs("export half -o half17.onnx --opset 17 --batch 2");
    assert_runs("inspect half.onnx");
    assert_contains(program_out, "BatchNorm");
    assert_runs("export half -o folded.onnx --fold");
    assert_runs("inspect folded.onnx");
    assert_null(strstr(program_out, "BatchNorm"));
    assert_int_equal(rename(temp_path("half"), temp_path("elsewhere")), 0);
    assert_runs("eval elsewhere");
    assert_int_equal(rename(temp_path("away.onnx"), temp_path("m.onnx")), 0);
    qn_arena_free(arena);
}

static double test_loss(const char *args)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs(args);
    double loss = json_number(json_lines(arena, &n), "test_loss");
    qn_arena_free(arena);
    return loss;
}

/* What is exported is what was trained: a run that begins with it, and does not learn, measures the
 * same. */
static void test_export(void **state)
{
    static const char *const runs[] = { "r.json", "h.json" };
    char args[300];
    for (int i = 0; i < 2 && has_onnx; i++) {
        snprintf(args, sizeof args, "train %s -o x%d --json", runs[i], i);
        double want = test_loss(args);
        snprintf(args, sizeof args, "export x%d -o x%d.onnx", i, i);
        assert_runs(args);
        snprintf(args, sizeof args,
                 "train n.json -o y%d --json --set model.onnx=x%d.onnx train.lr=1e-25 "
                 "train.steps=1",
                 i, i);
        double got = test_loss(args);
        if (!(fabs(got - want) <= 1e-5 * want))
            fail_msg("test_loss %g, expected %g", got, want);
    }
}

static void test_refusals(void **state)
{
    if (!has_onnx)
        skip();
    assert_refuses("train r.json -o bad --set model=none.onnx", 2, "none.onnx", "");
    assert_refuses("train h.json -o bad --set model.output=zzz", 2, "no node of", "zzz");
    assert_refuses("train h.json -o bad --set model.input=zzz", 2, "no input 'zzz'", "it has: x");
    assert_refuses("train h.json -o bad --set model.hed=3", 2, "hed", "head");
    assert_refuses("train r.json -o bad --set data.images.resize=16", 2, "the data is [10,1,16,16]",
                   "input 'x'");
}

/* Two nodes without a gradient between the weights: both are named, and the way out. */
static void test_nodes_without_a_gradient(void **state)
{
    static const char *const x[] = { "x" }, *const a[] = { "a" }, *const ab[] = { "a", "w1" },
                             *const b[] = { "b" }, *const c[] = { "c" }, *const d[] = { "d" },
                             *const dw[] = { "d", "w2" }, *const y[] = { "y" };
    static float numbers[64 * 4];
    const QnTensor w1 = { .type = { .shape = QN_SHAPE(64, 4) }, .data = numbers };
    const QnTensor w2 = { .type = { .shape = QN_SHAPE(4, 4) }, .data = numbers };
    Made m;
    if (!has_onnx)
        skip();
    for (int i = 0; i < QN_COUNT(numbers); i++)
        numbers[i] = (float)(i % 7) - 3;
    made_begin(&m, 15);
    made_init(&m, "w1", &w1);
    made_init(&m, "w2", &w2);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(1, 1, 8, 8));
    made_node(&m, "Flatten", x, 1, a, 1);
    made_node(&m, "MatMul", ab, 2, b, 1);
    made_node(&m, "Floor", b, 1, c, 1);
    made_node(&m, "Round", c, 1, d, 1);
    made_node(&m, "MatMul", dw, 2, y, 1);
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(1, 4));
    assert_ok(qn_onnx_write(&m.model, temp_path("cut.onnx"), false));
    assert_true(run("train r.json -o cut --set model=cut.onnx") != 0);
    assert_contains(program_err, "node 'c': no gradient goes through floor\n");
    assert_contains(program_err, "node 'd': no gradient goes through round\n");
    assert_contains(program_err, "error: ./cut.onnx: no gradient goes through");
    assert_runs("train r.json -o cut --set 'model={onnx: cut.onnx, freeze: w1}'");
}

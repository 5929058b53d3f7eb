/* quern train --init: runs that begin with other weights. labels: cli */
#include "program.h"

#include "io/safetensors.h"

#define RECIPE                                                                                     \
    "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"                           \
    "'train': {'epochs': 3, 'batch': 10, 'lr': 0.02, 'seed': 4}}"

static int group_setup(void **state)
{
    toy_images("a", 120);
    toy_images("b", 40);
    toy_recipe("r.json", RECIPE);
    /* an update that changes nothing: what is measured after it is what the run began with */
    toy_recipe("s.json", "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"
                         "'train': {'steps': 1, 'batch': 10, 'lr': 1e-25, 'seed': 8}}");
    assert_runs("train r.json -o first");
    return 0;
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

static void test_a_run_begins_where_another_ended(void **state)
{
    double want = test_loss("eval first --json");
    assert_true(test_loss("train s.json -o cold --json") != want);
    assert_true(test_loss("train s.json -o warm --init first --json") == want);
    assert_contains(program_err, "first (safetensors): 4 tensors taken");
    assert_runs("train r.json -o resumed --init first --set train.epochs=1");
    double one = test_loss("eval resumed --json");
    assert_runs("train r.json -o resumed --init first --resume --set train.epochs=1");
    assert_true(test_loss("eval resumed --json") == one); /* and not from `first` again */
}

static void test_mismatch(void **state)
{
    static const float numbers[12];
    const QnSafetensor odd[] = {
        { .name = "out.bias", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 4 }, .data = numbers },
        { .name = "out.weight", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 3 }, .data = numbers },
        { .name = "extra", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 3 }, .data = numbers },
    };
    assert_ok(qn_safetensors_save(temp_path("odd.safetensors"), odd, 3, NULL, 0));
    assert_int_equal(run("train s.json -o bad --init odd.safetensors"), 2);
    assert_contains(program_err, "missing     fc1.bias f32[12]\n");
    assert_contains(program_err, "missing     fc1.weight f32[12,64]\n");
    assert_contains(program_err, "unexpected  extra f32[3]\n");
    assert_contains(program_err, "other shape out.weight is f32[3]");
    assert_contains(program_err, "error: odd.safetensors does not fit the model: missing 2, "
                                 "unexpected 1, of another shape 1");
    struct stat info;
    assert_true(stat(temp_path("bad"), &info) != 0); /* no folder was made */
    assert_runs("train s.json -o part --init odd.safetensors --init-partial");
    assert_contains(program_err, "stay as they start: 3; not used: 1");
    assert_contains(program_err, "1 tensor taken");
    assert_refuses("train s.json -o bad --init-partial", 2, "--init-partial needs --init", "");
    assert_refuses("train s.json -o bad --init nowhere", 2, "nowhere", "");
    assert_refuses("train s.json -o bad --init r.json", 2, "r.json", "");
}

static void test_help(void **state)
{
    assert_runs("train --help");
    assert_contains(program_out, "--init WEIGHTS");
    assert_contains(program_out, "--init-partial");
}

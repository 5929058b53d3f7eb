/* A run that its self-test let go on in fp32, as the commands treat and report it. labels: cli */
#include "cli/program.h"

/* Pixels of up to 1e6, which f16 does not hold; a rate that leaves the weights as they are. */
#define RECIPE                                                                                     \
    "{'name': 'toy', 'task': 'classify',\n"                                                        \
    "'data': {'format': 'idx', 'train': {'images': 'a.x', 'labels': 'a.y'}, "                      \
    "'test': {'images': 'b.x', 'labels': 'b.y'}, 'images': {'mean': 0.3, 'std': "                  \
    "0.000001}},\n" TOY_MLP ",\n'train': {'steps': 3, 'batch': 10, 'lr': 1e-20, 'threads': 1}}"

static int group_setup(void **state)
{
    toy_images("a", 40);
    toy_images("b", 20);
    toy_recipe("r.json", RECIPE);
    return 0;
}

static void test_evaluation_is_in_the_run_s_precision(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train r.json -o fell --set train.precision=fp16 --json");
    assert_contains(program_err, "going on in fp32");
    double trained = json_number(json_lines(arena, &n), "test_loss");
    assert_true(isfinite(trained));
    assert_runs("eval fell --json");
    assert_true(json_number(json_lines(arena, &n), "test_loss") == trained);
    qn_arena_free(arena);
}

/* The trial steps' memory is a figure of its own: what the run takes is what was planned. */
static void test_memory_of_the_trial(void **state)
{
    static const char *const args[] = {
        "train r.json -o m0 --json",
        "train r.json -o m1 --json --set train.precision=bf16",
        "train r.json -o m2 --json --set train.precision=fp16",
    };
    QnArena *arena = qn_arena_new();
    int n;
    for (int i = 0; i < QN_COUNT(args); i++) {
        assert_runs(args[i]);
        assert_true((strstr(program_err, "going on in fp32") != NULL) == (i == 2));
        assert_true((strstr(program_err, "memory of the trial steps") != NULL) == (i > 0));
        const QnJson *end = json_lines(arena, &n);
        assert_true((json_number(end, "trial_peak_bytes") > 0) == (i > 0));
        assert_true(json_number(end, "planned_peak_bytes") ==
                    json_number(end, "allocated_peak_bytes"));
    }
    qn_arena_free(arena);
}

/* Products in 8 bits by measurement, as the commands treat them. labels: cli */
#include "cli/program.h"

#include "base/file.h"

#define RECIPE                                                                                     \
    "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n"                                         \
    "'model': {'name': 'mlp', 'hidden': [32, 16]},\n'train': {'steps': 6, 'batch': 16, "           \
    "'lr': 0.01, 'threads': 1, 'precision': 'fp8', 'fp8': 'faster'}}"

static int group_setup(void **state)
{
    toy_images("a", 64);
    toy_images("b", 32);
    toy_recipe("r.json", RECIPE);
    return 0;
}

/* In the file of choices, all that was measured to be one is made the other. */
static void turn(const char *path, const char *from, const char *to)
{
    char text[32768];
    slurp(path, text, sizeof text);
    QnStr out = { 0 };
    const char *p = text;
    for (const char *at; (at = strstr(p, from)); p = at + strlen(from)) {
        qn_str_add_bytes(&out, p, (size_t)(at - p));
        qn_str_add(&out, to);
    }
    assert_true(p != text);
    qn_str_add(&out, p);
    assert_ok(qn_file_write_atomic(path, qn_str_text(&out), out.n));
    qn_str_fini(&out);
}

static double loss_of(const char *args)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs(args);
    double loss = json_number(json_lines(arena, &n), "test_loss");
    qn_arena_free(arena);
    return loss;
}

/* The CPU has no such products; what is found to be faster anyway goes into a run and stays there:
 * for evaluation, and when it goes on, whatever the machine's measurements have become. */
static void test_tune_train_and_eval(void **state)
{
    char text[32768], choices[1200];
    snprintf(choices, sizeof choices, "%s", temp_path("cache/quern/kernels.json"));
    assert_runs("train r.json -o before --json");
    assert_contains(program_err, "none of 2 has been measured on this device");
    double bf16 = loss_of("eval before --json");
    assert_runs("tune r.json");
    assert_contains(program_out, "16x64x32");
    assert_contains(program_out, "the device has no such product: it is in bf16");
    assert_runs("tune r.json --json");
    assert_null(strstr(program_out, "chosen")); /* all is known */
    assert_runs("tune r.json --force --json");
    assert_contains(program_out, "\"emulated\": true");
    turn(choices, "\"kernel\": \"bf16\"", "\"kernel\": \"fp8\"");
    double fp8 = loss_of("train r.json -o run --json");
    assert_contains(program_err, "2 of 2 products that could be in 8 bits are");
    assert_true(fp8 != bf16);
    slurp(temp_path("run/kernels.json"), text, sizeof text);
    assert_contains(text, "fp8 layer ");
    turn(choices, "\"kernel\": \"fp8\"", "\"kernel\": \"bf16\"");
    assert_true(loss_of("eval run --json") == fp8);
    assert_runs("train r.json -o parts --set train.steps=2");
    assert_contains(program_err, "0 of 2 products");
    turn(choices, "\"kernel\": \"bf16\"", "\"kernel\": \"fp8\"");
    assert_true(loss_of("train r.json -o parts --resume --json") == bf16);
    assert_contains(program_err, "as when the run began");
}

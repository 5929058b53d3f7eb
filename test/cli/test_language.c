/* A language model by the program: its figures carry their own names, and it writes.
 * labels: cli */
#include "program.h"

static int group_setup(void **state)
{
    char text[3000] = "";
    while (strlen(text) < 2900)
        strcat(text, "to be or not to be, ");
    temp_file("text.txt", text, strlen(text));
    toy_recipe("lm.json",
               "{'task': 'language', 'data': {'format': 'text', 'train': 'text.txt', "
               "'window': 16}, 'model': {'name': 'gpt2', 'layers': 1, 'heads': 2, 'width': 16}, "
               "'train': {'steps': 6, 'batch': 4, 'lr': 0.01}}");
    return 0;
}

static void test_figures(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train lm.json -o run");
    assert_contains(program_out, "test_perplexity ");
    assert_contains(program_out, " test tokens");
    assert_runs("eval run");
    assert_contains(program_out, " tokens in ");
    assert_runs("eval run --json");
    assert_null(strstr(strstr(program_out, "test_loss") + 1, "test_loss")); /* a key but once */
    const QnJson *o = json_lines(arena, &n);
    double loss = json_number(o, "test_loss");
    assert_true(fabs(json_number(o, "test_perplexity") - exp(loss)) < 1e-6 * exp(loss));
    qn_arena_free(arena);
}

static void test_generate(void **state)
{
    assert_runs("train lm.json -o g");
    assert_runs("generate g -p 'to be' -n 20");
    assert_int_equal(strncmp(program_out, "to be", 5), 0);
    assert_true(strlen(program_out) >= 25);
    assert_refuses("generate g -p Zebra", 2, "byte 0", "U+005A");
    assert_refuses("predict g text.txt", 2, "language model generates", "quern generate g");
}

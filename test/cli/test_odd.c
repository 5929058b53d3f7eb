/* Odd surroundings and changed data: closed streams, empty words, and files that are no longer
 * those that the model was trained on. labels: cli */
#include "program.h"

static void put_table(const char *name, const char *header)
{
    QnStr t = { 0 };
    qn_str_add(&t, header);
    for (int i = 0; i < 40; i++)
        qn_str_printf(&t, "%d,%d,%s\n", i % 5 + (i % 2 ? 10 : 0), i % 3, i % 2 ? "big" : "small");
    temp_file(name, t.s, t.n);
    qn_str_fini(&t);
}

static void put_text(const char *word)
{
    QnStr t = { 0 };
    for (int i = 0; i < 100; i++)
        qn_str_printf(&t, "%s or not to be, ", word);
    temp_file("text.txt", t.s, t.n);
    qn_str_fini(&t);
}

static int group_setup(void **state)
{
    put_table("t.csv", "a,b,kind\n");
    put_text("to be");
    toy_recipe("t.json", "{'task': 'classify', 'data': {'format': 'csv', 'train': 't.csv'}, "
                         "'model': {'name': 'linear'}, "
                         "'train': {'epochs': 1, 'batch': 8, 'lr': 0.1}}");
    toy_recipe("lm.json",
               "{'task': 'language', 'data': {'format': 'text', 'train': 'text.txt', "
               "'window': 8}, 'model': {'name': 'gpt2', 'layers': 1, 'heads': 2, 'width': 16}, "
               "'train': {'steps': 4, 'batch': 4, 'lr': 0.01}}");
    return 0;
}

/* With stdout closed the run's .lock would be opened as stdout, and be printed into. */
static void test_closed_stdout(void **state)
{
    char lock[64];
    assert_int_equal(run_after("f() { \"$@\" >&-; }; f", "train t.json -o closed"), 1);
    assert_contains(program_err, "cannot write to standard output");
    slurp(temp_path("closed/.lock"), lock, sizeof lock);
    assert_string_equal(lock, "");
    assert_runs("eval closed"); /* the run itself is whole */
}

static void test_full_stdout(void **state)
{
    if (!has_full_device())
        skip_because("no /dev/full");
    assert_int_equal(run_after("f() { \"$@\" >/dev/full; }; f", "--version"), 1);
    assert_contains(program_err, "cannot write to standard output");
}

/* A limit on the size of files is an error that names one, not death by SIGXFSZ. */
static void test_file_size_limit(void **state)
{
    assert_int_equal(run_after("f() { ulimit -f 1; \"$@\"; }; f", "train t.json -o big"), 1);
    assert_contains(program_err, "big/");
    assert_contains(program_err, "File too large");
}

/* "$UNSET" as a folder must not become the root of the file system. */
static void test_empty_words(void **state)
{
    assert_refuses("train t.json -o ''", 2, "--out", "empty");
    assert_refuses("eval ''", 2, "quern eval", "empty");
    assert_refuses("predict '' t.csv", 2, "quern predict", "word 1 is empty");
    assert_refuses("train t.json --set name=../out", 2, "name", "below runs/");
    assert_refuses("train t.json --set name=a/../../out", 2, "name", "below runs/");
    assert_refuses("train t.json --set name=/out", 2, "name", "below runs/");
}

static void test_columns_in_another_order(void **state)
{
    assert_runs("train t.json -o run");
    put_table("swapped.csv", "b,a,kind\n");
    assert_refuses("predict run swapped.csv", 2, "feature 0 is 'b'", "with 'a' there");
    assert_refuses("eval run --set data.train=$PWD/swapped.csv", 2, "feature 0 is 'b'", "'a'");
    temp_file("bare.csv", "2,1\n13,1\n", 9); /* no header: known by their order */
    assert_runs("predict run bare.csv");
}

static void test_other_characters(void **state)
{
    assert_runs("train lm.json -o lm");
    assert_refuses("generate lm", 2, "no new line", "--prompt");
    put_text("to me");
    assert_refuses("eval lm", 2, "text.txt", "vocab.json");
    assert_refuses("train lm.json -o lm --resume --set train.steps=6", 2, "text.txt", "vocab.json");
    put_text("to be"); /* and nothing was written over */
    assert_runs("train lm.json -o lm --resume --set train.steps=6");
}

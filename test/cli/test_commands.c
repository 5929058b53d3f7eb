/* The commands that use a trained model or show what runs: predict, generate, explain, bench,
 * doctor, tune. labels: cli */
#include "program.h"

#define RECIPE                                                                                     \
    "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"                           \
    "'train': {'epochs': 3, 'batch': 10, 'lr': 0.02, 'seed': 4}}"

static int group_setup(void **state)
{
    toy_images("a", 120);
    toy_images("b", 40);
    toy_recipe("r.json", RECIPE);
    return 0;
}

/* ---- what a model is used for ---- */

static void test_predict_table(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    QnStr table = { 0 };
    qn_str_add(&table, "a,b,kind\n");
    for (int i = 0; i < 40; i++)
        qn_str_printf(&table, "%d,%d,%s\n", i % 5 + (i % 2 ? 10 : 0), i % 3,
                      i % 2 ? "big" : "small");
    temp_file("kinds.csv", table.s, table.n);
    qn_str_fini(&table);
    toy_recipe("kinds.json", "{'task': 'classify', 'data': {'format': 'csv', 'train': 'kinds.csv', "
                             "'standardize': true}, 'model': {'name': 'linear'}, "
                             "'train': {'epochs': 20, 'batch': 8, 'lr': 0.1}}");
    assert_runs("train kinds.json -o kinds");
    temp_file("new.csv", "a,b\n2,1\n13,1\n", 13);
    assert_runs("predict kinds new.csv --json");
    const QnJson *o = json_lines(arena, &n);
    assert_int_equal(n, 2);
    assert_true(json_number(o, "row") == 1);
    const QnJson *best = &qn_json_find(o, "classes")->items[0];
    assert_string_equal(json_text(best, "class"), "big");
    assert_true(json_number(best, "probability") > 0.8);
    assert_runs("predict kinds new.csv");
    assert_contains(program_out, "new.csv row 0: small ");
    qn_arena_free(arena);
}

static void test_generate(void **state)
{
    char text[1200], first[1200];
    for (int i = 0; i < QN_COUNT(text); i++)
        text[i] = "abc\n"[i % 4]; /* after a comes b, and so on */
    temp_file("t.txt", text, sizeof text);
    toy_recipe("text.json", "{'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "
                            "'window': 8}, 'model': {'name': 'gpt2', 'layers': 1, 'heads': 2, "
                            "'width': 16}, 'train': {'steps': 150, 'batch': 8, 'lr': 0.01}}");
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train text.json -o text --json");
    const QnJson *o = json_lines(arena, &n);
    assert_true(json_number(o, "test_loss") < 0.2);
    assert_runs("generate text -p ab -n 10 -t 0");
    assert_string_equal(program_out, "abc\nabc\nabc\n\n");
    assert_runs("generate text -p ab -n 30 -t 3 --seed 5");
    snprintf(first, sizeof first, "%.1000s", program_out);
    assert_runs("generate text -p ab -n 30 -t 3 --seed 5");
    assert_string_equal(program_out, first); /* the same draws */
    assert_runs("generate text -p ab -n 30 -t 3 --seed 6");
    assert_string_not_equal(program_out, first);
    assert_refuses("generate text -p xyz", 2, "--prompt", "U+0078");
    assert_refuses("generate text -t hot", 2, "--temperature", "'hot'");
    assert_refuses("predict text t.txt", 2, "quern generate text", "");
    qn_arena_free(arena);
}

/* ---- what runs, and how fast ---- */

/* The object of the result, then one a node: steps in any order but each once, shares of a whole.
 */
static void check_profile(QnArena *arena, const char *args, const char *result_key)
{
    static char out[sizeof program_out];
    double time = 0, gap = 0, steps = 0;
    int n = 0, products = 0;
    assert_runs(args);
    snprintf(out, sizeof out, "%s", program_out);
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"), n++) {
        snprintf(program_out, sizeof program_out, "%s\n", line);
        const QnJson *o = json_lines(arena, &(int){ 0 });
        if (n == 0) {
            assert_true(json_number(o, result_key) > 0);
            continue;
        }
        assert_true(strlen(json_text(o, "op")) > 0 && strlen(json_text(o, "kernel")) > 0);
        assert_non_null(qn_json_find(o, "name"));
        assert_true(json_number(o, "seconds") > 0 && json_number(o, "limit_seconds") >= 0);
        assert_true(json_number(o, "gbs") >= 0);
        steps += json_number(o, "step");
        time += json_number(o, "share_of_time");
        gap += json_number(o, "share_of_gap");
        if (!strcmp(json_text(o, "op"), "matmul")) {
            products++;
            assert_contains(json_text(o, "type"), "f32[");
            double flops = json_number(o, "gflops") * 1e9 * json_number(o, "seconds");
            assert_true(flops > 1 && fabs(flops - round(flops)) < 1e-6 * flops);
        }
    }
    assert_true(n > 2 && products > 0);
    assert_true(steps == (n - 1) * (n - 2) / 2.0);
    assert_true(fabs(time - 1) < 1e-9 && fabs(gap - 1) < 1e-9);
}

static void test_explain_bench_doctor(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("explain r.json --json --why");
    const QnJson *o = json_lines(arena, &n);
    assert_true(n > 5 && json_number(o, "step") == n - 1);
    assert_true(strlen(json_text(o, "op")) > 0 && strlen(json_text(o, "kernel")) > 0);
    assert_non_null(qn_json_find(o, "refused"));
    assert_runs("bench r.json --steps 4 --threads 1 --json");
    o = json_lines(arena, &n);
    assert_true(json_number(o, "step_ns") > 0 && json_number(o, "samples_per_second") > 0);
    assert_true(json_number(o, "best_step_ns") <= json_number(o, "step_ns"));
    assert_true(json_number(o, "batch") == 10 && json_number(o, "threads") == 1);
    assert_runs("bench r.json --steps 2 --profile");
    assert_contains(program_out, "matmul");
    check_profile(arena, "bench r.json --steps 2 --profile --json", "step_ns");
    check_profile(arena, "bench r.json --steps 2 --eval --profile --json", "step_ns");
    assert_runs("bench r.json --steps 2 --eval --json");
    assert_string_equal(json_text(json_lines(arena, &n), "phase"), "eval");
    assert_runs("doctor --json");
    o = json_lines(arena, &n);
    assert_true(n >= 4 && strlen(json_text(o, "verdict")) > 0);
    assert_contains(program_out, "\"check\": \"self-test\", \"verdict\": \"ok\"");
    assert_contains(program_out, "\"copy_bytes_per_second\": ");
    assert_contains(program_out, "\"matmul_flops\": ");
    assert_contains(program_out, "\"check\": \"library\"");
    assert_runs("doctor --quick");
    assert_contains(program_out, "cpu: 11 kernels differ from float64 by at most");
    assert_null(strstr(program_out, "FLOP/s"));
    assert_runs("ops matmul");
    assert_contains(program_out, "matmul");
    qn_arena_free(arena);
}

/* Replaces each `a` by b and each b by a, of equal length or not. */
static void swap_words(const char *path, const char *a, const char *b)
{
    char text[32768];
    QnStr out = { 0 };
    slurp(path, text, sizeof text);
    for (const char *p = text; *p;) {
        bool is_a = !strncmp(p, a, strlen(a)), is_b = !strncmp(p, b, strlen(b));
        qn_str_add_bytes(&out, is_a ? b : is_b ? a : p, is_a ? strlen(b) : is_b ? strlen(a) : 1);
        p += is_a ? strlen(a) : is_b ? strlen(b) : 1;
    }
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(out.s, 1, out.n, f), out.n);
    fclose(f);
    qn_str_fini(&out);
}

/* What was measured decides for new runs; one that resumes stays with what it began with. */
static void test_tune_and_resume(void **state)
{
    char before[32768], after[32768], digest[80];
    QnArena *arena = qn_arena_new();
    int n;
    toy_recipe("big.json", "{'name': 'big', 'task': 'classify',\n" TOY_DATA ",\n"
                           "'model': {'name': 'mlp', 'hidden': [128, 128]},\n"
                           "'train': {'epochs': 2, 'batch': 60, 'lr': 0.01, 'threads': 1}}");
    assert_runs("tune big.json --json");
    if (!strstr(program_out, "onednn.matmul"))
        skip_because("no two kernels that compete");
    json_lines(arena, &n);
    assert_true(n >= 4);
    slurp(temp_path("cache/quern/kernels.json"), before, sizeof before);
    assert_contains(before, "matmul");
    assert_runs("tune big.json"); /* all is known */
    assert_contains(program_out, "0 nodes measured");
    assert_runs("train big.json -o tuned --json");
    snprintf(digest, sizeof digest, "%s", json_text(json_lines(arena, &n), "weights_sha256"));
    assert_runs("train big.json -o again --set train.epochs=1");
    slurp(temp_path("again/kernels.json"), before, sizeof before);
    swap_words(temp_path("cache/quern/kernels.json"), "onednn.matmul", "cpu.matmul.gemm");
    assert_runs("train big.json -o again --resume --json");
    assert_string_equal(json_text(json_lines(arena, &n), "weights_sha256"), digest);
    slurp(temp_path("again/kernels.json"), after, sizeof after);
    assert_string_equal(before, after);
    assert_runs("train big.json -o other --set train.epochs=1"); /* a new one takes the new word */
    slurp(temp_path("other/kernels.json"), after, sizeof after);
    assert_string_not_equal(before, after);
    qn_arena_free(arena);
}

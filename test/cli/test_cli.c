/* The program from outside: help, exit codes, errors in one line with place and hint, JSON.
 * labels: cli */
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

/* ---- usage ---- */

static void test_help(void **state)
{
    char commands[2048];
    assert_runs("--help");
    assert_contains(program_out, "Exit codes: 0 done, 1 failed, 2 bad usage");
    snprintf(commands, sizeof commands, "%.2000s", program_out);
    int n = 0;
    for (char *line = strtok(commands, "\n"); line; line = strtok(NULL, "\n")) {
        char name[32], args[64], want[64];
        if (strncmp(line, "  ", 2) || sscanf(line + 2, "%30[a-z-]", name) != 1)
            continue;
        snprintf(want, sizeof want, "usage: quern %s", name);
        static const char *const forms[] = { "%s --help", "%s -h", "help %s" };
        for (int i = 0; i < QN_COUNT(forms); i++) {
            snprintf(args, sizeof args, forms[i], name);
            assert_runs(args);
            assert_contains(program_out, want);
            assert_string_equal(program_err, "");
        }
        n++;
    }
    assert_true(n >= 8);
    assert_runs("train --help"); /* "…" is three bytes and one column */
    assert_contains(program_out, "--set KEY=VALUE…       change");
    assert_contains(program_out, "--resume               go on");
    assert_runs("--version");
    assert_int_equal(strncmp(program_out, "quern ", 6), 0);
    assert_int_equal(run(""), 2);
    assert_contains(program_err, "usage: quern COMMAND");
}

static void test_bad_usage(void **state)
{
    assert_refuses("tarin", 2, "no command 'tarin'; did you mean 'train'?", "--help");
    assert_refuses("train", 2, "usage: quern train", "RECIPE");
    assert_refuses("train a b", 2, "usage: quern train RECIPE", "'b' is one word too many");
    assert_refuses("train r.json --sed 3", 2, "no option --sed", "train --help");
    assert_refuses("train r.json --seed", 2, "--seed", "needs a value");
    assert_refuses("train r.json --seed x", 2, "--seed", "'x'");
    assert_refuses("train r.json --seed 99999999999999999999", 2, "--seed", "whole number");
    assert_refuses("train r.json --threads 0", 2, "--threads", "1 to 1024");
    assert_refuses("train r.json --resume=yes", 2, "--resume", "no value");
    assert_refuses("train r.json --set batch", 2, "--set", "key=value");
    assert_refuses("train r.json --set train.bacth=3", 2, "bacth", "did you mean 'batch'");
    assert_refuses("train r.json --device gpu9", 2, "no device 'gpu9'", "cpu");
    assert_refuses("eval", 2, "usage: quern eval", "RUN");
    assert_refuses("ops nosuchop", 2, "nosuchop", "");
    assert_refuses("ops matmal", 2, "did you mean 'matmul'", "quern ops");
    assert_runs("ops matmul");
    assert_contains(program_out, "2 to 3 inputs");
}

/* ---- bad input ---- */

static void test_bad_recipes(void **state)
{
    assert_refuses("train missing.yaml", 2, "missing.yaml", "No such file");
    assert_refuses("train r.json --set data.train.images=gone.x", 2, "gone.x", "--set data.train=");
    assert_refuses("train r.json --set data.images.resize=4 data.images.pad=1 data.images.crop=7",
                   2, "crop 7 x 7", "resize 4 x 4 with pad 1");
    temp_file("one.csv", "a,b\n1,x\n2,x\n3,x\n4,x\n", 20);
    toy_recipe("one.json", "{'task': 'classify', 'data': {'format': 'csv', 'train': 'one.csv'}, "
                           "'model': {'name': 'linear'}, "
                           "'train': {'epochs': 1, 'batch': 1, 'lr': 0.1}}");
    assert_int_equal(run("train one.json --set data.target=nix"), 2);
    assert_contains(program_err, "no column 'nix'");
    assert_null(strstr(program_err, "--set data.train=")); /* the file is not what is wrong */
    assert_refuses("train one.json", 2, "one class only, 'x'", "nothing to tell apart");
    assert_refuses("train .", 2, "Is a directory", ".");
    assert_refuses("train a.x", 2, "a.x", "");
    temp_file("empty.yaml", "", 0);
    assert_refuses("train empty.yaml", 2, "empty.yaml", "");
    temp_file("torn.json", "{\"task\": ", 9);
    assert_refuses("train torn.json", 2, "torn.json", "");
    toy_recipe("shape.json", "{'task': 'classify',\n" TOY_DATA ",\n"
                             "'model': {'layers': [\n"
                             "  {'conv': 4},\n"
                             "  {'max_pool': 99},\n"
                             "  'flatten', {'linear': 'outputs'}]},\n"
                             "'train': {'epochs': 1, 'batch': 10, 'lr': 0.1}}");
    assert_refuses("train shape.json", 2, "shape.json:5: model.layers", "max_pool");
    assert_refuses("explain shape.json", 2, "shape.json:5: model.layers", "max_pool");
    assert_refuses("train r.json --set train.batch=121", 2, "batch is 121", "120 samples");
    assert_refuses("train r.json --set train.optimizer=sdg", 2, "train.optimizer", "sgd");
    assert_int_not_equal(access(temp_path("runs"), F_OK), 0); /* nothing was begun */
}

static void test_bad_data(void **state)
{
    char text[64 * 20 + 16];
    assert_refuses("train r.json --set data.train.images=c.x", 2, "c.x", "No such file");
    slurp(temp_path("a.x"), text, sizeof text);
    FILE *f = fopen(temp_path("a.x"), "rb");
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    temp_file("short.x", text, n);
    assert_refuses("train r.json --set data.train.images=short.x", 2, "short.x", "7680 bytes");
    temp_file("short.y", "\0\0\x08\x01\0\0\0\x78\1\2\3", 11);
    assert_refuses("train r.json --set data.train.labels=short.y", 2, "short.y", "");
    assert_refuses("train r.json --set data.train.labels=b.y", 2, "b.y", "120");
    assert_refuses("train r.json --set data.train.labels=a.x", 2, "a.x", "");
    assert_refuses("train r.json --set 'data.classes=[\"p\", \"q\", \"r\"]'", 2,
                   "sample 3: label 3", "3 classes");
    toy_images("many", 40);
    f = fopen(temp_path("many.y"), "r+b");
    fseek(f, 8 + 7, SEEK_SET);
    fputc(9, f);
    fclose(f);
    assert_refuses("train r.json --set data.test.labels=many.y", 2, "sample 7: label 9",
                   "4 classes");
}

/* The first word of a message is no use if the file cannot even be read. */
static void test_unreadable(void **state)
{
    if (geteuid() == 0)
        skip_because("root reads everything");
    temp_file("secret.json", "{}", 2);
    chmod(temp_path("secret.json"), 0);
    assert_refuses("train secret.json", 2, "secret.json", "Permission denied");
}

static void test_bad_folders(void **state)
{
    temp_file("file", "x", 1);
    assert_refuses("train r.json -o file/run", 2, "file", "Not a directory");
    assert_refuses("train r.json -o file", 2, "file", "not a folder");
    assert_refuses("train r.json -o /proc/nowhere/run", 2, "/proc/nowhere", "");
    assert_refuses("eval nowhere", 2, "nowhere", "recipe.yaml; name one that quern train");
    assert_refuses("eval .", 2, ".", "recipe.yaml");
    assert_refuses("predict nowhere a.x", 2, "nowhere", "recipe.yaml");
    assert_refuses("generate nowhere", 2, "nowhere", "");
}

/* ---- runs ---- */

static void test_train_json(void **state)
{
    static const char *const numbers[] = { "test_accuracy",        "train_seconds",
                                           "samples_per_second",   "first_step_seconds",
                                           "peak_rss_bytes",       "planned_peak_bytes",
                                           "allocated_peak_bytes", "updates" };
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train r.json -o j --json");
    const QnJson *o = json_lines(arena, &n);
    assert_true(n > 4);
    for (int i = 0; i < QN_COUNT(numbers); i++)
        assert_true(json_number(o, numbers[i]) > 0);
    assert_int_equal(strlen(json_text(o, "weights_sha256")), 64);
    assert_true(json_number(o, "planned_peak_bytes") == json_number(o, "allocated_peak_bytes"));
    assert_true(json_number(o, "peak_rss_bytes") > json_number(o, "allocated_peak_bytes"));
    assert_true(json_number(o, "updates") == 36);
    assert_true(json_number(o, "seed") == 4);
    double accuracy = json_number(o, "test_accuracy");
    assert_true(accuracy > 0.8);
    assert_int_equal(access(temp_path("j/summary.json"), F_OK), 0);
    assert_int_equal(access(temp_path("j/loss.svg"), F_OK), 0);
    assert_runs("eval j --json");
    o = json_lines(arena, &n);
    assert_int_equal(n, 1);
    assert_true(json_number(o, "test_accuracy") == accuracy);
    /* errors are JSON too */
    assert_int_equal(run("train r.json --json --set train.lr=x"), 2);
    o = json_lines(arena, &n);
    assert_int_equal(n, 1);
    assert_contains(json_text(o, "error"), "train.lr");
    assert_true(json_number(o, "exit") == 2);
    qn_arena_free(arena);
}

static void test_train_text(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train r.json -o t --seed 9 --threads 1 --set train.epochs=1");
    assert_contains(program_out, "120 training and 40 test samples");
    assert_contains(program_out, "memory: planned ");
    assert_contains(program_out, "test_accuracy ");
    assert_null(strstr(program_out, "ksamples"));
    assert_contains(program_out, " samples/s)");
    assert_null(strchr(program_out, '\r')); /* plain lines where there is no terminal */
    assert_null(strchr(program_out, '\033'));
    char *last = strrchr(program_out, '{'); /* the last line is the summary */
    assert_non_null(last);
    memmove(program_out, last, strlen(last) + 1);
    const QnJson *o = json_lines(arena, &n);
    assert_int_equal(n, 1);
    assert_true(json_number(o, "seed") == 9 && json_number(o, "threads") == 1);
    qn_arena_free(arena);
}

static void test_existing_run(void **state)
{
    assert_runs("train r.json -o e --set train.epochs=1");
    assert_refuses("train r.json -o e", 2, "e holds a run already", "--resume");
    assert_runs("train r.json -o e --set train.epochs=1 --resume");
    assert_refuses("train r.json -o e --resume --seed 77", 2, "seed 4", "77");
    assert_refuses("train r.json -o e --resume --set train.batch=12", 2, "other batches", "batch");
    assert_runs("train r.json -o e --resume"); /* further than before: three epochs */
    assert_contains(program_out, "going on after update 12");
    assert_contains(program_out, "after 36 updates");
}

/* Another process holds the folder. */
static void test_locked_run(void **state)
{
    assert_runs("train r.json -o l --set train.epochs=1");
    int code = run_after("flock l/.lock", "train r.json -o l --resume");
    if (code == 127)
        skip_because("no flock(1)");
    assert_int_equal(code, 2);
    assert_contains(program_err, "another process");
}

/* A run with a relative recipe is whole in itself, wherever it is read from. */
static void test_run_from_elsewhere(void **state)
{
    mkdir(temp_path("deep"), 0777);
    assert_runs("train r.json -o deep/run --set train.epochs=1");
    assert_int_equal(run_after("cd / &&", "--version"), 0);
    char args[600];
    snprintf(args, sizeof args, "eval %s --json", temp_path("deep/run"));
    assert_int_equal(run_after("cd / &&", args), 0);
}

static void test_damaged_run(void **state)
{
    assert_runs("train r.json -o d --set train.epochs=2");
    assert_int_equal(truncate(temp_path("d/checkpoints/00000024/model.safetensors"), 99), 0);
    assert_int_equal(run("eval d"), 0);
    assert_contains(program_err, "00000024/model.safetensors");
    assert_int_equal(run("predict d missing.png"), 2);
    assert_contains(program_err, "00000024/model.safetensors");
    if (run("export d -o d.onnx") == 0) /* else built without ONNX */
        assert_contains(program_err, "00000024/model.safetensors");
    assert_int_equal(run("train r.json -o d --resume --set train.epochs=2"), 0);
    assert_contains(program_err, "00000024/model.safetensors");
    assert_int_equal(run("eval d"), 0);
    assert_string_equal(program_err, "");
}

/* Without test data there is nothing to report of them, but everything else. */
static void test_without_test_data(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    temp_file("c.csv", "a,b,c\n1,2,x\n2,1,y\n4,4,x\n0,1,y\n3,2,x\n5,1,y\n", 42);
    toy_recipe("c.json", "{'task': 'classify', 'data': {'format': 'csv', 'train': 'c.csv', "
                         "'train_fraction': 1}, 'model': {'name': 'linear'}, "
                         "'train': {'epochs': 2, 'batch': 3, 'lr': 0.1}}");
    assert_runs("train c.json -o c --json");
    const QnJson *o = json_lines(arena, &n);
    assert_null(qn_json_find(o, "test_accuracy"));
    assert_int_equal(strlen(json_text(o, "weights_sha256")), 64);
    assert_runs("eval c"); /* on the training data */
    assert_contains(program_out, "on 6 samples");
    assert_refuses("train c.json -o c2 --set train.keep_best=true", 2, "keep_best", "test data");
    assert_refuses("train c.json -o c2 --set train.early_stop=1", 2, "early_stop", "test data");
    qn_arena_free(arena);
}

static void test_output_that_cannot_be_written(void **state)
{
    char command[800];
    if (!has_full_device())
        skip_because("no /dev/full");
    snprintf(command, sizeof command, "'%s' ops >/dev/full 2>%s", program_path(),
             temp_path("stderr"));
    int status = system(command);
    assert_int_equal(WEXITSTATUS(status), 1);
    slurp(temp_path("stderr"), program_err, sizeof program_err);
    assert_contains(program_err, "error: cannot write to standard output: No space left");
}

static void test_resume_of_nothing(void **state)
{
    assert_int_equal(run("train r.json -o nothing --resume --set train.epochs=1"), 0);
    assert_contains(program_err, "warning: nothing holds no checkpoint");
}

/* It would give numbers that mean nothing. */
static void test_null_device(void **state)
{
    assert_refuses("train r.json -o n --device null", 2, "null", "explain");
    assert_runs("explain r.json --device null");
}

/* A full disk, played by a limit on the size of files. */
static void test_full_disk(void **state)
{
    int code = run_after("trap '' XFSZ; ulimit -f 4;", "train r.json -o full");
    assert_int_equal(code, 1);
    assert_contains(program_err, "File too large");
    assert_contains(program_err, "full/");
    assert_runs("train r.json -o full --resume");
}

static void test_full_tmpfs(void **state)
{
    char command[700];
    mkdir(temp_path("small"), 0777);
    snprintf(command, sizeof command, "mount -t tmpfs -o size=16k quern %s 2>/dev/null",
             temp_path("small"));
    if (geteuid() != 0 || system(command) != 0)
        skip_because("no right to mount a small file system");
    int code = run("train r.json -o small/run");
    char text[1024];
    snprintf(text, sizeof text, "%.1000s", program_err);
    snprintf(command, sizeof command, "umount %s", temp_path("small"));
    assert_int_equal(system(command), 0);
    assert_int_equal(code, 1);
    assert_contains(text, "No space left");
}

static void test_other_commands(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("ops --json");
    json_lines(arena, &n);
    assert_true(n >= 90);
    assert_runs("explain r.json");
    assert_contains(program_out, "matmul");
    assert_runs("doctor");
    qn_arena_free(arena);
}

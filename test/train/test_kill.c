/* Kills `quern train` at random moments, resumes it until it is done, and wants the very same
 * metrics, weights and summary as from a run that nobody disturbed.
 * labels: train slow
 * timeout: 300 */
#include "toy.h"

#include "base/clock.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define RECIPE                                                                                     \
    TOY_HEAD "'data': {'format': 'idx', 'train': {'images': 'a.x', 'labels': 'a.y'}, "             \
             "'test': {'images': 'b.x', 'labels': 'b.y'}, "                                        \
             "'images': {'pad': 1, 'random_crop': true, 'crop': [8, 8], 'flip': true, "            \
             "'mean': 0.3, 'std': 0.3}}, "                                                         \
             "'model': {'layers': [{'conv': {'out': 4}}, 'batch_norm', 'relu', {'max_pool': 2}, "  \
             "'flatten', {'dropout': 0.3}, {'linear': 'outputs'}]}, "                              \
             "'train': {'epochs': 6, 'batch': 10, 'lr': 0.01, 'schedule': 'one_cycle', "           \
             "'ema': 0.9, 'keep_best': true, 'eval': {'every': 15}, "                              \
             "'checkpoint': {'every': 4, 'keep': 2}}}"

/* Gradients of three micro-batches summed up in states of their own. */
#define ACCUMULATED                                                                                \
    TOY_HEAD TOY_DATA ", " TOY_MLP ", 'train': {'epochs': 9, 'batch': 5, 'accumulate': 3, "        \
                      "'lr': 0.01, 'optimizer': {'name': 'lamb', 'clip_norm': 1}, "                \
                      "'eval': {'every': 25}, 'checkpoint': {'every': 4, 'keep': 2}}}"

#define TEXT                                                                                       \
    "{'name': 'text', 'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "           \
    "'window': 8}, 'model': {'name': 'gpt2', 'layers': 1, 'heads': 2, 'width': 8, "                \
    "'dropout': 0.1}, 'train': {'steps': 120, 'batch': 4, 'lr': 0.01, 'eval': {'every': 25}, "     \
    "'checkpoint': {'every': 4, 'keep': 2}}}"

/* A model of an ONNX file, which this run's folder then holds. */
#define ONNX_LAYERS                                                                                \
    "'model': {'layers': [{'conv': {'out': 4}}, 'batch_norm', 'relu', 'flatten', "                 \
    "{'linear': 'outputs'}]}"
#define ONNX(model)                                                                                \
    TOY_HEAD TOY_DATA ", " model ", 'train': {'epochs': 4, 'batch': 10, 'lr': 0.01, 'ema': 0.9, "  \
                      "'checkpoint': {'every': 4, 'keep': 2}}}"

static char program[512], recipe[512];

static int group_setup(void **state)
{
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 20);
    assert_true(n > 0);
    program[n] = '\0';
    for (int i = 0; i < 2; i++) { /* BUILD/test/test_… to BUILD/quern */
        char *slash = strrchr(program, '/');
        assert_non_null(slash);
        *slash = '\0';
    }
    strcat(program, "/quern");
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* thousands of syncs, which are not what is tested */
    toy_images("a", 200);
    toy_images("b", 60);
    char text[1500];
    for (int i = 0; i < QN_COUNT(text); i++)
        text[i] = "the quick brown fox\n"[toy_noise((uint32_t)i / 5) % 15 + (uint32_t)i % 5];
    temp_file("t.txt", text, sizeof text);
    return 0;
}

static pid_t start(const char *run, bool resume)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(open(temp_path("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
        execl(program, program, "train", recipe, "-o", run, "--threads", "1",
              resume ? "--resume" : NULL, NULL);
        _exit(127);
    }
    return pid;
}

static int ended(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static char *read_text(const char *run, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", run, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("no %s", path);
    char *text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* The value of a member of a one-line JSON object, as text. */
static void member(const char *json, const char *key, char out[128])
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(json, quoted);
    if (!p)
        fail_msg("no %s in %s", key, json);
    p += strlen(quoted);
    snprintf(out, 128, "%.*s", (int)strcspn(p, ",}"), p);
}

/* Both runs must have come to the same end. */
static void assert_same(const char *a, const char *b)
{
    static const char *const keys[] = { "weights_sha256", "test_accuracy", "test_loss", "updates",
                                        "skipped_samples" };
    char *x = read_text(a, "metrics.jsonl"), *y = read_text(b, "metrics.jsonl");
    assert_string_equal(x, y);
    free(x);
    free(y);
    x = read_text(a, "summary.json");
    y = read_text(b, "summary.json");
    for (int i = 0; i < QN_COUNT(keys); i++) {
        char v[128], w[128];
        if (!strcmp(keys[i], "test_accuracy") && !strstr(x, keys[i]))
            continue; /* text has none */
        member(x, keys[i], v);
        member(y, keys[i], w);
        assert_string_equal(v, w);
    }
    free(x);
    free(y);
}

/* Nothing half-written may be left behind. */
static void assert_tidy(const char *run)
{
    char command[800];
    snprintf(command, sizeof command,
             "find %s \\( -name '*.part' -o -name '*.old' -o -name '*.tmp-*' \\) | grep . >&2",
             run);
    assert_int_not_equal(system(command), 0);
    snprintf(command, sizeof command, "test $(ls %s/checkpoints | wc -l) = 2", run);
    assert_int_equal(system(command), 0);
}

/* The undisturbed run, and how long it takes at best. */
static int64_t reference(const char *of, char whole[512])
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s-whole%d", of, i);
        snprintf(whole, 512, "%s", temp_path(name));
        int64_t begin = qn_clock_ns();
        assert_int_equal(ended(start(whole, false)), 0);
        best = QN_MIN(best, qn_clock_ns() - begin);
    }
    return best;
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = { ns / 1000000000, ns % 1000000000 };
    while (nanosleep(&t, &t) < 0 && errno == EINTR) {
    }
}

static void killed(const char *of, const char *text, int most_kills)
{
    char whole[512], run[512];
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("kill.json", text));
    const char *given = getenv("QN_KILL_SEED");
    uint32_t seed = given ? (uint32_t)atoi(given) : 1, draws = 0;
    int64_t duration = reference(of, whole);
    int kills = 0, runs = 0, after_end = 0;
    print_message("%s: kill seed %u (QN_KILL_SEED sets it); a whole run takes %.0f ms\n", of, seed,
                  (double)duration * 1e-6);
    for (; kills < most_kills; runs++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", of, runs);
        snprintf(run, sizeof run, "%s", temp_path(name));
        bool done = false;
        for (int tries = 0; !done; tries++) {
            pid_t pid = start(run, tries > 0);
            if (tries < 12) { /* then it may finish */
                uint32_t draw = toy_noise(seed * 7919 + draws++);
                sleep_ns((int64_t)((double)draw / 4294967296.0 * (double)duration * 0.6));
                kill(pid, SIGKILL);
            }
            int status = ended(pid);
            bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            kills += killed;
            after_end += !killed && tries < 12;
            if (!killed && status != 0) {
                char *error = read_text(temp_path(""), "stderr");
                fail_msg("status %x: %s", (unsigned)status, error);
            }
            done = !killed;
        }
        assert_same(whole, run);
        assert_tidy(run);
    }
    print_message("%d kills over %d runs; %d times the run was done before\n", kills, runs,
                  after_end);
    assert_true(kills >= most_kills);
}

static void test_killed_at_any_moment(void **state)
{
    killed("images", RECIPE, 300);
}

static void test_killed_between_micro_batches(void **state)
{
    killed("accumulated", ACCUMULATED, 60);
}

static void test_killed_over_text(void **state)
{
    killed("text", TEXT, 60);
}

static void test_killed_over_an_onnx_model(void **state)
{
    Toy t;
    QnGraph *g;
    TOY_OPEN(&t, toy_recipe("made.json", ONNX(ONNX_LAYERS)), "train.ema=0", NULL);
    assert_ok(qn_session_model(t.session, 0, &g));
    QnStatus st = qn_onnx_export(g, t.session->store, NULL, temp_path("m.onnx"));
    qn_graph_free(g);
    toy_close(&t);
    if (st == QN_EUNSUPPORTED) /* built without protobuf-c */
        skip();
    assert_ok(st);
    killed("onnx", ONNX("'model': {'onnx': 'm.onnx', 'head': 'outputs'}"), 30);
}

/* A signal that asks: the run saves itself, says so by its exit code, and goes on the same. */
static void asked_to_stop(int signal_number, const char *name)
{
    char whole[512], run[512];
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("kill.json", RECIPE));
    reference(name, whole);
    snprintf(run, sizeof run, "%s", temp_path(name));
    int interrupted = 0;
    for (int tries = 0; tries < 20; tries++) {
        char path[600];
        snprintf(path, sizeof path, "%s/recipe.yaml", run); /* there once signals are caught */
        unlink(path);
        pid_t pid = start(run, tries > 0);
        for (int i = 0; i < 2000 && access(path, F_OK) < 0; i++)
            sleep_ns(1000000);
        sleep_ns((int64_t)(toy_noise((uint32_t)tries) % 40) * 100000);
        if (interrupted < 5)
            kill(pid, signal_number);
        int status = ended(pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0)
            break;
        assert_int_equal(WEXITSTATUS(status), 130);
        interrupted++;
    }
    assert_true(interrupted >= 2);
    assert_same(whole, run);
}

static void test_sigterm(void **state)
{
    asked_to_stop(SIGTERM, "term");
}

static void test_sigint(void **state)
{
    asked_to_stop(SIGINT, "int");
}

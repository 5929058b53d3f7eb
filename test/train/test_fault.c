/* Fails the n-th allocation, open, read, write, fsync or rename of a whole run that resumes,
 * trains, evaluates and saves, for all n: an error with a text or a sound result, and what was
 * saved before still leads to the very same weights. Run under ASan it also finds what leaks.
 * labels: train
 * timeout: 300 */
#include "toy.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"

#define TRAIN                                                                                      \
    "'train': {'steps': 5, 'batch': 8, 'lr': 0.1, 'keep_best': true, "                             \
    "'eval': {'every': 2, 'batch': 8}, 'checkpoint': {'every': 1}, "

static char recipe[512], run_folder[512], digest[QN_SHA256_HEX];

/* All of `quern train --resume` but the printing. *out is the digest of the weights. */
static QnStatus trial(const char *setting, char out[QN_SHA256_HEX])
{
    Toy t;
    QnMetrics m = { 0 };
    QnTrainResult result = { 0 };
    const QnTrainEvents events = { 0 };
    QN_TRY(
        toy_open(&t, recipe, &setting, setting ? 1 : 0, &(QnSessionOptions){ .training = true }));
    char *text = NULL;
    QnStatus st = qn_recipe_print(t.recipe, &text);
    qn_free(text);
    if (st == QN_OK)
        st = qn_train(t.session, &t.data, run_folder, true, qn_clock_ns(), &events, &m, &result);
    if (st == QN_OK)
        st = qn_checkpoint_digest(t.session->store, out);
    qn_metrics_close(&m);
    qn_evaluation_fini(&result.last);
    toy_close(&t);
    return st;
}

static void copy(const char *from, const char *to)
{
    char data[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (!in || !out)
        fail_msg("cannot copy %s to %s", from, to);
    size_t n = fread(data, 1, sizeof data, in);
    assert_int_equal(fwrite(data, 1, n, out), n);
    fclose(in);
    fclose(out);
}

/* The run's folder as it was after two updates. */
static void rewind_folder(void)
{
    static const char *const files[] = { "metrics.jsonl",
                                         "best/model.safetensors",
                                         "best/index.json",
                                         "checkpoints/00000001/model.safetensors",
                                         "checkpoints/00000001/index.json",
                                         "checkpoints/00000002/model.safetensors",
                                         "checkpoints/00000002/index.json" };
    nftw(run_folder, temp_remove, 8, FTW_DEPTH | FTW_PHYS);
    mkdir(run_folder, 0777);
    mkdir(temp_path("f/best"), 0777);
    mkdir(temp_path("f/checkpoints"), 0777);
    mkdir(temp_path("f/checkpoints/00000001"), 0777);
    mkdir(temp_path("f/checkpoints/00000002"), 0777);
    for (int i = 0; i < QN_COUNT(files); i++) {
        char from[128], to[128];
        snprintf(from, sizeof from, "base/%s", files[i]);
        snprintf(to, sizeof to, "f/%s", files[i]);
        copy(temp_path(from), temp_path(to));
    }
}

static char *metrics_text(void)
{
    char *text = calloc(1, 65536);
    FILE *f = fopen(temp_path("f/metrics.jsonl"), "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, 65535, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}

static int group_setup(void **state)
{
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    toy_images("a", 40);
    toy_images("b", 20);
    return 0;
}

/* Trains two updates of a recipe to start from, and all five for comparison. */
static void prepare(const char *text)
{
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", text));
    snprintf(run_folder, sizeof run_folder, "%s", temp_path("base"));
    nftw(run_folder, temp_remove, 8, FTW_DEPTH | FTW_PHYS);
    mkdir(run_folder, 0777);
    assert_ok(trial("train.steps=2", digest));
    snprintf(run_folder, sizeof run_folder, "%s", temp_path("f"));
    rewind_folder();
    assert_ok(trial(NULL, digest));
}

static void fail_each(const char *text_of_recipe)
{
    prepare(text_of_recipe);
    char got[QN_SHA256_HEX], *whole = metrics_text();
    int64_t events, n = 1, by_status[QN_STATUS_COUNT] = { 0 };
    rewind_folder();
    qn_fault_arm(0);
    assert_ok(trial(NULL, got));
    events = qn_fault_events();
    int64_t begin = qn_clock_ns();
    for (;; n++) {
        rewind_folder();
        qn_error_clear();
        qn_fault_arm(n);
        QnStatus st = trial(NULL, got);
        bool over = qn_fault_events() < n;
        qn_fault_arm(0);
        by_status[st]++;
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
        if (st != QN_OK) {
            const QnError *e = qn_error_last();
            if (e->code != st || !e->text[0] || (st != QN_ENOMEM && st != QN_EIO))
                fail_msg("event %lld: %s: '%s'", (long long)n, qn_status_name(st), e->text);
            if (trial(NULL, got) != QN_OK)
                fail_msg("after event %lld: %s", (long long)n, qn_error_last()->text);
        }
        if (strcmp(got, digest))
            fail_msg("event %lld: other weights", (long long)n);
        char *text = metrics_text();
        if (strcmp(text, whole))
            fail_msg("event %lld: other metrics: %s", (long long)n, text);
        free(text);
    }
    print_message("%lld events, each failed once: %lld lack memory, %lld file errors, %lld sound "
                  "all the same, in %.1f s\n",
                  (long long)n - 1, (long long)by_status[QN_ENOMEM], (long long)by_status[QN_EIO],
                  (long long)by_status[QN_OK], (double)(qn_clock_ns() - begin) * 1e-9);
    assert_true(n > events / 2 && by_status[QN_ENOMEM] > 50 && by_status[QN_EIO] > 50);
    free(whole);
}

static void test_linear(void **state)
{
    fail_each(TOY_HEAD TOY_DATA ", 'model': {'layers': ['flatten', {'dropout': 0.1}, "
                                "{'linear': 'outputs'}]}, " TRAIN
                                "'ema': 0.5, 'optimizer': 'sgd'}}");
}

static void test_convolution_accumulated(void **state)
{
    fail_each(TOY_HEAD TOY_DATA
              ", 'model': {'layers': [{'residual': [{'conv': 2}, 'batch_norm', 'gelu']}, "
              "'global_avg_pool', {'linear': 'outputs'}]}, " TRAIN
              "'accumulate': 2, 'optimizer': {'name': 'adamw', 'clip_norm': 1}}}");
}

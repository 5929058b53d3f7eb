/* Runs in 16 bits: an overflow is named, rounding by chance repeats. */
#include "test.h"

#include "base/file.h"
#include "train/toy.h"

#include <string.h>

static const char *recipe;

static int setup(void **state)
{
    (void)state;
    toy_images("a", 96);
    toy_images("b", 40);
    recipe = toy_recipe("toy.json", TOY_HEAD TOY_DATA ", " TOY_MLP ", "
                                                      "'train': {'epochs': 4, 'batch': 16, "
                                                      "'lr': 0.05, 'optimizer': 'sgd'}}");
    return 0;
}

static QnStatus run_toy(Toy *t, const char *folder, QnTrainResult *result)
{
    QnMetrics metrics = { 0 };
    QnTrainEvents events = { 0 };
    char path[1200];
    snprintf(path, sizeof path, "%s", temp_path(folder));
    assert_ok(qn_file_make_dirs(path));
    QnStatus st = qn_train(t->session, &t->data, path, false, 0, &events, &metrics, result);
    qn_metrics_close(&metrics);
    return st;
}

static void plant(Toy *t, const char *name, float value)
{
    const QnSlot *slot = qn_store_find(t->session->store, name);
    assert_non_null(slot);
    int64_t n = qn_shape_count(&slot->type.shape);
    float *w = malloc((size_t)slot->bytes);
    for (int64_t i = 0; i < n; i++)
        w[i] = value;
    assert_ok(qn_store_write(t->session->store, slot, w));
    free(w);
}

static void first_batch(Toy *t, QnLoader **loader, QnBatch *b)
{
    QnLoaderOptions o = { .batch = t->recipe->batch, .drop_last = true, .workers = 1 };
    assert_ok(qn_loader_new(t->data.train, &o, loader));
    assert_ok(qn_loader_next(*loader, b));
}

/* Weights of the second layer that its product does not survive in f16: 12 terms of up to 6e4. */
static void test_planted_overflow_is_named(void **state)
{
    (void)state;
    Toy t;
    QnLoader *loader;
    QnBatch b;
    TOY_OPEN(&t, recipe, "train.precision=fp16", NULL);
    first_batch(&t, &loader, &b);
    assert_ok(qn_session_blame(t.session, &b, 0, 0));
    plant(&t, "out.weight", 6e4f);
    assert_fails(qn_session_blame(t.session, &b, 0, 0), QN_ENUMERIC, "node out");
    qn_loader_free(loader);
    toy_close(&t);
}

/* The first step explodes; then the scale goes down from 2^16 to 1, step by step. */
static void test_overflow_ends_the_run(void **state)
{
    (void)state;
    Toy t;
    QnTrainResult result;
    TOY_OPEN(&t, recipe, "train.precision=fp16", "train.lr=1e6", NULL);
    assert_fails(run_toy(&t, "overflow", &result), QN_ENUMERIC, "loss scale is down to 1");
    assert_non_null(strstr(qn_error_last()->text, "update 17"));
    assert_non_null(strstr(qn_error_last()->text, "not finite: node "));
    toy_close(&t);
}

static void keep_note(void *ctx, const char *text)
{
    snprintf(ctx, 400, "%s", text);
}

/* A net that bf16 and fp16 compute well is trained in them; one that overflows f16, in fp32. */
static void test_self_test(void **state)
{
    (void)state;
    static const char *const settings[] = { "train.precision=bf16", "train.precision=fp16",
                                            "train.precision=fp16" };
    static const QnPrecision want[] = { QN_PRECISION_BF16, QN_PRECISION_FP16, QN_PRECISION_FP32 };
    for (int k = 0; k < 3; k++) {
        Toy t;
        QnTrainResult result;
        QnMetrics metrics = { 0 };
        char folder[32], path[1200], text[400] = "";
        QnTrainEvents events = { .ctx = text, .note = keep_note };
        TOY_OPEN(&t, recipe, settings[k], "train.lr=1e-9", NULL);
        if (k == 2)
            plant(&t, "out.weight", 6e4f);
        snprintf(folder, sizeof folder, "self%d", k);
        snprintf(path, sizeof path, "%s", temp_path(folder));
        assert_ok(qn_file_make_dirs(path));
        assert_ok(qn_train(t.session, &t.data, path, false, 0, &events, &metrics, &result));
        qn_metrics_close(&metrics);
        qn_evaluation_fini(&result.last);
        assert_int_equal(t.session->precision, want[k]);
        assert_int_equal(strstr(text, "going on in fp32") != NULL, k == 2);
        toy_close(&t);
        if (k < 2)
            continue;
        TOY_OPEN(&t, recipe, settings[k], "train.lr=1e-9", "train.epochs=5", NULL); /* goes on */
        assert_ok(qn_train(t.session, &t.data, path, true, 0, &events, &metrics, &result));
        assert_int_equal(t.session->precision, QN_PRECISION_FP32);
        qn_metrics_close(&metrics);
        qn_evaluation_fini(&result.last);
        toy_close(&t);
    }
}

static double final_loss(const char *folder, const char *precision, const char *rounding,
                         char digest[QN_SHA256_HEX])
{
    Toy t;
    QnTrainResult result;
    char p[64], r[64];
    snprintf(p, sizeof p, "train.precision=%s", precision);
    snprintf(r, sizeof r, "train.rounding=%s", rounding);
    TOY_OPEN(&t, recipe, p, r, NULL);
    assert_ok(run_toy(&t, folder, &result));
    assert_ok(qn_checkpoint_digest(t.session->store, digest));
    double loss = result.last.loss;
    qn_evaluation_fini(&result.last);
    toy_close(&t);
    return loss;
}

static void test_stochastic_rounding_repeats(void **state)
{
    (void)state;
    char first[QN_SHA256_HEX], again[QN_SHA256_HEX], nearest[QN_SHA256_HEX];
    double a = final_loss("s1", "bf16", "stochastic", first);
    double b = final_loss("s2", "bf16", "stochastic", again);
    double c = final_loss("s3", "bf16", "nearest", nearest);
    assert_true(a == b);
    assert_string_equal(first, again);
    assert_string_not_equal(first, nearest);
    assert_true(fabs(a - c) < 0.1);
}

static void test_rounding_belongs_to_16_bits(void **state)
{
    (void)state;
    Toy t;
    const char *const words[] = { "train.rounding=stochastic" };
    QnStatus st = toy_open(&t, recipe, words, 1, &(QnSessionOptions){ .training = true });
    assert_int_equal(st != QN_OK, 1);
    assert_non_null(strstr(qn_error_last()->text, "rounding"));
}

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

/* Weights of the second layer that no product in f16 survives: 12 terms of up to 6e4 each. */
static void test_planted_overflow_is_named(void **state)
{
    (void)state;
    Toy t;
    QnTrainResult result;
    TOY_OPEN(&t, recipe, "train.precision=fp16", NULL);
    const QnSlot *slot = qn_store_find(t.session->store, "out.weight");
    assert_non_null(slot);
    int64_t n = qn_shape_count(&slot->type.shape);
    float *w = malloc((size_t)slot->bytes);
    for (int64_t i = 0; i < n; i++)
        w[i] = 6e4f;
    assert_ok(qn_store_write(t.session->store, slot, w));
    free(w);
    QnStatus st = run_toy(&t, "overflow", &result);
    assert_int_equal(st, QN_ENUMERIC);
    const char *text = qn_error_last()->text;
    if (!strstr(text, "loss scale is down to 1") || !strstr(text, "node out"))
        fail_msg("%s", text);
    toy_close(&t);
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

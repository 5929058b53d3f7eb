/* The same quality in every precision: accuracy of a classifier within 0.3 points of fp32's, loss
 * of a character GPT within 0.02, on small sets that are made here. labels: slow timeout: 600 */
#include "test.h"

#include "base/file.h"
#include "train/toy.h"

static const char *const precisions[] = { "fp32", "bf16", "fp16", "fp8", "auto" };

static char images_path[512], language_path[512];

/* Sentences of a small grammar: some letters are certain, some a choice of equals. */
static void write_text(void)
{
    static const char *const who[] = { "the king ", "a fool ", "my lord ", "no man " };
    static const char *const does[] = { "sees ", "loves ", "hears ", "fears " };
    static const char *const what[] = { "the sea.\n", "a horse.\n", "his sword.\n",
                                        "the night.\n" };
    enum { N = 1200 };
    char *text = calloc(N, 40), *at = text;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t r = toy_noise(i);
        at += sprintf(at, "%s%s%s", who[r & 3], does[r >> 8 & 3], what[r >> 16 & 3]);
    }
    temp_file("text.txt", text, (size_t)(at - text));
    free(text);
}

static int setup(void **state)
{
    (void)state;
    toy_images("a", 600);
    toy_images("b", 400);
    write_text();
    const char *recipe =
        toy_recipe("images.json", TOY_HEAD TOY_DATA
                   ", 'model': {'layers': [{'conv': {'out': 16, 'kernel': 3, 'bias': false}}, "
                   "'batch_norm', 'relu', {'max_pool': 2}, 'flatten', {'linear': 32}, 'relu', "
                   "{'linear': 'outputs'}]}, 'train': {'epochs': 6, 'batch': 32, 'lr': 0.002}}");
    snprintf(images_path, sizeof images_path, "%.500s", recipe);
    snprintf(language_path, sizeof language_path, "%.500s",
             toy_recipe("language.json",
                        "{'name': 'toy', 'task': 'language', 'data': {'format': 'text', "
                        "'train': 'text.txt', 'window': 32, 'train_fraction': 0.9}, 'model': "
                        "{'name': 'gpt2', 'layers': 2, 'heads': 2, 'width': 32}, 'train': "
                        "{'steps': 300, 'batch': 16, 'lr': 0.004, 'schedule': {'kind': 'cosine', "
                        "'warmup': 20}, 'optimizer': {'name': 'adamw', 'clip_norm': 1}}}"));
    return 0;
}

static void train(const char *recipe, const char *precision, QnEvaluation *out)
{
    Toy t;
    QnTrainResult result;
    QnMetrics metrics = { 0 };
    QnTrainEvents events = { 0 };
    char setting[64], path[1200], name[64];
    const char *slash = strrchr(recipe, '/');
    snprintf(setting, sizeof setting, "train.precision=%s", precision);
    snprintf(name, sizeof name, "%.20s-%.20s", slash ? slash + 1 : "run", precision);
    snprintf(path, sizeof path, "%s", temp_path(name));
    TOY_OPEN(&t, recipe, setting, NULL);
    assert_ok(qn_file_make_dirs(path));
    assert_ok(qn_train(t.session, &t.data, path, false, 0, &events, &metrics, &result));
    assert_int_equal(t.session->precision, t.recipe->precision); /* it did not fall back */
    *out = result.last;
    qn_evaluation_fini(&result.last);
    qn_metrics_close(&metrics);
    toy_close(&t);
}

static void test_accuracy_is_the_same(void **state)
{
    (void)state;
    double accuracy[QN_COUNT(precisions)];
    for (int i = 0; i < QN_COUNT(precisions); i++) {
        QnEvaluation e;
        train(images_path, precisions[i], &e);
        accuracy[i] = e.accuracy;
        print_message("%s: accuracy %.2f %%, loss %.4f\n", precisions[i], 100 * e.accuracy, e.loss);
        assert_true(e.accuracy > 0.9);
        assert_true(fabs(accuracy[i] - accuracy[0]) <= 0.003 + 1e-9);
    }
}

static void test_language_loss_is_the_same(void **state)
{
    (void)state;
    double loss[QN_COUNT(precisions)];
    for (int i = 0; i < QN_COUNT(precisions); i++) {
        QnEvaluation e;
        train(language_path, precisions[i], &e);
        loss[i] = e.loss;
        print_message("%s: loss %.4f\n", precisions[i], e.loss);
        assert_true(e.loss < 0.6);
        assert_true(fabs(loss[i] - loss[0]) <= 0.02);
    }
}

/* Runs in precision auto: layers move by what their gradients are, runs repeat and resume to the
 * bit, and the loss is that of fp32. labels: train */
#include "test.h"

#include "base/file.h"
#include "train/precision_auto.h"
#include "train/toy.h"
#include "nn/scaler.h"

#include <string.h>

static char recipe[512];

static int setup(void **state)
{
    (void)state;
    toy_images("a", 96);
    toy_images("b", 40);
    snprintf(recipe, sizeof recipe, "%.500s",
             toy_recipe("toy.json", TOY_HEAD TOY_DATA
                        ", 'model': {'name': 'mlp', 'hidden': [16]}, 'train': {'steps': 60, "
                        "'batch': 16, 'lr': 0.05, 'optimizer': 'sgd', 'precision': 'auto', "
                        "'checkpoint': {'every': 12}, 'eval': {'every': 20}}}"));
    return 0;
}

static char notes[8192];

static void keep_note(void *ctx, const char *text)
{
    (void)ctx;
    size_t n = strlen(notes);
    snprintf(notes + n, sizeof notes - n, "%s\n", text);
}

static bool stop_at(void *ctx)
{
    int64_t *left = ctx;
    return left && --*left == 0;
}

static QnStatus train(Toy *t, const char *folder, bool resume, int64_t *stop_after,
                      QnEvaluation *out)
{
    QnTrainResult result = { 0 };
    QnMetrics metrics = { 0 };
    QnTrainEvents events = { .ctx = stop_after, .info = keep_note, .stop = stop_at };
    char path[1200];
    snprintf(path, sizeof path, "%s", temp_path(folder));
    notes[0] = '\0';
    assert_ok(qn_file_make_dirs(path));
    QnStatus st = qn_train(t->session, &t->data, path, resume, 0, &events, &metrics, &result);
    *out = result.last;
    out->confusion = NULL;
    qn_evaluation_fini(&result.last);
    qn_metrics_close(&metrics);
    return st;
}

static QnAutoLayer *layer(const Toy *t, const char *name)
{
    QnAutoPrecision *m = t->session->mix;
    for (int64_t i = 0; i < m->n; i++) {
        if (!strcmp(m->layers[i].name, name))
            return &m->layers[i];
    }
    fail_msg("no layer '%s'", name);
    return NULL;
}

static void fill_with(Toy *t, const char *name, float value, float third)
{
    const QnSlot *slot = qn_store_find(t->session->store, name);
    assert_non_null(slot);
    int64_t n = qn_shape_count(&slot->type.shape);
    float *w = malloc((size_t)slot->bytes);
    for (int64_t i = 0; i < n; i++)
        w[i] = i % 3 ? value : third;
    assert_ok(qn_store_write(t->session->store, slot, w));
    free(w);
}

static void fill(Toy *t, const char *name, float value)
{
    fill_with(t, name, value, -value);
}

static char *metrics_of(const char *folder)
{
    char path[1200], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/metrics.jsonl", temp_path(folder));
    assert_ok(qn_file_read(path, 1 << 20, &text, &bytes));
    return text;
}

static const char *first_layer(const Toy *t)
{
    return t->session->mix->layers[0].name;
}

/* Clean gradients: all go to f16 at the third probe, and stay. */
static void test_layers_are_lowered(void **state)
{
    (void)state;
    Toy t;
    QnEvaluation e;
    TOY_OPEN(&t, recipe, NULL);
    assert_int_equal(t.session->mix->n, 2);
    assert_int_equal(layer(&t, "out.weight")->now, QN_PRECISION_FP32);
    assert_ok(train(&t, "lowered", false, NULL, &e));
    for (int i = 0; i < 2; i++) {
        const QnAutoLayer *l = &t.session->mix->layers[i];
        assert_int_equal(l->now, QN_PRECISION_FP16);
        assert_int_equal(l->steps[QN_PRECISION_FP32], 16);
        assert_int_equal(l->steps[QN_PRECISION_FP16], 44);
    }
    assert_int_equal(t.session->mix->switches, 2);
    assert_non_null(strstr(notes, "update 16: out.weight goes from fp32 to fp16"));
    char *text = metrics_of("lowered");
    assert_non_null(strstr(text, "{\"kind\": \"precision\", \"update\": 16, \"layer\": "));
    qn_free(text);
    toy_close(&t);
}

/* A second layer of tiny weights: what it hands down vanishes in f16 until it has grown. */
static void test_planted_underflow(void **state)
{
    (void)state;
    Toy t;
    QnEvaluation e;
    TOY_OPEN(&t, recipe, "train.lr=1e-12", "train.precision_auto.every=8", NULL);
    fill(&t, "out.weight", 1e-12f);
    assert_ok(train(&t, "underflow", false, NULL, &e));
    char line[300];
    snprintf(line, sizeof line, "update 16: %s goes from fp32 to bf16", first_layer(&t));
    assert_non_null(strstr(notes, line));
    assert_int_equal(layer(&t, first_layer(&t))->now, QN_PRECISION_BF16);
    assert_int_equal(layer(&t, "out.weight")->now, QN_PRECISION_FP16);
    toy_close(&t);
}

/* Gradients that vanish later on: the layer is raised at the next probe. */
static void test_raised_in_the_run(void **state)
{
    (void)state;
    Toy t;
    QnEvaluation e;
    int64_t stop = 36;
    static const char *const same[] = { "train.lr=1e-12", "train.precision_auto.every=8" };
    TOY_OPEN(&t, recipe, same[0], same[1], NULL);
    assert_ok(train(&t, "raised", false, &stop, &e));
    assert_int_equal(layer(&t, first_layer(&t))->now, QN_PRECISION_FP16);
    fill(&t, "out.weight", 1e-12f);
    QnProgress p = { .update = 36, .samples = 36 * 16, .best_metric = NAN };
    p.position.epoch = 6;
    char path[1200];
    snprintf(path, sizeof path, "%s", temp_path("raised"));
    assert_ok(qn_checkpoint_save(path, t.session->store, &p, 2));
    toy_close(&t);
    TOY_OPEN(&t, recipe, same[0], same[1], NULL);
    assert_ok(train(&t, "raised", true, NULL, &e));
    char line[300];
    snprintf(line, sizeof line, "update 40: %s goes from fp16 to bf16: in fp16", first_layer(&t));
    assert_non_null(strstr(notes, line));
    assert_int_equal(layer(&t, "out.weight")->now, QN_PRECISION_FP16);
    toy_close(&t);
}

/* Weights that f16 has no products of: gradients alone would allow it, results do not. */
static void test_planted_overflow(void **state)
{
    (void)state;
    Toy t;
    QnEvaluation e;
    TOY_OPEN(&t, recipe, "train.lr=1e-12", "train.precision_auto.every=8", NULL);
    fill(&t, "out.weight", 6e4f);
    assert_ok(train(&t, "overflow", false, NULL, &e));
    assert_int_not_equal(layer(&t, "out.weight")->now, QN_PRECISION_FP16);
    assert_int_equal(layer(&t, "out.weight")->steps[QN_PRECISION_FP16], 0);
    toy_close(&t);
}

/* Weights that are no numbers in f16, times zeros: statistics see nothing of it, a trial step does.
 */
static void test_trial_has_the_last_word(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        Toy t;
        QnEvaluation e;
        char bias[200];
        TOY_OPEN(&t, recipe, "train.lr=1e-12", "train.precision_auto.hold=1", "train.steps=4",
                 NULL);
        const char *first = first_layer(&t);
        snprintf(bias, sizeof bias, "%.*sbias", (int)(strlen(first) - strlen("weight")), first);
        fill(&t, first, 0);
        fill_with(&t, bias, -1, -1);
        fill(&t, "out.weight", 7e4f);
        for (int i = 0; i < 2 && k; i++)
            t.session->mix->layers[i].now = QN_PRECISION_FP16;
        t.session->mix->suspect = k;
        assert_ok(train(&t, k ? "trial1" : "trial0", false, NULL, &e));
        QnPrecision want = k ? QN_PRECISION_BF16 : QN_PRECISION_FP32;
        assert_int_equal(layer(&t, "out.weight")->now, want);
        assert_int_equal(layer(&t, first)->now, want);
        assert_int_equal(strstr(notes, "a trial step differed from fp32") != NULL, k);
        toy_close(&t);
    }
}

/* A loss scale that has grown to infinity: the trial ends, and the run gets a scale again. */
static void test_infinite_loss_scale(void **state)
{
    (void)state;
    Toy t;
    QnEvaluation e;
    float scale;
    TOY_OPEN(&t, recipe, "train.steps=20", NULL);
    fill_with(&t, "optim.loss_scale", INFINITY, INFINITY);
    for (int i = 0; i < 2; i++)
        t.session->mix->layers[i].now = QN_PRECISION_FP16;
    t.session->mix->suspect = true;
    assert_ok(train(&t, "infinite", false, NULL, &e));
    const QnSlot *slot = qn_store_find(t.session->store, "optim.loss_scale");
    assert_ok(qn_store_read(t.session->store, slot, &scale));
    assert_true(scale >= 1 && scale <= (float)QN_SCALER_MOST);
    toy_close(&t);
}

static void run_whole(const char *folder, const char *fp8, int64_t stop, char hex[QN_SHA256_HEX],
                      char **text)
{
    Toy t;
    QnEvaluation e;
    char path[1200];
    snprintf(path, sizeof path, "%s", temp_path(folder));
    for (int part = stop ? 0 : 1; part < 2; part++) {
        int64_t left = stop;
        TOY_OPEN(&t, recipe, "train.precision_auto.every=8", fp8, NULL);
        assert_ok(train(&t, folder, part == 1 && stop, part ? NULL : &left, &e));
        assert_ok(qn_checkpoint_digest(t.session->store, hex));
        assert_int_equal(layer(&t, first_layer(&t))->now,
                         strstr(fp8, "true") ? QN_PRECISION_FP8 : QN_PRECISION_FP16);
        toy_close(&t);
    }
    *text = metrics_of(folder);
}

/* Stopped after 24 updates (a switch comes before the 17th) and gone on with: the same bits. */
static void test_resumes_to_the_bit(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *fp8 = k ? "train.precision_auto.fp8=true" : "train.precision_auto.fp8=false";
        char a[QN_SHA256_HEX], b[QN_SHA256_HEX], *one, *two;
        run_whole(k ? "whole8" : "whole", fp8, 0, a, &one);
        run_whole(k ? "parts8" : "parts", fp8, 24, b, &two);
        assert_string_equal(a, b);
        assert_string_equal(one, two);
        qn_free(one);
        qn_free(two);
    }
}

static void test_report(void **state)
{
    (void)state;
    Toy t;
    QnEvaluation e;
    QnStr text = { 0 };
    TOY_OPEN(&t, recipe, NULL);
    assert_ok(train(&t, "report", false, NULL, &e));
    QnAutoCost costs[QN_AUTO_COMPARED];
    qn_auto_costs(t.session, costs);
    assert_ok(qn_auto_report(t.session, costs, &text));
    assert_non_null(strstr(qn_str_text(&text), "fp32 26.7 %, bf16 0.0 %, fp16 73.3 %"));
    assert_non_null(strstr(qn_str_text(&text), "a step in auto, as it ended: "));
    assert_non_null(strstr(qn_str_text(&text), "a step in fp32: "));
    assert_non_null(strstr(qn_str_text(&text), "a step in fp16: "));
    for (int i = 0; i < QN_AUTO_COMPARED; i++)
        assert_true(costs[i].known);
    assert_true(costs[0].planned_bytes < costs[QN_AUTO_COMPARED - 1].planned_bytes);
    qn_str_fini(&text);
    toy_close(&t);
}

static void test_recipe_is_checked(void **state)
{
    (void)state;
    Toy t;
    const char *const words[] = { "train.precision=bf16", "train.precision_auto.every=8" };
    QnStatus st = toy_open(&t, recipe, words, 2, &(QnSessionOptions){ .training = true });
    assert_int_not_equal(st, QN_OK);
    assert_non_null(strstr(qn_error_last()->text, "belongs to train.precision auto"));
}

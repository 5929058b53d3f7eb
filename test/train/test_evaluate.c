/* Measures of a model against sums over single samples. labels: train */
#include "toy.h"

#define RECIPE TOY_HEAD TOY_DATA ", " TOY_MLP ", 'train': {'epochs': 1, 'batch': 8, 'lr': 0.1}}"

typedef struct Seen {
    int calls;
    int64_t done, total;
} Seen;

static void on_progress(void *ctx, int64_t done, int64_t total)
{
    Seen *seen = ctx;
    seen->calls++;
    seen->done = done;
    seen->total = total;
}

static void test_classes(void **state)
{
    Toy t;
    QnEvaluation e;
    Seen seen = { 0 };
    int64_t table[TOY_CLASSES][TOY_CLASSES] = { { 0 } }, right = 0;
    toy_images("a", 40);
    toy_images("b", 21); /* two full batches and one of five */
    TOY_OPEN(&t, toy_recipe("r.json", RECIPE), NULL);
    double loss = 0;
    for (int64_t i = 0; i < 21; i++) {
        float *x = calloc(8, qn_sample_x_bytes(&t.data.test->spec));
        int64_t y[8] = { 0 }, best = 0;
        QnEvalResult r;
        assert_ok(qn_dataset_get(t.data.test, i, 0, 0, x, y));
        int64_t label = y[0];
        assert_ok(qn_session_eval(t.session, &(QnBatch){ .x = x, .y = y, .count = 1 }, &r));
        double sum = 0;
        for (int64_t k = 0; k < TOY_CLASSES; k++) {
            best = r.logits[k] > r.logits[best] ? k : best;
            sum += exp((double)r.logits[k]);
        }
        loss += log(sum) - (double)r.logits[label];
        table[label][best]++;
        right += best == label;
        free(x);
    }
    assert_ok(qn_evaluate(t.session, t.data.test, on_progress, &seen, &e));
    assert_int_equal(e.samples, 21);
    assert_true(e.accuracy == (double)right / 21);
    assert_true(fabs(e.loss - loss / 21) < 1e-6);
    assert_int_equal(e.n_classes, TOY_CLASSES);
    assert_memory_equal(e.confusion, table, sizeof table);
    assert_true(isnan(e.r2));
    assert_int_equal(seen.calls, 3);
    assert_int_equal(seen.done, 3);
    assert_int_equal(seen.total, 3);
    assert_true(qn_evaluation_score(t.recipe, &e) == e.accuracy);
    double value;
    assert_string_equal(qn_evaluation_metric(t.recipe, &e, &value), "test_accuracy");
    assert_true(value == e.accuracy);
    qn_evaluation_fini(&e);
    toy_close(&t);
}

/* Targets far from zero: their squares must not eat up the deviation. */
static void r_squared(double offset, double tolerance)
{
    char text[4096] = "a,b,y\n";
    for (int i = 0; i < 60; i++) {
        size_t n = strlen(text);
        double a = toy_noise((uint32_t)i) * 1e-9, b = toy_noise((uint32_t)i + 500) * 1e-9;
        snprintf(text + n, sizeof text - n, "%.6f,%.6f,%.6f\n", a, b,
                 offset + a - 2 * b + toy_noise((uint32_t)i + 900) * 2e-10);
    }
    temp_file("r.csv", text, strlen(text));
    Toy t;
    QnEvaluation e;
    TOY_OPEN(&t,
             toy_recipe("csv.json", "{'task': 'regress', 'data': {'format': 'csv', "
                                    "'train': 'r.csv', 'train_fraction': 0.5}, "
                                    "'model': {'name': 'linear'}, "
                                    "'train': {'epochs': 1, 'batch': 8, 'lr': 0.01}}"),
             NULL);
    const QnSlot *bias = qn_store_find(t.session->store, "fc.bias"),
                 *weight = qn_store_find(t.session->store, "fc.weight");
    float start = (float)offset, slopes[2] = { 0.9f, -1.8f };
    assert_ok(qn_store_write(t.session->store, bias, &start));
    assert_ok(qn_store_write(t.session->store, weight, slopes));
    int64_t n = qn_dataset_count(t.data.test);
    double y[64], mean = 0, error = 0, deviation = 0;
    for (int64_t i = 0; i < n; i++) {
        float x[2], target;
        assert_ok(qn_dataset_get(t.data.test, i, 0, 0, x, &target));
        float out = slopes[0] * x[0] + slopes[1] * x[1] + start;
        y[i] = (double)target;
        mean += y[i] / (double)n;
        error += pow((double)(out - target), 2);
    }
    for (int64_t i = 0; i < n; i++)
        deviation += (y[i] - mean) * (y[i] - mean);
    assert_ok(qn_evaluate(t.session, t.data.test, NULL, NULL, &e));
    assert_int_equal(e.samples, n);
    double want = 1 - error / deviation;
    if (!(fabs(e.r2 - want) < tolerance && want > 0.5 && want < 1))
        fail_msg("R2 %.9g, expected %.9g", e.r2, want);
    assert_true(fabs(e.loss - error / (double)n) < tolerance * (1 + e.loss));
    assert_null(e.confusion);
    assert_true(qn_evaluation_score(t.recipe, &e) == e.r2);
    toy_close(&t);
}

static void test_r_squared(void **state)
{
    r_squared(0, 1e-5);
    r_squared(1000, 1e-3);
}

static void test_language(void **state)
{
    Toy t;
    char text[400];
    for (int i = 0; i < 399; i++)
        text[i] = "abc\n"[i % 4];
    temp_file("t.txt", text, 399);
    QnStatus st = toy_open(
        &t,
        toy_recipe("t.json",
                   "{'task': 'language', 'data': {'format': 'text', 'train': 't.txt', 'window': 8},"
                   "'model': {'name': 'gpt2', 'heads': 2, 'width': 8}, "
                   "'train': {'steps': 1, 'batch': 4, 'lr': 0.01}}"),
        NULL, 0, &(QnSessionOptions){ .training = true });
    if (st != QN_OK && strstr(qn_error_last()->text, "no model 'gpt2'"))
        skip_because("no such model");
    assert_ok(st);
    QnEvaluation e;
    assert_ok(qn_evaluate(t.session, t.data.test, NULL, NULL, &e));
    assert_true(fabs(e.perplexity - exp(e.loss)) < 1e-9 * e.perplexity);
    assert_true(e.loss > 0.5 * log(4) && e.loss < 2 * log(4)); /* untrained, of four letters */
    assert_true(qn_evaluation_score(t.recipe, &e) == -e.loss);
    qn_evaluation_fini(&e);
    toy_close(&t);
}

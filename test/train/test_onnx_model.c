/* Models of ONNX files, trained: as the built-in model of the same weights, with frozen weights,
 * with a new head. labels: train onnx */
#include "foreign.h"

#include "onnx/onnx.h"

#define OF_FILE(model) TOY_HEAD TOY_DATA ", 'model': " model TRAIN
#define FROM           OF_FILE("'m.onnx'")

/* m.onnx: what a recipe's model is at the start. */
static bool export_model(const char *recipe)
{
    Toy t;
    QnGraph *g;
    TOY_OPEN(&t, toy_recipe("built.json", recipe), NULL);
    assert_ok(qn_session_model(t.session, 0, &g));
    QnStatus st = qn_onnx_export(g, t.session->store, NULL, temp_path("m.onnx"));
    qn_graph_free(g);
    toy_close(&t);
    if (st == QN_EUNSUPPORTED && strstr(qn_error_last()->text, "built without"))
        return false;
    assert_ok(st);
    return true;
}

static int group_setup(void **state)
{
    foreign_data();
    return 0;
}

static void assert_close(const Toy *a, const Toy *b, const char *name, double tolerance)
{
    int64_t n, m;
    float *x = toy_state(a->session->store, name, &n);
    float *y = toy_state(b->session->store, name, &m);
    assert_int_equal(n, m);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= tolerance * (1 + fabs(x[i]))))
            fail_msg("%s[%lld] is %g, expected %g", name, (long long)i, y[i], x[i]);
    free(x);
    free(y);
}

/* Batches of 8 of images that end as 1x1: the running variance, which ONNX takes biased and we not,
 * differs by what (n-1)/n says, the rest by rounding alone. */
static void test_trains_as_the_built_in_model(void **state)
{
    Toy a, b;
    if (!export_model(RESNET("18")))
        skip();
    TOY_OPEN(&a, toy_recipe("a.json", RESNET("18")), "train.optimizer=sgd", NULL);
    TOY_OPEN(&b, toy_recipe("b.json", FROM), "train.optimizer=sgd", NULL);
    assert_int_equal(a.session->n_params, b.session->n_params);
    assert_close(&a, &b, "layer3.0.conv1.weight", 0);
    double first = 0, last = 0;
    for (int i = 0; i < 4; i++) {
        double want = step(&a), got = step(&b);
        if (!(fabs(got - want) <= 2e-5 * fabs(want)))
            fail_msg("loss %d is %.9g, expected %.9g", i, got, want);
        if (i == 0)
            first = got;
        last = got;
    }
    assert_true(last < first);
    assert_close(&a, &b, "layer1.0.conv1.weight", 1e-4);
    assert_close(&a, &b, "fc.weight", 1e-4);
    assert_close(&a, &b, "layer1.0.bn1.running_mean", 1e-4);
    int64_t n;
    float *mean = toy_state(b.session->store, "layer1.0.bn1.running_mean", &n);
    assert_true(mean[0] != 0); /* 0 in the file */
    free(mean);
    toy_close(&a);
    toy_close(&b);
}

/* Weight decay leaves out biases and norms, averages go along, the loss may be accumulated. */
static void test_decay_averages_and_accumulation(void **state)
{
    static const char *const settings[] = {
        "train.optimizer={name: adamw, weight_decay: 0.3}",
        "train.ema=0.5",
        "train.accumulate=2",
    };
    Toy a, b;
    if (!export_model(RESNET("18")))
        skip();
    assert_ok(toy_open(&a, toy_recipe("a.json", RESNET("18")), settings, 3,
                       &(QnSessionOptions){ .training = true }));
    assert_ok(toy_open(&b, toy_recipe("b.json", FROM), settings, 3,
                       &(QnSessionOptions){ .training = true }));
    assert_close(&a, &b, "ema.layer1.0.conv1.weight", 0);
    for (int i = 0; i < 2; i++) { /* step() is always of micro-batch 0 */
        double want = step(&a), got = step(&b);
        assert_true(fabs(got - want) <= 1e-5 * fabs(want));
    }
    assert_int_equal(qn_store_count(a.session->store), qn_store_count(b.session->store));
    for (int64_t i = 0; i < qn_store_count(a.session->store); i++)
        assert_non_null(
            qn_store_find(b.session->store, qn_slot_name(qn_store_at(a.session->store, i))));
    toy_close(&a);
    toy_close(&b);
}

static void test_frozen_weights_stay(void **state)
{
    Toy a, b;
    if (!export_model(RESNET("18")))
        skip();
    TOY_OPEN(&a, toy_recipe("b.json", FROM), NULL);
    TOY_OPEN(&b,
             toy_recipe("f.json", OF_FILE("{'onnx': 'm.onnx', 'freeze': ['layer1.*', '*conv1*']}")),
             NULL);
    assert_true(b.session->n_params < a.session->n_params);
    for (int i = 0; i < 3; i++)
        step(&b);
    int frozen = 0, moved = 0;
    for (int64_t i = 0; i < qn_store_count(a.session->store); i++) {
        const char *name = qn_slot_name(qn_store_at(a.session->store, i));
        if (!strncmp(name, "optim.", 6))
            continue;
        int64_t n;
        bool is_frozen = !strncmp(name, "layer1.", 7) || strstr(name, "conv1");
        float *x = toy_state(a.session->store, name, &n);
        float *y = toy_state(b.session->store, name, &n);
        bool same = !memcmp(x, y, (size_t)n * sizeof *x);
        if (same != is_frozen)
            fail_msg("%s is %s", name, same ? "as it was" : "changed");
        frozen += is_frozen;
        moved += !is_frozen;
        free(x);
        free(y);
    }
    assert_true(frozen > 10 && moved > 10);
    toy_close(&a);
    toy_close(&b);
    Toy c;
    const QnSessionOptions training = { .training = true };
    assert_fails(toy_open(&c,
                          toy_recipe("f.json", OF_FILE("{'onnx': 'm.onnx', 'freeze': 'lyer1*'}")),
                          NULL, 0, &training),
                 QN_EUSAGE, "no weight of");
    assert_fails(toy_open(&c, toy_recipe("f.json", OF_FILE("{'onnx': 'm.onnx', 'freeze': '*'}")),
                          NULL, 0, &training),
                 QN_EUSAGE, "would be trained");
}

static void test_new_head(void **state)
{
    Toy a, b, c;
    if (!export_model("{'name': 'ten', 'task': 'classify', " TOY_DATA
                      ", 'model': {'name': 'resnet', 'depth': 18, 'width': 4}" TRAIN))
        skip();
    TOY_OPEN(&a, toy_recipe("b.json", FROM), NULL);
    TOY_OPEN(&b, toy_recipe("h.json", OF_FILE("{'onnx': 'm.onnx', 'head': 'outputs'}")), NULL);
    TOY_OPEN(&c, temp_path("h.json"), "model.head=4", "train.seed=5", NULL);
    assert_int_equal(a.session->n_params, b.session->n_params);
    assert_null(qn_store_find(b.session->store, "fc.weight"));
    assert_close(&a, &b, "conv1.weight", 0);
    assert_close(&a, &c, "layer4.1.conv2.weight", 0);
    int64_t n;
    float *x = toy_state(b.session->store, "head.weight", &n);
    float *y = toy_state(c.session->store, "head.weight", &n);
    assert_int_equal(n, 4 * 32);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_true(fabs(x[i]) <= 1 / sqrt(32.0));
        sum += fabs(x[i] - y[i]);
    }
    assert_true(sum > 1); /* another seed, another head */
    free(x);
    free(y);
    double first = step(&b), last = 0;
    for (int i = 0; i < 3; i++)
        last = step(&b);
    assert_true(last < first);
    toy_close(&c);
    TOY_OPEN(&c, temp_path("h.json"), "model.freeze='*'", NULL); /* the head alone */
    assert_int_equal(c.session->n_params, 4 * 32 + 4);
    first = step(&c);
    assert_true(step(&c) < first);
    assert_close(&a, &c, "conv1.weight", 0);
    assert_close(&a, &c, "bn1.running_mean", 0);
    toy_close(&a);
    toy_close(&b);
    toy_close(&c);
    assert_fails(toy_open(&c, temp_path("h.json"), (const char *const[]){ "model.head=7" }, 1,
                          &(QnSessionOptions){ .training = true }),
                 QN_EUSAGE, "the data asks for 4");
}

/* Tokens in, logits for each of them out. */
static void test_language_model(void **state)
{
    static const char of_file[] =
        "{'name': 'text', 'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "
        "'window': 8}, 'model': 'm.onnx'" TRAIN;
    Toy a, b;
    if (!export_model(GPT("")))
        skip();
    TOY_OPEN(&a, toy_recipe("a.json", GPT("")), NULL);
    TOY_OPEN(&b, toy_recipe("b.json", of_file), NULL);
    assert_int_equal(a.session->n_params, b.session->n_params);
    for (int i = 0; i < 3; i++) {
        double want = step(&a), got = step(&b);
        if (!(fabs(got - want) <= 2e-5 * fabs(want)))
            fail_msg("loss %d is %.9g, expected %.9g", i, got, want);
    }
    toy_close(&a);
    toy_close(&b);
}

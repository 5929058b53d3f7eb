/* A session for inference predicts what the session that trained the net does, with its batch norms
 * in the convolutions' weights and nothing but packed constants in memory. labels: train */
#include "toy.h"

#include "base/fault.h"
#include "ops/ops.h"
#include "rt/plan.h"

enum { SAMPLES = 8, UPDATES = 12 };

#define RECIPE                                                                                     \
    TOY_HEAD TOY_DATA                                                                              \
        ", 'model': {'layers': [{'conv': {'out': 16, 'kernel': 3, 'bias': false}}, 'batch_norm', " \
        "'relu', {'conv': {'out': 32, 'kernel': 3}}, 'batch_norm', 'relu', 'flatten', "            \
        "{'linear': 'outputs'}]}, 'train': {'epochs': 1, 'batch': 8, 'lr': 0.05, "                 \
        "'optimizer': {'name': 'sgd', 'momentum': 0.9}}}"

static char recipe[512], weights[512];
static QnBatch batch;

static void fill_batch(const QnDataset *ds, int64_t first)
{
    size_t nx = qn_sample_x_bytes(&ds->spec), ny = qn_sample_y_bytes(&ds->spec);
    for (int64_t i = 0; i < SAMPLES; i++)
        assert_ok(qn_dataset_get(ds, first + i, 0, 0, (char *)(uintptr_t)batch.x + (size_t)i * nx,
                                 (char *)(uintptr_t)batch.y + (size_t)i * ny));
}

static int group_setup(void **state)
{
    (void)state;
    toy_images("a", 64);
    toy_images("b", 21);
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", RECIPE));
    snprintf(weights, sizeof weights, "%s", temp_path("w.safetensors"));
    batch = (QnBatch){ .x = calloc(SAMPLES, TOY_SIDE * TOY_SIDE * sizeof(float)),
                       .y = calloc(SAMPLES, sizeof(int64_t)),
                       .count = SAMPLES };
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    free((void *)(uintptr_t)batch.x);
    free((void *)(uintptr_t)batch.y);
    return 0;
}

/* Trains, writes the weights, and gives the predictions of the training session. */
static void train(const char *precision, float logits[SAMPLES * TOY_CLASSES], double *loss)
{
    Toy t;
    QnStepResult step;
    QnEvalResult r;
    TOY_OPEN(&t, recipe, precision, NULL);
    for (int64_t i = 0; i < UPDATES; i++) {
        fill_batch(t.data.train, i % 8 * SAMPLES);
        assert_ok(qn_session_step(t.session, &batch, i, 0.05, &step));
    }
    fill_batch(t.data.test, 0);
    assert_ok(qn_session_eval(t.session, &batch, &r));
    memcpy(logits, r.logits, SAMPLES * TOY_CLASSES * sizeof *logits);
    *loss = r.loss_sum;
    assert_ok(qn_store_save(t.session->store, NULL, weights));
    toy_close(&t);
}

static QnStatus open_frozen(Toy *t, const char *precision)
{
    QN_TRY(toy_open(t, recipe, &precision, 1, &(QnSessionOptions){ .inference = true }));
    QnStatus st = qn_store_load(t->session->store, weights, NULL);
    if (st == QN_OK)
        st = qn_session_freeze(t->session);
    if (st != QN_OK)
        toy_close(t);
    return st;
}

static void train_and_freeze(Toy *t)
{
    float logits[SAMPLES * TOY_CLASSES];
    double loss;
    train("train.precision=fp32", logits, &loss);
    assert_ok(open_frozen(t, "train.precision=fp32"));
}

static void predict(Toy *t, float logits[SAMPLES * TOY_CLASSES], double *loss)
{
    QnEvalResult r;
    fill_batch(t->data.test, 0);
    assert_ok(qn_session_eval(t->session, &batch, &r));
    memcpy(logits, r.logits, SAMPLES * TOY_CLASSES * sizeof *logits);
    *loss = r.loss_sum;
}

static void compare(const char *precision, float tolerance)
{
    float want[SAMPLES * TOY_CLASSES], got[SAMPLES * TOY_CLASSES], again[SAMPLES * TOY_CLASSES];
    double want_loss, loss, loss_again;
    Toy t;
    train(precision, want, &want_loss);
    assert_ok(open_frozen(&t, precision));
    predict(&t, got, &loss);
    toy_close(&t);
    for (int i = 0; i < SAMPLES * TOY_CLASSES; i++)
        assert_float_equal(want[i], got[i], tolerance * (1 + fabsf(want[i])));
    assert_true(fabs(want_loss - loss) <= (double)tolerance * (1 + fabs(want_loss)) * SAMPLES);
    assert_ok(open_frozen(&t, precision));
    predict(&t, again, &loss_again);
    toy_close(&t);
    assert_memory_equal(got, again, sizeof got);
    assert_true(loss == loss_again);
}

static void test_predictions_are_those_of_training(void **state)
{
    (void)state;
    compare("train.precision=fp32", 1e-5f);
}

static void test_predictions_in_16_bits(void **state)
{
    (void)state;
    compare("train.precision=bf16", 2e-2f);
}

static void test_no_norm_is_left(void **state)
{
    Toy t;
    (void)state;
    train_and_freeze(&t);
    const QnGraph *g = t.session->eval_graph;
    QN_GRAPH_EACH(g, n)
    {
        bool arithmetic = n->op == &qn_op_batch_norm_inference || n->op == &qn_op_rsqrt ||
                          n->op == &qn_op_mul || n->op == &qn_op_add || n->op == &qn_op_sub ||
                          n->op == &qn_op_fused;
        if (arithmetic)
            fail_msg("%s is left", n->op->name);
        assert_false(n->op->traits & QN_STATE);
    }
    toy_close(&t);
}

/* The store's memory is given back, and the constants are all that there is beside activations. */
static void test_memory(void **state)
{
    Toy t;
    (void)state;
    train_and_freeze(&t);
    QnPlanMemory m = qn_plan_memory(t.session->eval_plan);
    assert_int_equal(m.state_bytes, 0);
    assert_int_equal(t.session->device->now_bytes, m.arena_bytes + m.constant_bytes);
    assert_int_equal(qn_session_planned_bytes(t.session), m.arena_bytes + m.constant_bytes);
    assert_fails(qn_session_freeze(t.session), QN_EARG, "frozen already");
    toy_close(&t);

    TOY_OPEN(&t, recipe, NULL); /* training goes on with states */
    assert_fails(qn_session_freeze(t.session), QN_EARG, "not opened for inference");
    assert_true(t.session->store->bytes > 0);
    toy_close(&t);
}

static void test_every_allocation_may_fail(void **state)
{
    float logits[SAMPLES * TOY_CLASSES];
    double loss;
    bool done = false;
    Toy t;
    (void)state;
    train("train.precision=fp32", logits, &loss);
    assert_ok(toy_open(&t, recipe, NULL, 0, &(QnSessionOptions){ .inference = true }));
    toy_close(&t);
    for (int64_t n = 1; !done; n += 1 + n / 40) {
        assert_ok(toy_open(&t, recipe, NULL, 0, &(QnSessionOptions){ .inference = true }));
        assert_ok(qn_store_load(t.session->store, weights, NULL));
        qn_fault_arm(n);
        QnStatus st = qn_session_freeze(t.session);
        done = qn_fault_events() < n;
        qn_fault_arm(0);
        assert_true(st == QN_OK || st == QN_ENOMEM);
        assert_true(!done || st == QN_OK);
        toy_close(&t);
    }
}

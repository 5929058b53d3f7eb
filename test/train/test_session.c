/* Sessions: N micro-batches equal one batch of their sum, averaged weights, evaluation of short
 * batches, initial states, the same bits for the same seed. labels: train */
#include "toy.h"

#include "base/mem.h"

#define RECIPE                                                                                     \
    TOY_HEAD TOY_DATA ", " TOY_MLP ", 'train': {'epochs': 1, 'batch': 8, 'lr': 0.1, "              \
                      "'optimizer': {'name': 'sgd', 'momentum': 0.9}}}"

static char recipe[512];

static int group_setup(void **state)
{
    toy_images("a", 64);
    toy_images("b", 21);
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", RECIPE));
    return 0;
}

/* Samples first … first+count-1 of a dataset as a batch; freed by free_batch. */
static QnBatch batch_of(const QnDataset *ds, int64_t first, int64_t count, int64_t room)
{
    size_t nx = qn_sample_x_bytes(&ds->spec), ny = qn_sample_y_bytes(&ds->spec);
    QnBatch b = { .x = calloc((size_t)room, nx), .y = calloc((size_t)room, ny), .count = count };
    for (int64_t i = 0; i < count; i++)
        assert_ok(qn_dataset_get(ds, first + i, 0, 0, (char *)b.x + (size_t)i * nx,
                                 (char *)b.y + (size_t)i * ny));
    return b;
}

static void free_batch(QnBatch *b)
{
    free(b->x);
    free(b->y);
}

/* Feeds micro-batches from `first` on; gives the mean loss. */
static double steps(Toy *t, int64_t first, int64_t batch, int64_t n)
{
    double loss = 0;
    for (int64_t i = 0; i < n; i++) {
        QnStepResult r;
        QnBatch b = batch_of(t->data.train, first + i * batch, batch, batch);
        assert_ok(qn_session_step(t->session, &b, i, 0.1, &r));
        loss += r.loss / (double)n;
        free_batch(&b);
    }
    return loss;
}

/* All states that both have must be near each other; gives how many there are. */
static int assert_states_near(const Toy *a, const Toy *b, double tolerance)
{
    int n_compared = 0;
    for (int64_t i = 0; i < a->session->store->n; i++) {
        const char *name = a->session->store->slots[i].name;
        int64_t n, m;
        if (!qn_store_find(b->session->store, name))
            continue;
        float *x = toy_state(a->session->store, name, &n);
        float *y = toy_state(b->session->store, name, &m);
        assert_int_equal(n, m);
        for (int64_t k = 0; k < n; k++) {
            if (!(fabs((double)x[k] - y[k]) <= tolerance * (1 + fabs((double)x[k]))))
                fail_msg("%s[%lld]: %.9g and %.9g", name, (long long)k, (double)x[k], (double)y[k]);
        }
        free(x);
        free(y);
        n_compared++;
    }
    return n_compared;
}

static void accumulates(const char *optimizer)
{
    Toy whole, parts;
    TOY_OPEN(&whole, recipe, "train.batch=32", optimizer, NULL);
    TOY_OPEN(&parts, recipe, "train.batch=8", "train.accumulate=4", optimizer, NULL);
    double a = steps(&whole, 0, 32, 1), b = steps(&parts, 0, 8, 4);
    assert_true(fabs(a - b) < 1e-5);
    assert_true(assert_states_near(&whole, &parts, 2e-6) >= 8); /* weights and their moments */
    int64_t n;
    float *sum = toy_state(parts.session->store, "grad.fc1.weight", &n);
    for (int64_t i = 0; i < n; i++)
        assert_true(sum[i] == 0); /* ready for the next update */
    free(sum);
    toy_close(&whole);
    toy_close(&parts);
}

static void test_micro_batches_equal_their_sum(void **state)
{
    accumulates("train.optimizer={\"name\": \"sgd\", \"momentum\": 0.9}");
    accumulates("train.optimizer={\"name\": \"sgd\", \"momentum\": 0.9, \"clip_norm\": 0.1, "
                "\"weight_decay\": 0.1}");
}

/* Nothing moves before the last micro-batch. */
static void test_update_waits_for_the_last(void **state)
{
    Toy t, start;
    TOY_OPEN(&t, recipe, "train.accumulate=4", NULL);
    TOY_OPEN(&start, recipe, "train.accumulate=4", NULL);
    for (int64_t i = 0; i < 3; i++) {
        QnStepResult r;
        QnBatch b = batch_of(t.data.train, i * 8, 8, 8);
        assert_ok(qn_session_step(t.session, &b, i, 0.1, &r));
        free_batch(&b);
    }
    int64_t n;
    float *x = toy_state(t.session->store, "fc1.weight", &n),
          *y = toy_state(start.session->store, "fc1.weight", &n);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    free(x);
    free(y);
    toy_close(&t);
    toy_close(&start);
}

static void test_averaged_weights(void **state)
{
    Toy t;
    int64_t n;
    TOY_OPEN(&t, recipe, "train.ema=0.75", NULL);
    float *w0 = toy_state(t.session->store, "fc1.weight", &n);
    float *e0 = toy_state(t.session->store, "ema.fc1.weight", &n);
    assert_memory_equal(w0, e0, (size_t)n * sizeof *w0); /* starts as what it averages */
    double *want = malloc((size_t)n * sizeof *want);
    for (int64_t k = 0; k < n; k++)
        want[k] = (double)w0[k];
    for (int64_t u = 0; u < 3; u++) {
        QnStepResult r;
        QnBatch b = batch_of(t.data.train, u * 8, 8, 8);
        assert_ok(qn_session_step(t.session, &b, u, 0.1, &r));
        free_batch(&b);
        float *w = toy_state(t.session->store, "fc1.weight", &n);
        for (int64_t k = 0; k < n; k++)
            want[k] = 0.75 * want[k] + 0.25 * (double)w[k];
        free(w);
    }
    float *e = toy_state(t.session->store, "ema.fc1.weight", &n);
    double moved = 0;
    for (int64_t k = 0; k < n; k++) {
        assert_true(fabs(want[k] - (double)e[k]) < 1e-6);
        moved += fabs(want[k] - (double)w0[k]);
    }
    assert_true(moved > 0);
    free(w0);
    free(e0);
    free(e);
    free(want);
    toy_close(&t);
}

/* Evaluation reads the averages where there are some. */
static void test_eval_uses_the_average(void **state)
{
    Toy t;
    QnEvalResult r;
    TOY_OPEN(&t, recipe, "train.ema=0.9", NULL);
    steps(&t, 0, 8, 4);
    QnBatch b = batch_of(t.data.test, 0, 8, 8);
    assert_ok(qn_session_eval(t.session, &b, &r));
    double before = r.loss_sum;
    const QnSlot *w = qn_store_find(t.session->store, "fc1.weight");
    float *zeros = calloc(1, (size_t)w->bytes);
    assert_ok(qn_store_write(t.session->store, w, zeros));
    assert_ok(qn_session_eval(t.session, &b, &r));
    assert_true(r.loss_sum == before);
    w = qn_store_find(t.session->store, "ema.fc1.weight");
    assert_ok(qn_store_write(t.session->store, w, zeros));
    assert_ok(qn_session_eval(t.session, &b, &r));
    assert_true(r.loss_sum != before);
    free(zeros);
    free_batch(&b);
    toy_close(&t);
}

/* What stands in the rows behind a short batch is of no account. */
static void short_batch_is_the_sum(const char *path, int64_t count)
{
    Toy t;
    TOY_OPEN(&t, path, "train.eval.batch=8", NULL);
    QnEvalResult r;
    QnBatch b = batch_of(t.data.test, 0, count, 8);
    float *x = b.x;
    for (size_t i = (size_t)count * qn_sample_x_bytes(&t.data.test->spec) / sizeof *x;
         i < 8 * qn_sample_x_bytes(&t.data.test->spec) / sizeof *x; i++)
        x[i] = 1e3f;
    assert_ok(qn_session_eval(t.session, &b, &r));
    double sum = r.loss_sum, single = 0;
    int64_t outputs = r.outputs;
    assert_int_equal(r.rows, count);
    float *logits = malloc((size_t)(r.rows * outputs) * sizeof *logits);
    memcpy(logits, r.logits, (size_t)(r.rows * outputs) * sizeof *logits);
    for (int64_t i = 0; i < count; i++) {
        QnBatch one = batch_of(t.data.test, i, 1, 8);
        assert_ok(qn_session_eval(t.session, &one, &r));
        assert_int_equal(r.rows, 1);
        single += r.loss_sum;
        for (int64_t k = 0; k < outputs; k++)
            assert_true(fabs((double)logits[i * outputs + k] - (double)r.logits[k]) < 1e-5);
        free_batch(&one);
    }
    assert_true(sum > 0 && fabs(sum - single) < 1e-5 * sum);
    free(logits);
    free_batch(&b);
    toy_close(&t);
}

static void test_short_batches(void **state)
{
    short_batch_is_the_sum(recipe, 5);
    short_batch_is_the_sum(recipe, 8);
    static const char csv[] = "a,b,c\n1,2,3\n2,1,5\n4,4,2\n0,1,1\n3,2,2\n5,1,4\n1,1,1\n2,2,6\n"
                              "3,3,1\n1,4,2\n2,5,3\n4,1,1\n0,0,2\n1,5,5\n2,3,2\n3,1,3\n";
    temp_file("r.csv", csv, sizeof csv - 1);
    const char *path =
        toy_recipe("csv.json", "{'task': 'regress', 'data': {'format': 'csv', 'train': 'r.csv', "
                               "'train_fraction': 0.5}, 'model': {'name': 'linear'}, "
                               "'train': {'epochs': 1, 'batch': 4, 'lr': 0.01}}");
    short_batch_is_the_sum(path, 3);
}

/* A state starts the same whatever else the model has, and otherwise by another seed. */
static void test_initial_states(void **state)
{
    Toy a, b;
    int64_t n;
    TOY_OPEN(&a, recipe, "model.hidden=[12, 12]", NULL);
    TOY_OPEN(&b, recipe, "train.ema=0.5", "train.optimizer=adamw", NULL);
    float *x = toy_state(a.session->store, "fc1.weight", &n),
          *y = toy_state(b.session->store, "fc1.weight", &n);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    free(y);
    y = toy_state(a.session->store, "fc2.weight", &n);
    assert_memory_not_equal(x, y, (size_t)n * sizeof *x); /* each its own */
    free(y);
    toy_close(&b);
    TOY_OPEN(&b, recipe, "train.seed=1", NULL);
    y = toy_state(b.session->store, "fc1.weight", &n);
    assert_memory_not_equal(x, y, (size_t)n * sizeof *x);
    double bound = 1 / sqrt(TOY_SIDE * TOY_SIDE); /* of PyTorch's default */
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)y[i]));
    assert_true(most <= bound && most > 0.9 * bound);
    free(x);
    free(y);
    toy_close(&a);
    toy_close(&b);
}

static void test_planned_is_allocated(void **state)
{
    static const char *const settings[] = { "train.accumulate=1", "train.accumulate=4",
                                            "train.ema=0.5" };
    for (int i = 0; i < QN_COUNT(settings); i++) {
        Toy t;
        TOY_OPEN(&t, recipe, settings[i], NULL);
        const QnSession *s = t.session;
        const QnPlan *plans[] = { s->train_plan, s->update_plan, s->eval_plan };
        int64_t planned = s->store->bytes;
        for (int k = 0; k < QN_COUNT(plans); k++) {
            if (!plans[k])
                continue;
            QnPlanMemory m = qn_plan_memory(plans[k]);
            assert_int_equal(m.planned_peak_bytes,
                             m.arena_bytes + m.constant_bytes + s->store->bytes);
            planned += m.arena_bytes + m.constant_bytes;
        }
        steps(&t, 0, 8, 4);
        assert_int_equal(planned, t.device->peak_bytes);
        toy_close(&t);
    }
}

static void test_steps_allocate_nothing(void **state)
{
    Toy t;
    QnStepResult r;
    QnEvalResult e;
    TOY_OPEN(&t, recipe, "train.accumulate=2", "train.ema=0.5", "train.eval.batch=8", NULL);
    QnBatch b = batch_of(t.data.train, 0, 8, 8);
    assert_ok(qn_session_step(t.session, &b, 0, 0.1, &r));
    assert_ok(qn_session_step(t.session, &b, 1, 0.1, &r));
    uint64_t count = qn_alloc_count();
    for (int64_t i = 2; i < 12; i++)
        assert_ok(qn_session_step(t.session, &b, i, 0.1, &r));
    assert_ok(qn_session_eval(t.session, &b, &e));
    assert_int_equal(qn_alloc_count(), count);
    free_batch(&b);
    toy_close(&t);
}

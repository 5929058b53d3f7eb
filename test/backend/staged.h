/* Trains a small net on a device with batches that are sent ahead, and without: the same weights,
 * bit for bit. */
#ifndef QN_TEST_BACKEND_STAGED_H
#define QN_TEST_BACKEND_STAGED_H

#include "train/toy.h"

#include "base/file.h"
#include "rt/staging.h"

#define STAGED_RECIPE                                                                              \
    TOY_HEAD TOY_DATA ", " TOY_MLP                                                                 \
                      ", 'train': {'steps': 7, 'batch': 8, 'lr': 0.1, 'eval': {'every': "          \
                      "4}, 'optimizer': {'name': 'sgd', 'momentum': 0.9}}}"

static inline void staged_note(void *ctx, const char *text)
{
}
static inline void staged_step(void *ctx, const QnTrainStatus *s)
{
}
static inline void staged_eval(void *ctx, const QnTrainStatus *s, const QnEvaluation *e, bool best)
{
}

/* Trains in the test's folder `run`; toy_images "a" and "b" are there. The weights of the first
 * layer go to *weights, n of them, for the caller to free; NULL: not wanted. *sends: batches were
 * sent ahead. */
static inline QnStatus staged_train(QnDevice *d, const char *recipe, const char *const *set,
                                    int n_set, const char *run, float **weights, int64_t *n,
                                    bool *sends)
{
    QnRecipe *r = NULL;
    QnTrainData data = { 0 };
    QnSession *s = NULL;
    QnMetrics metrics = { 0 };
    QnTrainResult result = { 0 };
    QnTrainEvents events = { .step = staged_step, .eval = staged_eval, .note = staged_note };
    QnStatus st = qn_recipe_open(recipe, set, n_set, &r);
    if (st == QN_OK)
        st = qn_data_open(r, &data);
    if (st == QN_OK)
        st = qn_session_new(r, qn_dataset_spec(data.train), d,
                            &(QnSessionOptions){ .training = true }, &s);
    if (st == QN_OK) {
        *sends = qn_session_sends(s);
        if (*sends && s->eval_staging) /* what is given back again was taken all the same */
            assert_int_equal(d->peak_bytes, qn_session_planned_bytes(s));
        st = qn_train(s, &data, temp_path(run), false, 0, &events, &metrics, &result);
    }
    if (st == QN_OK && weights)
        *weights = toy_state(s->store, "fc1.weight", n);
    qn_evaluation_fini(&result.last);
    qn_metrics_close(&metrics);
    qn_session_free(s);
    qn_data_close(&data);
    qn_recipe_free(r);
    return st;
}

/* The same with and without, of a device that has a second queue. */
static inline void check_staged(QnDevice *d, const char *recipe, const char *setting)
{
    float *ahead = NULL, *plain = NULL;
    int64_t n, n_plain;
    bool sends;
    assert_ok(qn_file_make_dirs(temp_path("run")));
    assert_ok(staged_train(d, recipe, &setting, 1, "run", &ahead, &n, &sends));
    assert_true(sends);
    QnBackend without = *d->backend;
    const QnBackend *with = d->backend;
    without.copy_ahead = NULL;
    d->backend = &without;
    d->peak_bytes = 0;
    QnStatus st = staged_train(d, recipe, &setting, 1, "run", &plain, &n_plain, &sends);
    d->backend = with;
    d->peak_bytes = 0;
    assert_ok(st);
    assert_false(sends);
    assert_int_equal(n, n_plain);
    assert_memory_equal(ahead, plain, (size_t)n * sizeof *ahead);
    free(ahead);
    free(plain);
    assert_int_equal(d->now_bytes, 0);
}

/* The device, which is closed then, computes on a batch while the next one arrives. */
static inline void check_apart(QnDevice *d)
{
    enum { N = 1 << 18, ROUNDS = 9 };
    QnStaging *s;
    size_t bytes = N * sizeof(int);
    int *x = malloc(bytes), *y = malloc(bytes);
    assert_ok(qn_staging_new(d, &bytes, 1, &s));
    char *block = qn_device_alloc(d, bytes), *all = qn_device_alloc(d, ROUNDS * bytes);
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < N; i++)
            x[i] = i * 31 + r;
        assert_ok(qn_staging_send(s, (const void *[]){ x }));
        assert_ok(qn_staging_take(s, (void *[]){ block }));
        assert_ok(d->backend->copy(d, all + (size_t)r * bytes, block, bytes));
    }
    for (int r = 0; r < ROUNDS; r++) {
        assert_ok(d->backend->read(d, y, all + (size_t)r * bytes, bytes));
        for (int i = 0; i < N; i++)
            assert_true(y[i] == i * 31 + r);
    }
    qn_staging_free(s);
    qn_device_free(d, block, bytes);
    qn_device_free(d, all, ROUNDS * bytes);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
    free(x);
    free(y);
}

/* What does not fit into the device's memory lies in the host's, and nothing else changes. The
 * device is closed then. */
static inline void check_far(QnDevice *d, const char *recipe)
{
    const char *setting = "train.steps=3";
    QnDeviceInfo info;
    float *near = NULL, *far = NULL;
    int64_t n, m;
    bool sends;
    assert_ok(qn_device_info(d, &info));
    assert_true(info.memory_bytes > 1 << 20 && info.units > 0 && info.name[0]);
    assert_ok(qn_file_make_dirs(temp_path("run")));
    assert_ok(staged_train(d, recipe, &setting, 1, "run", &near, &n, &sends));
    d->limit_bytes = d->peak_bytes / 2;
    assert_ok(staged_train(d, recipe, &setting, 1, "run", &far, &m, &sends));
    assert_int_equal(n, m);
    assert_memory_equal(near, far, (size_t)n * sizeof *near);
    void *p = qn_device_alloc(d, d->limit_bytes + 1);
    assert_true(qn_device_is_far(d, p));
    qn_device_free(d, p, d->limit_bytes + 1);
    free(near);
    free(far);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
}

#endif

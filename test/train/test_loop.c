/* Whole runs: the same bits for the same seed, whatever the workers and, when strict, the threads;
 * early stop, the best model, resuming, notes. labels: train */
#include "toy.h"

#include "base/clock.h"
#include "base/file.h"

#define RECIPE                                                                                     \
    TOY_HEAD "'data': {'format': 'idx', 'train': {'images': 'a.x', 'labels': 'a.y'}, "             \
             "'test': {'images': 'b.x', 'labels': 'b.y'}, "                                        \
             "'images': {'pad': 1, 'random_crop': true, 'crop': [8, 8], 'flip': true, "            \
             "'mean': 0.3, 'std': 0.3}}, "                                                         \
             "'model': {'layers': [{'conv': {'out': 8}}, 'batch_norm', 'relu', {'max_pool': 2}, "  \
             "'flatten', {'dropout': 0.2}, {'linear': 'outputs'}]}, "                              \
             "'train': {'epochs': 2, 'batch': 16, 'lr': 0.01}}"

static char recipe[512];

static int group_setup(void **state)
{
    toy_images("a", 200);
    toy_images("b", 50);
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", RECIPE));
    return 0;
}

/* What came of a run. */
typedef struct Outcome {
    char digest[QN_SHA256_HEX];
    QnTrainResult result;
    int n_evals, n_best, n_notes;
    double evals[64];
    int64_t stop_at;
} Outcome;

static void on_eval(void *ctx, const QnTrainStatus *s, const QnEvaluation *e, bool best)
{
    Outcome *o = ctx;
    (void)s;
    o->evals[o->n_evals++ % 64] = e->accuracy;
    o->n_best += best;
}

static void on_note(void *ctx, const char *text)
{
    Outcome *o = ctx;
    (void)text;
    o->n_notes++;
}

static int64_t now_at; /* the update that the run last told of */

static void on_step(void *ctx, const QnTrainStatus *s)
{
    (void)ctx;
    now_at = s->update;
}

static bool on_stop(void *ctx)
{
    const Outcome *o = ctx;
    return o->stop_at && now_at == o->stop_at;
}

static QnStatus run_toy(Toy *t, const char *folder, bool resume, Outcome *o)
{
    QnMetrics m = { 0 };
    QnTrainEvents events = {
        .ctx = o, .step = on_step, .eval = on_eval, .note = on_note, .stop = on_stop
    };
    assert_ok(qn_file_make_dirs(temp_path(folder)));
    QnStatus st = qn_train(t->session, &t->data, temp_path(folder), resume, qn_clock_ns(), &events,
                           &m, &o->result);
    qn_metrics_close(&m);
    if (st == QN_OK)
        assert_ok(qn_checkpoint_digest(t->session->store, o->digest));
    qn_evaluation_fini(&o->result.last);
    return st;
}

#define RUN(o, folder, resume, ...)                                                                \
    do {                                                                                           \
        Toy t_;                                                                                    \
        TOY_OPEN(&t_, recipe, __VA_ARGS__);                                                        \
        assert_ok(run_toy(&t_, (folder), (resume), (o)));                                          \
        toy_close(&t_);                                                                            \
    } while (0)

static void assert_same_outcome(const Outcome *a, const Outcome *b)
{
    assert_string_equal(a->digest, b->digest);
    assert_true(a->result.last.loss == b->result.last.loss);
    assert_true(a->result.last.accuracy == b->result.last.accuracy);
}

static void test_same_seed_same_bits(void **state)
{
    Outcome a = { 0 }, b = { 0 }, c = { 0 };
    RUN(&a, "a", false, "train.seed=5", NULL);
    RUN(&b, "b", false, "train.seed=5", NULL);
    RUN(&c, "c", false, "train.seed=6", NULL);
    assert_same_outcome(&a, &b);
    assert_string_not_equal(a.digest, c.digest);
}

static void test_workers_do_not_matter(void **state)
{
    Outcome a = { 0 }, b = { 0 };
    RUN(&a, "a", false, "data.workers=1", "data.prefetch=1", NULL);
    RUN(&b, "b", false, "data.workers=4", "data.prefetch=7", NULL);
    assert_same_outcome(&a, &b);
}

static void test_strict_whatever_the_threads(void **state)
{
    Outcome a = { 0 }, b = { 0 }, c = { 0 };
    RUN(&a, "a", false, "train.determinism=strict", "train.threads=1", NULL);
    RUN(&b, "b", false, "train.determinism=strict", "train.threads=2", NULL);
    RUN(&c, "c", false, "train.determinism=strict", "train.threads=3", NULL);
    assert_same_outcome(&a, &b);
    assert_same_outcome(&a, &c);
}

/* Stopped at each update in turn and resumed, a run ends the same. */
static void test_resume_from_any_update(void **state)
{
    static const char *const settings[] = { "train.eval.every=5",   "train.ema=0.9",
                                            "train.accumulate=3",   "train.optimizer=sgd",
                                            "train.precision=fp16", "train.precision=bf16" };
    for (int k = 0; k < QN_COUNT(settings); k++) {
        Outcome whole = { 0 };
        RUN(&whole, "whole", false, settings[k], NULL);
        for (int64_t at = 1; at < whole.result.updates; at += k ? 5 : 1) {
            Outcome first = { .stop_at = at }, second = { 0 };
            RUN(&first, "cut", false, settings[k], NULL);
            assert_true(first.result.interrupted);
            assert_int_equal(first.result.updates, at);
            RUN(&second, "cut", true, settings[k], NULL);
            assert_false(second.result.interrupted);
            assert_same_outcome(&whole, &second);
            char command[1300];
            snprintf(command, sizeof command, "cmp %s %s && rm -r %s",
                     temp_path("whole/metrics.jsonl"), temp_path("cut/metrics.jsonl"),
                     temp_path("cut"));
            assert_int_equal(system(command), 0);
        }
    }
}

/* The same for numbers as targets and for text. */
static void resume_of(const char *path, const char *name)
{
    Outcome whole = { 0 };
    Toy t;
    char folder[32], cut[32], recipe_path[512];
    snprintf(recipe_path, sizeof recipe_path, "%s", path);
    snprintf(folder, sizeof folder, "%s-whole", name);
    TOY_OPEN(&t, recipe_path, NULL);
    assert_ok(run_toy(&t, folder, false, &whole));
    toy_close(&t);
    for (int64_t at = 1; at < whole.result.updates; at += 3) {
        Outcome o = { .stop_at = at };
        snprintf(cut, sizeof cut, "%s-%d", name, (int)at);
        for (int k = 0; k < 2; k++) {
            TOY_OPEN(&t, recipe_path, NULL);
            assert_ok(run_toy(&t, cut, k == 1, &o));
            toy_close(&t);
            o.stop_at = 0;
        }
        assert_string_equal(whole.digest, o.digest);
        assert_true(whole.result.last.loss == o.result.last.loss);
    }
}

static void test_resume_of_other_tasks(void **state)
{
    char text[4096] = "a,b,y\n";
    for (int i = 0; i < 60; i++) {
        size_t n = strlen(text);
        double a = toy_noise((uint32_t)i) * 1e-9, b = toy_noise((uint32_t)i + 500) * 1e-9;
        snprintf(text + n, sizeof text - n, "%.4f,%.4f,%.4f\n", a, b, a - 2 * b);
    }
    temp_file("r.csv", text, strlen(text));
    resume_of(toy_recipe("csv.json",
                         "{'task': 'regress', 'data': {'format': 'csv', 'train': 'r.csv', "
                         "'standardize': true}, 'model': {'name': 'mlp', 'hidden': [4], "
                         "'dropout': 0.1}, 'train': {'epochs': 3, 'batch': 8, 'lr': 0.01}}"),
              "csv");
    temp_file("t.txt", text, strlen(text));
    resume_of(toy_recipe("text.json",
                         "{'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "
                         "'window': 8}, 'model': {'name': 'gpt2', 'layers': 1, 'heads': 2, "
                         "'width': 8, 'dropout': 0.1}, 'train': {'steps': 14, 'batch': 4, "
                         "'lr': 0.01, 'eval': {'every': 5}}}"),
              "text");
}

static void test_resume_with_nothing_there(void **state)
{
    Outcome a = { 0 }, b = { 0 };
    RUN(&a, "a", false, "train.seed=3", NULL);
    RUN(&b, "fresh", true, "train.seed=3", NULL);
    assert_same_outcome(&a, &b);
    RUN(&b, "fresh", true, "train.seed=3", NULL); /* done already: the same again */
    assert_same_outcome(&a, &b);
}

static void test_resume_refuses_another_seed(void **state)
{
    Outcome o = { 0 };
    Toy t;
    RUN(&o, "seeded", false, "train.seed=3", NULL);
    TOY_OPEN(&t, recipe, "train.seed=4", NULL);
    assert_fails(run_toy(&t, "seeded", true, &o), QN_EUSAGE, "seed 3");
    toy_close(&t);
}

/* With lr 0 nothing ever gets better than the first evaluation. */
static void test_early_stop(void **state)
{
    Outcome o = { 0 }, again = { 0 };
    RUN(&o, "early", false, "train.lr=0", "train.eval.every=2", "train.early_stop=3",
        "train.steps=100", "train.epochs=null", "model.layers=[\"flatten\", {\"linear\": 4}]",
        NULL);
    assert_int_equal(o.n_evals, 4);
    assert_int_equal(o.n_best, 1);
    assert_int_equal(o.result.updates, 8);
    assert_true(o.result.stopped_early && !o.result.interrupted);
    RUN(&again, "early", true, "train.lr=0", "train.eval.every=2", "train.early_stop=3",
        "train.steps=100", "train.epochs=null", "model.layers=[\"flatten\", {\"linear\": 4}]",
        NULL);
    assert_int_equal(again.n_evals, 0); /* it stays stopped */
    assert_int_equal(again.result.updates, 8);
    assert_true(again.result.stopped_early);
    assert_same_outcome(&o, &again);
}

/* A rate that ruins the model after the first evaluation: the best is what is reported. */
static void test_keep_best(void **state)
{
    Outcome o = { 0 }, last = { 0 };
#define RUINED                                                                                     \
    "train.schedule={\"kind\": \"step\", \"marks\": [0], \"gamma\": 1, \"warmup\": 0}",            \
        "train.optimizer=sgd", "train.lr=0.9", "train.eval.every=3", "train.seed=2"
    RUN(&o, "best", false, RUINED, "train.keep_best=true", NULL);
    RUN(&last, "last", false, RUINED, NULL);
    double best = 0;
    for (int i = 0; i < o.n_evals; i++)
        best = fmax(best, o.evals[i]);
    assert_true(o.result.last.accuracy == best);
    assert_true(last.result.last.accuracy == last.evals[last.n_evals - 1]);
    assert_true(last.result.last.accuracy < best);
    assert_string_not_equal(o.digest, last.digest);
    /* and it is what an evaluation of the folder finds */
    Toy t;
    char digest[QN_SHA256_HEX];
    QnArena *arena = qn_arena_new();
    const char *skipped;
    TOY_OPEN(&t, recipe, RUINED, NULL);
    assert_ok(qn_checkpoint_load_run(temp_path("best"), t.session->store, NULL, arena, &skipped));
    assert_ok(qn_checkpoint_digest(t.session->store, digest));
    assert_string_equal(digest, o.digest);
    qn_arena_free(arena);
    toy_close(&t);
}

static void test_damaged_checkpoint_is_noted(void **state)
{
    Outcome whole = { 0 }, o = { 0 };
    RUN(&whole, "whole2", false, "train.checkpoint.every=5", NULL);
    RUN(&o, "hurt", false, "train.checkpoint.every=5", NULL);
    assert_int_equal(truncate(temp_path("hurt/checkpoints/00000024/model.safetensors"), 50), 0);
    o = (Outcome){ 0 };
    RUN(&o, "hurt", true, "train.checkpoint.every=5", NULL);
    assert_int_equal(o.n_notes, 1);
    assert_same_outcome(&whole, &o);
}

static void test_loss_that_is_no_number(void **state)
{
    Toy t;
    Outcome o = { 0 };
    TOY_OPEN(&t, recipe, "train.lr=1e6", "train.optimizer=sgd", "train.epochs=20", NULL);
    assert_fails(run_toy(&t, "nan", false, &o), QN_ENUMERIC, "lower train.lr");
    toy_close(&t);
}

static void test_length(void **state)
{
    QnRecipe r = { .batch = 10, .accumulate = 3, .epochs = 4 };
    int64_t updates, per_epoch;
    qn_train_length(&r, 100, &updates, &per_epoch);
    assert_int_equal(per_epoch, 3);
    assert_int_equal(updates, 12);
    r.steps = 7;
    r.epochs = 0;
    qn_train_length(&r, 100, &updates, &per_epoch);
    assert_int_equal(updates, 7);
    qn_train_length(&r, 5, &updates, &per_epoch);
    assert_int_equal(per_epoch, 1);
}

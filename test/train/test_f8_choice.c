/* Which products of a run are in 8 bits, where measurement decides: what is measured, what a run
 * takes of it, and that it stays with that. labels: train */
#include "test.h"

#include "base/clock.h"
#include "base/file.h"
#include "ops/ops.h"
#include "rt/tune.h"
#include "train/checkpoint.h"
#include "train/f8_choice.h"
#include "train/precision_auto.h"
#include "train/toy.h"

#include <string.h>

static char recipe[512];

/* Two layers that can be in 8 bits, and a third that cannot: 4 classes. */
static int setup(void **state)
{
    (void)state;
    toy_images("a", 96);
    toy_images("b", 40);
    snprintf(recipe, sizeof recipe, "%.500s",
             toy_recipe("toy.json", TOY_HEAD TOY_DATA
                        ", 'model': {'name': 'mlp', 'hidden': [32, 16]}, 'train': {'steps': 12, "
                        "'batch': 16, 'lr': 0.05, 'optimizer': 'sgd', 'precision': 'fp8', "
                        "'fp8': 'faster', 'eval': {'every': 6}, 'checkpoint': {'every': 4}}}"));
    return 0;
}

/* ---- measuring, on a CPU with a kernel planted into it ---- */

static int planted_runs;

static QnStatus multiply_at_once(const QnPrepared *p, const void *const *in, void *const *out,
                                 void *space)
{
    (void)in, (void)space;
    planted_runs++;
    memset(out[0], 0, (size_t)qn_type_bytes(&p->node->out[0].type));
    return QN_OK;
}

static QnStatus multiply_slowly(const QnPrepared *p, const void *const *in, void *const *out,
                                void *space)
{
    for (int64_t until = qn_clock_ns() + 50000000; qn_clock_ns() < until;)
        continue;
    return multiply_at_once(p, in, out, space);
}

static QnStatus multiply_never(const QnPrepared *p, const void *const *in, void *const *out,
                               void *space)
{
    (void)p, (void)in, (void)out, (void)space;
    return qn_fail(QN_EDEVICE, "planted");
}

static const QnKernel fast = {
    .name = "fast", .op = &qn_op_matmul_f8, .rank = 90, .run = multiply_at_once
};
static const QnKernel slow = {
    .name = "slow", .op = &qn_op_matmul_f8, .rank = 90, .run = multiply_slowly
};
static const QnKernel slow_bf16 = {
    .name = "slow_bf16", .op = &qn_op_matmul, .rank = 99, .run = multiply_slowly
};
static const QnKernel broken = {
    .name = "broken", .op = &qn_op_matmul_f8, .rank = 90, .run = multiply_never
};

typedef struct Planted {
    QnBackend backend;
    const QnKernel *kernels[256];
    QnDevice *device;
} Planted;

static void planted_open(Planted *p, const QnKernel *k, const QnKernel *other)
{
    int n = qn_backend_cpu.n_kernels;
    assert_true(n < QN_COUNT(p->kernels) - 2);
    p->backend = qn_backend_cpu;
    memcpy(p->kernels, qn_backend_cpu.kernels, (size_t)n * sizeof *p->kernels);
    if (k)
        p->kernels[n++] = k;
    if (other)
        p->kernels[n++] = other;
    p->backend.kernels = p->kernels;
    p->backend.n_kernels = n;
    assert_ok(qn_device_open(&p->backend, &(QnDeviceOptions){ .n_threads = 1 }, &p->device));
}

static void planted_close(Planted *p)
{
    assert_int_equal(p->device->now_bytes, 0);
    qn_device_close(p->device);
}

static const QnF8Product large = {
    .name = "large", .m = 64, .n = 96, .k = 80, .trans_b = true, .bias = true
};

static void test_measured(void **state)
{
    (void)state;
    static const struct {
        const QnKernel *kernel, *other;
        bool emulated, by_f8;
    } cases[] = { { NULL, NULL, true, false },
                  { &fast, &slow_bf16, false, true },
                  { &slow, NULL, false, false } };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        Planted p;
        QnF8Time t;
        QnF8Product product = large;
        QnChoices *c = qn_choices_new();
        planted_open(&p, cases[i].kernel, cases[i].other);
        planted_runs = 0;
        assert_ok(qn_f8_measure(p.device, NULL, &product, &t));
        assert_int_equal(t.is_emulated, cases[i].emulated);
        assert_true(cases[i].emulated || (t.bf16_ns > 0 && t.fp8_ns > 0 && planted_runs >= 3 * 6));
        assert_ok(qn_f8_choice_set(p.device, c, &product, &t));
        assert_int_equal(product.by_f8, cases[i].by_f8);
        assert_true(product.is_measured);
        assert_int_equal(c->n, 1);
        assert_string_equal(c->items[0].kernel, cases[i].by_f8 ? "fp8" : "bf16");
        qn_choices_free(c);
        planted_close(&p);
    }
}

static void test_a_product_that_fails_is_an_error(void **state)
{
    (void)state;
    Planted p;
    QnF8Time t;
    planted_open(&p, &broken, NULL);
    assert_fails(qn_f8_measure(p.device, NULL, &large, &t), QN_EDEVICE, "planted");
    planted_close(&p);
}

/* What was measured for one product, or on a device of another name, says nothing of others. */
static void test_measurements_are_told_apart(void **state)
{
    (void)state;
    Planted p;
    QnChoices *c = qn_choices_new();
    QnF8Time t = { .bf16_ns = 100, .fp8_ns = 97 }, worse = { .bf16_ns = 100, .fp8_ns = 97.5 };
    planted_open(&p, NULL, NULL);
    QnF8Product some[] = { large, large, large, large };
    some[1].m = 1024;
    some[2].trans_b = false;
    some[3].bias = false;
    for (int i = 0; i < QN_COUNT(some); i++) {
        assert_ok(qn_f8_choice_set(p.device, c, &some[i], i ? &worse : &t));
        assert_int_equal(some[i].by_f8, i == 0);
    }
    assert_int_equal(c->n, QN_COUNT(some));
    planted_close(&p);
    qn_choices_free(c);
}

/* ---- what a run takes ---- */

static void open_with(Toy *t, const QnChoices *c, bool training, const char *setting)
{
    assert_ok(toy_open(t, recipe, &setting, setting != NULL,
                       &(QnSessionOptions){ .training = training, .choices = c }));
}

static int histories(const Toy *t)
{
    int n = 0;
    for (int64_t i = 0; i < t->session->store->n; i++)
        n += strstr(t->session->store->slots[i].name, "optim.f8.") != NULL;
    return n;
}

/* Measurements as they may be, of the session's products; every second is by fp8. */
static QnChoices *measured_for(const Toy *t, bool all)
{
    QnChoices *c = qn_choices_new();
    QnF8Choice *f = t->session->f8;
    assert_non_null(f);
    for (int64_t i = 0; i < f->n; i++) {
        QnF8Product p = f->items[i];
        QnF8Time time = { .bf16_ns = 100, .fp8_ns = all || i % 2 == 0 ? 50 : 200 };
        assert_ok(qn_f8_choice_set(t->device, c, &p, &time));
    }
    return c;
}

static void train(Toy *t, const char *folder, bool resume, char hex[QN_SHA256_HEX])
{
    QnTrainResult result = { 0 };
    QnMetrics metrics = { 0 };
    char path[1200];
    snprintf(path, sizeof path, "%s", temp_path(folder));
    assert_ok(qn_file_make_dirs(path));
    assert_ok(
        qn_train(t->session, &t->data, path, resume, 0, &(QnTrainEvents){ 0 }, &metrics, &result));
    qn_evaluation_fini(&result.last);
    qn_metrics_close(&metrics);
    assert_ok(qn_checkpoint_digest(t->session->store, hex));
}

static void train_with(const QnChoices *c, const char *setting, const char *folder,
                       char hex[QN_SHA256_HEX])
{
    Toy t;
    open_with(&t, c, true, setting);
    train(&t, folder, false, hex);
    toy_close(&t);
}

/* Nothing measured is bf16 to the bit, all faster is fp8 to the bit. */
static void test_runs_by_measurement(void **state)
{
    (void)state;
    Toy t;
    char none[QN_SHA256_HEX], bf16[QN_SHA256_HEX], all[QN_SHA256_HEX], fp8[QN_SHA256_HEX];
    char some[QN_SHA256_HEX], text[256];
    open_with(&t, NULL, true, NULL);
    assert_int_equal(t.session->f8->n, 2);
    assert_int_equal(t.session->f8->items[0].m, 16);
    assert_int_equal(t.session->f8->items[0].k, 64);
    assert_int_equal(t.session->f8->items[0].n, 32);
    assert_int_equal(histories(&t), 0);
    qn_f8_choice_tell(t.session->f8, text, sizeof text);
    assert_contains(text, "none of 2 has been measured");
    QnChoices *every = measured_for(&t, true), *second = measured_for(&t, false);
    toy_close(&t);
    open_with(&t, second, true, NULL);
    assert_int_equal(histories(&t), 3);
    qn_f8_choice_tell(t.session->f8, text, sizeof text);
    assert_contains(text, "1 of 2 products");
    toy_close(&t);
    train_with(NULL, NULL, "none", none);
    train_with(every, NULL, "all", all);
    train_with(second, NULL, "some", some);
    train_with(NULL, "train.fp8=always", "fp8", fp8);
    Toy plain;
    const char *words[] = { "train.fp8=null", "train.precision=bf16" };
    assert_ok(toy_open(&plain, recipe, words, 2, &(QnSessionOptions){ .training = true }));
    train(&plain, "bf16", false, bf16);
    toy_close(&plain);
    assert_string_equal(none, bf16);
    assert_string_equal(all, fp8);
    assert_string_not_equal(some, bf16);
    assert_string_not_equal(some, fp8);
    qn_choices_free(every);
    qn_choices_free(second);
}

/* A run that goes on takes its own record, not what has been measured since; so does evaluation,
 * which finds the histories that the run has. */
static void test_runs_stay_with_their_record(void **state)
{
    (void)state;
    Toy t;
    char whole[QN_SHA256_HEX], parts[QN_SHA256_HEX], text[256];
    open_with(&t, NULL, true, NULL);
    QnChoices *second = measured_for(&t, false), *record = qn_choices_new();
    QnChoices *later = measured_for(&t, true);
    toy_close(&t);
    train_with(second, NULL, "whole", whole);
    open_with(&t, second, true, "train.steps=4");
    train(&t, "parts", false, parts);
    assert_ok(qn_f8_choice_record(t.session->f8, record));
    assert_int_equal(record->n, 2);
    toy_close(&t);
    assert_ok(qn_f8_choice_recall(record, later)); /* both: the record goes first */
    open_with(&t, later, true, NULL);
    qn_f8_choice_tell(t.session->f8, text, sizeof text);
    assert_contains(text, "as when the run began");
    train(&t, "parts", true, parts);
    assert_string_equal(whole, parts);
    toy_close(&t);
    open_with(&t, later, false, NULL);
    assert_null(t.session->f8);
    assert_int_equal(histories(&t), 2); /* of x and w: evaluation has no gradients */
    toy_close(&t);
    open_with(&t, NULL, false, NULL);
    assert_int_equal(histories(&t), 0);
    toy_close(&t);
    qn_choices_free(second);
    qn_choices_free(record);
    qn_choices_free(later);
}

/* Layers of precision auto may come down to fp8 where that was measured to be faster. */
static void test_auto(void **state)
{
    (void)state;
    static const char *const words[] = { "train.fp8=null", "train.precision=auto",
                                         "train.precision_auto.fp8=faster" };
    Toy t;
    assert_ok(toy_open(&t, recipe, words, 3, &(QnSessionOptions){ .training = true }));
    QnChoices *second = measured_for(&t, false);
    assert_int_equal(t.session->mix->n, 3);
    for (int i = 0; i < 3; i++)
        assert_false(t.session->mix->layers[i].takes_f8);
    toy_close(&t);
    assert_ok(
        toy_open(&t, recipe, words, 3, &(QnSessionOptions){ .training = true, .choices = second }));
    int allowed = 0;
    for (int i = 0; i < 3; i++)
        allowed += t.session->mix->layers[i].takes_f8;
    assert_int_equal(allowed, 1);
    toy_close(&t);
    qn_choices_free(second);
}

static void test_recipe_is_checked(void **state)
{
    (void)state;
    Toy t;
    static const struct {
        const char *word, *why;
    } cases[] = { { "train.fp8=sometimes", "faster, always" },
                  { "train.precision=bf16", "belongs to train.precision fp8" } };
    for (int i = 0; i < QN_COUNT(cases); i++)
        assert_fails(toy_open(&t, recipe, &cases[i].word, 1, &(QnSessionOptions){ 0 }), QN_EUSAGE,
                     cases[i].why);
    const char *words[] = { "train.fp8=null", "train.precision=auto",
                            "train.precision_auto.fp8=maybe" };
    assert_fails(toy_open(&t, recipe, words, 3, &(QnSessionOptions){ 0 }), QN_EUSAGE,
                 "false, faster, always");
}

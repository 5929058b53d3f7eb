/* Work that is counted, and the time that the cost model gives it. */
#include "plan/fixture.h"

#include "plan/advice.h"
#include "quern/plan.h"

#include <math.h>
#include <time.h>

static const QnModel *model(const char *name)
{
    const QnModel *m = NULL;
    assert_ok(qn_model_find(name, &m));
    return m;
}

static double gflops(Fixture *f, const char *name, QnCountRequest r)
{
    const QnCount *c;
    assert_ok(qn_counts_get(f->counts, model(name), &r, &c));
    double products = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        products += c->work[i].kind == QN_WORK_MOVE ? 0 : c->work[i].flops * c->work[i].count;
    return products * 1e-9;
}

static void assert_near(double got, double want, double part)
{
    if (!(fabs(got - want) <= part * want))
        fail_msg("got %g, want %g within %g %%", got, want, 100 * part);
}

/* Multiplications and additions of one forward pass: torchvision 0.19's tables, 2 x GMAC. */
static void test_flops(void **state)
{
    Fixture *f = *state;
    QnCountRequest one = { .batch = 1 };
    assert_near(gflops(f, "resnet18", one), 2 * 1.814, 0.02);
    assert_near(gflops(f, "resnet50", one), 2 * 4.089, 0.02);
    assert_near(gflops(f, "resnet152", one), 2 * 11.514, 0.02);
    assert_near(gflops(f, "resnext50_32x4d", one), 2 * 4.23, 0.02);
    assert_near(gflops(f, "vgg16", one), 2 * 15.47, 0.02);
    assert_near(gflops(f, "alexnet", one), 2 * 0.714, 0.02);
    assert_near(gflops(f, "densenet121", one), 2 * 2.834, 0.02);
    assert_near(gflops(f, "squeezenet1_0", one), 2 * 0.819, 0.02);
    assert_near(gflops(f, "vit_base_patch16_224", one), 2 * 17.564, 0.02);
}

/* Training a transformer takes about 6 operations a parameter and token: Kaplan et al. 2020. */
static void test_training_flops(void **state)
{
    Fixture *f = *state;
    QnCountRequest r = { .train = true, .batch = 8, .sequence = 512 };
    double tokens = 8 * 512, layers = 48, width = 1600;
    double products = 6 * 1.5576e9 * tokens;
    double attention = 12 * layers * width * 512 / 2 * tokens; /* half of the pairs are masked */
    assert_near(gflops(f, "gpt2_xl", r) * 1e9, products + attention, 0.05);
}

/* What is drawn through two batches is what counting the batch gives. */
static void test_drawn_batches(void **state)
{
    Fixture *f = *state;
    static const char *const names[] = { "resnet50", "gpt2_124m", "bert_base_squad",
                                         "hrnet_w18" }; /* nodes in another order */
    for (int i = 0; i < QN_COUNT(names); i++) {
        QnCountRequest r = { .train = true, .batch = 24, .low = i % 2 };
        const QnCount *drawn;
        QnCount counted;
        assert_ok(qn_counts_get(f->counts, model(names[i]), &r, &drawn));
        assert_ok(qn_count_model(model(names[i]), &r, f->device, &counted));
        assert_near(drawn->flops, counted.flops, 1e-6);
        assert_near(drawn->bytes, counted.bytes, 1e-3);
        assert_near(drawn->activations, counted.activations, 0.01);
        assert_near(drawn->optimizer + 1, counted.optimizer + 1, 1e-6);
        QnCostRequest q = { .card = f->catalogue.cards, .n_cards = 1, .train = true };
        QnCostResult a, b;
        assert_ok(qn_cost_step(drawn, &q, &f->coefs, &a));
        assert_ok(qn_cost_step(&counted, &q, &f->coefs, &b));
        assert_near(a.step_s, b.step_s, 1e-3);
        qn_count_fini(&counted);
    }
}

static double seconds_of_one(const Fixture *f, const QnModel *m)
{
    QnCountRequest r = { .train = true, .batch = 16 };
    QnCount c;
    clock_t start = clock();
    assert_ok(qn_count_model(m, &r, f->device, &c));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    qn_count_fini(&c);
    return seconds;
}

static double seconds_of_all(const Fixture *f, const QnModel *m)
{
    QnJob job = { .model = m, .train = true, .any_numbers = true };
    QnCounts *counts = qn_counts_new(f->device);
    QnOffer offer;
    clock_t start = clock();
    for (int i = 0; i < f->catalogue.n_cards; i++)
        assert_ok(qn_offer_price(counts, &job, &f->catalogue.cards[i], 1, &f->coefs, &offer));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    qn_counts_free(counts);
    print_message("%s on %d devices: %.2f s\n", m->name, f->catalogue.n_cards, seconds);
    return seconds;
}

/* All devices share their counts, of a few batches and types: they take as long as so many counts,
 * and a second where the machine is idle, which is printed. Processor time, the best of some, of
 * one beside the other: what shares the caches or the core slows down both. */
static void test_catalogue_is_fast(void **state)
{
    enum { TRIES = 4, MOST_COUNTS = 50 };
    const QnModel *m = model("densenet201");
    double all = HUGE_VAL, one = HUGE_VAL;
    for (int i = 0; i < TRIES; i++) {
        one = fmin(one, seconds_of_one(*state, m));
        all = fmin(all, seconds_of_all(*state, m));
    }
    print_message("%.1f times a count of one batch\n", all / one);
    assert_true(all < MOST_COUNTS * one);
}

/* A step of generation reads all weights but the table of embeddings, once, and what is kept. */
static void test_generation(void **state)
{
    Fixture *f = *state;
    const double table = 128256.0 * 4096, keys = 2.0 * 32 * 8 * 128; /* of a token */
    QnCountRequest r = { .batch = 8, .low = 2 };
    QnGeneration g, few;
    assert_ok(qn_counts_generation(f->counts, model("llama3_8b"), &r, 1024, 512, &g));
    assert_true(g.steps == 511);
    assert_near(g.step->cache, 8 * keys * (1024 + 256 + 1) * 2, 1e-6);
    assert_near(g.last->cache, 8 * keys * (1024 + 511 + 1) * 2, 1e-6);
    double products = 2 * (8.0303e9 - table) * 8;
    assert_near(g.step->flops, products + 4.0 * 32 * 4096 * 1281 * 8, 0.02);
    assert_near(g.step->bytes, 2 * (8.0303e9 - table) + g.step->cache, 0.02);
    assert_near(g.prompt->flops,
                products * 1024 - 2 * table * 8 * 1023 + 2.0 * 32 * 4096 * 8 * 1024 * 1024, 0.02);
    r.weight_bits = 4.85;
    r.cache_bits = 8;
    assert_ok(qn_counts_generation(f->counts, model("llama3_8b"), &r, 1024, 512, &few));
    assert_near(few.step->bytes, 4.85 / 8 * (8.0303e9 - table) + g.step->cache / 2, 0.03);
    assert_near(few.step->weights, 4.85 / 8 * 8.0303e9, 0.001);
    assert_near(few.step->flops, g.step->flops, 1e-9);
    r.low = 1;
    assert_fails(qn_counts_generation(f->counts, model("llama3_8b"), &r, 8, 8, &few), QN_EARG,
                 "16 bits");
    r = (QnCountRequest){ .batch = 1 };
    assert_fails(qn_counts_generation(f->counts, model("resnet18"), &r, 8, 8, &few),
                 QN_EUNSUPPORTED, "does not generate");
    assert_fails(qn_counts_generation(f->counts, model("gpt2"), &r, 0, 8, &few), QN_EARG, "tokens");
}

static double step_s(Fixture *f, const char *name, const QnCard *card, int n_cards, bool train)
{
    QnCountRequest r = { .train = train, .batch = 16, .low = 1 };
    QnCostRequest q = { card, n_cards, QN_NUMBERS_FP16_AMP, QN_TIER_EAGER, train, false };
    QnCostResult cost;
    const QnCount *c;
    assert_ok(qn_counts_get(f->counts, model(name), &r, &c));
    assert_ok(qn_cost_step(c, &q, &f->coefs, &cost));
    assert_true(cost.step_s > 0 && cost.low_s <= cost.step_s && cost.step_s <= cost.high_s);
    return cost.step_s;
}

/* More of anything is never slower, and more devices never make a step shorter. */
static void test_monotone(void **state)
{
    Fixture *f = *state;
    static const char *const names[] = { "resnet50", "gpt2_124m" };
    for (int i = 0; i < QN_COUNT(names); i++) {
        for (int k = 0; k < f->catalogue.n_cards; k++) {
            QnCard card = f->catalogue.cards[k];
            if (!(qn_cost_peak(&card, QN_NUMBERS_FP16_AMP) > 0))
                continue;
            double before = step_s(f, names[i], &card, 1, true);
            assert_true(step_s(f, names[i], &card, 8, true) >= before);
            assert_true(step_s(f, names[i], &card, 1, false) < before);
            card.bandwidth_gbs *= 2;
            double wide = step_s(f, names[i], &card, 1, true);
            assert_true(wide <= before);
            card.fp16 *= 2;
            card.fp32 *= 2;
            assert_true(step_s(f, names[i], &card, 1, true) <= wide);
        }
    }
}

/* A deadline leaves out what is too slow, a budget what is too dear. */
static void test_advice(void **state)
{
    Fixture *f = *state;
    QnJob job = { .model = model("resnet50"), .train = true, .any_numbers = true, .items = 1e8 };
    QnOffer offers[2];
    static const char *const names[] = { "V100 SXM2 16GB", "H100 SXM5 80GB" };
    for (int i = 0; i < 2; i++) {
        const QnCard *card;
        assert_ok(qn_catalogue_find(&f->catalogue, names[i], &card));
        assert_ok(qn_offer_price(f->counts, &job, card, 1, &f->coefs, &offers[i]));
        assert_string_equal(offers[i].error, "");
        assert_true(offers[i].cost.fits);
    }
    assert_int_equal(qn_advice_of(&job, offers, 2).fastest, 1);
    job.deadline_s = (offers[0].hours + offers[1].hours) / 2 * 3600;
    assert_int_equal(qn_advice_of(&job, offers, 2).best, 1);
    job.deadline_s = offers[1].hours * 3600 / 2;
    assert_int_equal(qn_advice_of(&job, offers, 2).best, -1);
}

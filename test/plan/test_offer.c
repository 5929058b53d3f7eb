/* Offers: micro-batches, the loader, remedies where nothing fits, more devices. */
#include "plan/fixture.h"

#include "plan/advice.h"
#include "plan/explain.h"
#include "quern/plan.h"

#include <math.h>

static QnOffer price(Fixture *f, const QnJob *job, const char *device, int n)
{
    const QnCard *card;
    QnOffer o;
    assert_ok(qn_catalogue_find(&f->catalogue, device, &card));
    assert_ok(qn_offer_price(f->counts, job, card, n, &f->coefs, &o));
    assert_string_equal(o.error, "");
    return o;
}

static QnJob job_of(const char *name)
{
    QnJob job = { .train = true, .batch = 32, .numbers = QN_NUMBERS_FP16_AMP, .items = 1e6 };
    assert_ok(qn_model_find(name, &job.model));
    return job;
}

/* The same batch in four parts: less memory, all examples, and only one update. */
static void test_micro_batches(void **state)
{
    QnJob whole = job_of("resnet50"), parts = whole;
    parts.batch = 8;
    parts.accumulate = 4;
    QnOffer a = price(*state, &whole, "RTX 4090", 1), b = price(*state, &parts, "RTX 4090", 1);
    QnJob small = parts;
    small.accumulate = 0;
    QnOffer c = price(*state, &small, "RTX 4090", 1);
    assert_true(b.cost.memory_bytes < a.cost.memory_bytes);
    assert_true(b.cost.memory_bytes == c.cost.memory_bytes);
    assert_true(b.items_s < a.items_s && b.items_s > c.items_s);
    assert_true(fabs(b.items_s * b.cost.step_s - 32) < 1e-6);
    assert_true(b.cost.step_s < 4 * c.cost.step_s);
    assert_true(b.low_s < b.items_s && b.items_s < b.high_s);
}

/* A loader that is too slow is what limits, and then nothing else matters. */
static void test_loader(void **state)
{
    QnJob job = job_of("resnet50");
    job.feed = (QnFeed){ .workers = 2, .rate = 100 };
    QnOffer o = price(*state, &job, "RTX 4090", 1);
    assert_string_equal(qn_offer_limit(&o), "loader");
    assert_true(fabs(o.items_s - 200) < 1e-6);
    job.feed.workers = 1000;
    o = price(*state, &job, "RTX 4090", 1);
    assert_string_not_equal(qn_offer_limit(&o), "loader");
    job.feed = (QnFeed){ .bytes = 1e9 };
    o = price(*state, &job, "RTX 4090", 1);
    assert_string_equal(qn_offer_limit(&o), "copies");
}

static void test_memory_range(void **state)
{
    QnJob job = job_of("resnet50");
    QnOffer o = price(*state, &job, "RTX 4090", 1);
    assert_true(o.memory_low < o.cost.memory_bytes && o.cost.memory_bytes < o.memory_high);
    assert_true(o.memory_low > o.count->weights + o.count->gradients + o.count->optimizer);
}

/* Each of the remedies fits, and says truly what it is. */
static void test_remedies(void **state)
{
    Fixture *f = *state;
    QnJob job = job_of("resnet50");
    QnRemedy r[QN_REMEDIES];
    bool micro = false, shards = false, host = false;
    int n;
    job.batch = 512;
    QnOffer o = price(f, &job, "GTX 1080 Ti", 1);
    assert_false(o.cost.fits);
    assert_ok(qn_advice_remedies(f->counts, &job, &o, &f->coefs, r, &n));
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        assert_true(r[i].offer.cost.fits && r[i].offer.items_s > 0 && r[i].text[0]);
        micro |= r[i].offer.accumulate > 1 && r[i].offer.batch * r[i].offer.accumulate == 512;
    }
    assert_true(micro);
    job = job_of("gpt2_xl");
    job.batch = 1;
    o = price(f, &job, "RTX 4090", 1);
    assert_false(o.cost.fits);
    assert_ok(qn_advice_remedies(f->counts, &job, &o, &f->coefs, r, &n));
    for (int i = 0; i < n; i++) {
        shards |= r[i].offer.shard && r[i].offer.n_cards > 1;
        host |= r[i].offer.offload;
    }
    assert_true(shards && host);
}

/* The optimizer elsewhere: less memory, more time. */
static void test_elsewhere(void **state)
{
    QnJob job = job_of("gpt2_medium"), host = job, shard = job;
    host.offload = true;
    shard.shard = true;
    host.batch = shard.batch = job.batch = 1;
    QnOffer one = price(*state, &job, "A100 SXM4 80GB", 1),
            out = price(*state, &host, "A100 SXM4 80GB", 1);
    assert_true(out.cost.memory_bytes < one.cost.memory_bytes - one.count->optimizer);
    assert_true(out.cost.step_s > one.cost.step_s);
    QnOffer eight = price(*state, &job, "A100 SXM4 80GB", 8),
            spread = price(*state, &shard, "A100 SXM4 80GB", 8);
    assert_true(eight.cost.memory_bytes == one.cost.memory_bytes);
    assert_true(spread.cost.memory_bytes < eight.cost.memory_bytes);
    assert_true(spread.cost.step_s > eight.cost.step_s);
}

/* Where a single device is too slow, several may do. */
static void test_more_cards(void **state)
{
    Fixture *f = *state;
    QnJob job = job_of("resnet50");
    QnOffer one = price(f, &job, "RTX 4090", 1), more;
    bool found;
    job.deadline_s = one.hours * 3600 / 1.2;
    assert_int_equal(qn_advice_of(&job, &one, 1).best, -1);
    assert_ok(qn_advice_more_cards(f->counts, &job, &one, 1, &f->coefs, &more, &found));
    assert_true(found && more.n_cards == 2 && more.hours * 3600 <= job.deadline_s);
    job.deadline_s = one.hours * 3600 / 100;
    assert_ok(qn_advice_more_cards(f->counts, &job, &one, 1, &f->coefs, &more, &found));
    assert_false(found);
}

/* A device that is held to less power is slower, and draws what was asked. */
static void test_power_limit(void **state)
{
    QnJob job = job_of("resnet50"), held = job;
    QnOffer o = price(*state, &job, "RTX 4090", 1);
    held.power_w = 0.8 * o.cost.power_w;
    QnOffer h = price(*state, &held, "RTX 4090", 1);
    assert_true(h.cap > 0.4 && h.cap < 1);
    assert_true(h.cost.power_w <= held.power_w && h.cost.power_w > 0.99 * held.power_w);
    assert_true(h.items_s < o.items_s && h.items_s > 0.7 * o.items_s);
    assert_int_equal(qn_advice_of(&held, &h, 1).best, 0);
    held.power_w = 50;
    h = price(*state, &held, "RTX 4090", 1);
    assert_int_equal(qn_advice_of(&held, &h, 1).best, -1);
    held.power_w = 2 * o.cost.power_w;
    assert_true(price(*state, &held, "RTX 4090", 1).cap == 0);
}

/* A device that waits for launches draws much less than one that is busy. */
static void test_power_follows_load(void **state)
{
    QnJob job = job_of("resnet50");
    job.tier = QN_TIER_EAGER;
    job.batch = 1;
    QnOffer waits = price(*state, &job, "RTX 4090", 1);
    job.batch = 128;
    QnOffer works = price(*state, &job, "RTX 4090", 1);
    assert_int_equal(waits.cost.limit, QN_LIMIT_LAUNCH);
    assert_true(waits.cost.busy_s < 0.5 * waits.cost.step_s);
    assert_true(waits.cost.power_w < 0.55 * works.cost.power_w);
    assert_true(works.cost.power_w > 450 && waits.cost.power_w > 0.25 * 450);
}

/* From full machines on, the same work takes no less energy on more devices. */
static void test_energy_of_many(void **state)
{
    QnJob job = job_of("resnet50");
    double before = price(*state, &job, "RTX 4090", 8).kwh;
    for (int n = 16; n <= 4096; n *= 4) {
        double kwh = price(*state, &job, "RTX 4090", n).kwh;
        assert_true(kwh >= 0.999 * before && kwh < 1.5 * before);
        before = kwh;
    }
}

/* No device does more arithmetic than its data sheet has; fp32 above it is TF32. */
static void test_peak_rate(void **state)
{
    Fixture *f = *state;
    const struct {
        const char *model;
        QnTier tier;
        QnNumbers numbers;
    } runs[] = { { "resnet50", QN_TIER_TENSORRT, QN_NUMBERS_FP32 },
                 { "gpt2", QN_TIER_QUERN, QN_NUMBERS_FP32 },
                 { "gpt2", QN_TIER_QUERN, QN_NUMBERS_FP16_AMP },
                 { "vgg16", QN_TIER_TENSORRT, QN_NUMBERS_BF16_AMP } };
    for (int i = 0; i < QN_COUNT(runs); i++) {
        QnJob job = job_of(runs[i].model);
        job.tier = runs[i].tier;
        job.numbers = runs[i].numbers;
        for (int k = 0; k < f->catalogue.n_cards; k++) {
            QnOffer o;
            assert_ok(qn_offer_price(f->counts, &job, &f->catalogue.cards[k], 1, &f->coefs, &o));
            assert_true(o.error[0] || (o.cost.mfu > 0 && o.cost.mfu <= 1 + 1e-9));
        }
    }
    QnJob job = job_of("gpt2");
    job.numbers = QN_NUMBERS_FP32;
    job.batch = 8;
    QnOffer o = price(f, &job, "A100 SXM4 80GB", 1);
    assert_true(o.cost.peak_flops == 156e12 && o.cost.mfu < 0.5);
    o = price(f, &job, "GTX 1080 Ti", 1);
    assert_true(o.cost.peak_flops == 1e12 * o.card->fp32);
}

/* ---- several devices ---- */

static QnJob answers_of(const char *name, int64_t prompt, int64_t generate)
{
    QnJob job = job_of(name);
    job.train = false;
    job.tier = QN_TIER_TENSORRT;
    job.numbers = QN_NUMBERS_FP8;
    job.batch = 0;
    job.prompt = prompt;
    job.generate = generate;
    return job;
}

/* What does not fit into one device is served by several at once: NVIDIA's figures for
 * TensorRT-LLM 1.0. */
static void test_shared_serving(void **state)
{
    static const struct {
        const char *model;
        int n;
        int64_t prompt, generate;
        double measured;
    } rows[] = { { "llama3.3_70b", 2, 128, 2048, 6651 },
                 { "llama3.3_70b", 2, 1000, 1000, 4205 },
                 { "llama3.1_405b", 8, 128, 128, 3627 },
                 { "llama3.1_405b", 8, 2048, 2048, 2296 } };
    for (int i = 0; i < QN_COUNT(rows); i++) {
        QnJob job = answers_of(rows[i].model, rows[i].prompt, rows[i].generate);
        QnOffer o = price(*state, &job, "H100 SXM5 80GB", rows[i].n);
        assert_true(o.cost.fits && o.ways > 1 && !o.shard && o.cost.mfu < 1);
        assert_true(fabs(o.items_s / rows[i].measured - 1) < 0.45);
        assert_true(o.cost.by_limit[QN_LIMIT_LINK] > 0);
    }
    QnJob job = answers_of("llama2_7b", 128, 128), one = job;
    one.ways = 1;
    QnOffer best = price(*state, &job, "H100 SXM5 80GB", 8),
            alone = price(*state, &one, "H100 SXM5 80GB", 8);
    assert_true(best.items_s >= alone.items_s && best.items_s < 2 * alone.items_s);
    job.tier = QN_TIER_LLAMA_CPP; /* gives its devices the layers in order */
    job.numbers = QN_NUMBERS_FP16;
    assert_true(price(*state, &job, "RTX 4090", 2).ways == 1);
}

/* Shared, a device holds its part, and neither less than nothing nor all of it. */
static void test_shared_memory(void **state)
{
    Fixture *f = *state;
    QnJob job = answers_of("llama3.1_405b", 128, 128);
    job.batch = 8;
    QnOffer o = price(f, &job, "H100 SXM5 80GB", 2);
    assert_false(o.cost.fits);
    QnRemedy r[QN_REMEDIES];
    int n;
    assert_ok(qn_advice_remedies(f->counts, &job, &o, &f->coefs, r, &n));
    assert_true(n > 0);
    for (int i = 0; i < n; i++)
        assert_true(r[i].offer.memory.weights * r[i].offer.n_cards > 0.4 * 405e9 &&
                    r[i].offer.cost.memory_bytes > r[i].offer.memory.weights + r[i].offer.cache);
    job.tier = QN_TIER_LLAMA_CPP;
    job.numbers = QN_NUMBERS_FP16;
    QnOffer line = price(f, &job, "H100 SXM5 80GB", 16);
    assert_true(line.cost.fits && line.shard && line.ways == 1);
    job.tier = QN_TIER_TENSORRT;
    o = price(f, &job, "H100 SXM5 80GB", 16); /* two such groups in order */
    assert_true(o.cost.fits && o.shard && o.ways == 8 && o.items_s > line.items_s);
}

/* Where the state does not fit into one device, as many as are asked for share it, at the batch
 * that is fastest: no slower than the best layout's order of magnitude. */
static void test_shared_training(void **state)
{
    QnJob job = job_of("llama2_7b");
    job.batch = 0;
    QnOffer o = price(*state, &job, "H100 SXM5 80GB", 64);
    assert_true(o.cost.fits && o.shard && o.batch > 1);
    assert_true(o.items_s > 0.7 * 642e3 && o.items_s < 1.3 * 642e3); /* the cluster's search */
    QnJob xl = job_of("gpt2_xl");
    xl.batch = 4;
    QnOffer two = price(*state, &xl, "RTX 4090", 2), four = price(*state, &xl, "RTX 4090", 4);
    assert_true(four.cost.fits && four.cost.memory_bytes < two.cost.memory_bytes);
}

/* A CPU reads the weights for each token, and its vectors go without tiles: llama.cpp's issue 34
 * has 18 tokens a second. */
static void test_cpu_answers(void **state)
{
    QnJob job = answers_of("llama_7b", 1, 128);
    job.tier = QN_TIER_LLAMA_CPP;
    job.numbers = QN_NUMBERS_FP16;
    job.weight_bits = 4.5;
    job.batch = 1;
    QnOffer o = price(*state, &job, "Core i9-13900K", 1);
    assert_int_equal(o.cost.limit, QN_LIMIT_MEMORY);
    assert_true(o.items_s > 0.6 * 18.27 && o.items_s < 1.4 * 18.27);
}

/* The parts of a step add up to it, and none does more than the units can. */
static void test_explained_parts(void **state)
{
    Fixture *f = *state;
    QnJob job = job_of("gpt2");
    job.batch = 8;
    QnOffer o = price(f, &job, "RTX 4090", 1);
    QnExplain e;
    assert_ok(qn_explain_init(&e, f->counts, &job, &o, &f->coefs));
    double sum = e.link_s + e.rest_s, kinds = sum;
    for (int64_t i = 0; i < e.n_parts; i++) {
        sum += e.parts[i].seconds;
        assert_true(e.parts[i].seconds > 0 && e.parts[i].flop_share <= 1 + 1e-9);
    }
    for (int i = 0; i < QN_WORK_KINDS; i++)
        kinds += e.kinds[i].seconds;
    assert_true(fabs(sum / e.step_s - 1) < 1e-9 && fabs(kinds / e.step_s - 1) < 1e-9);
    qn_explain_fini(&e);
}

/* Several may do what one has no room for. */
static void test_more_that_share(void **state)
{
    Fixture *f = *state;
    QnJob job = job_of("llama2_7b");
    job.batch = 0;
    job.items = 1e9;
    job.deadline_s = 30 * 86400;
    QnOffer one = price(f, &job, "H100 SXM5 80GB", 1), more;
    bool found;
    assert_false(one.cost.fits);
    assert_ok(qn_advice_more_cards(f->counts, &job, &one, 1, &f->coefs, &more, &found));
    assert_true(found && more.shard && more.n_cards > 1 && more.cost.fits);
}

/* The largest batches of ResNet-50 under PyTorch for 11, 16, 24 and 32 GB (Lambda's benchmarks)
 * fit, and nearly fill them. */
static void test_largest_batches(void **state)
{
    static const struct {
        const char *device;
        int64_t batch;
    } rows[] = { { "RTX 2080 Ti", 184 },
                 { "Quadro RTX 5000", 288 },
                 { "Quadro RTX 6000", 448 },
                 { "V100 SXM2 32GB", 608 } };
    for (int i = 0; i < QN_COUNT(rows); i++) {
        QnJob job = job_of("resnet50");
        job.tier = QN_TIER_EAGER;
        job.batch = rows[i].batch;
        QnOffer o = price(*state, &job, rows[i].device, 1);
        assert_true(o.cost.fits && o.cost.memory_bytes > 0.85 * qn_offer_room(&o));
    }
}

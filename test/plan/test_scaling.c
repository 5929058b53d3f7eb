/* Data parallelism against published efficiencies. Sergeev and Del Balso (Horovod, 2018): 128
 * servers of four P100 and one card of 25 Gb/s; 90 % for Inception V3 and ResNet-101, 68 % for
 * VGG-16, on 512 devices. Assumed here: 64 images a device, float32, PCIe between the four, each
 * with a quarter of the 25 Gb/s, gradients in 32 bits, TensorFlow's speed on one device as the cost
 * model has it. */
#include "plan/fixture.h"

#include "plan/counts.h"
#include "plan/scaling.h"
#include "quern/plan.h"

#include <math.h>

static QnScaling scaling_of(Fixture *f, const char *name, const char *gpu, QnNumbers numbers, int n,
                            const QnLinks *links, double compression)
{
    const QnModel *m;
    const QnCount *c;
    QnScaling s;
    QnCountRequest q = { .train = true, .low = qn_numbers_low(numbers, true), .batch = 64 };
    QnCostRequest r = {
        .n_cards = n, .numbers = numbers, .tier = QN_TIER_TENSORFLOW, .train = true
    };
    assert_ok(qn_model_find(name, &m));
    assert_ok(qn_catalogue_find(&f->catalogue, gpu, &r.card));
    QnLinks own = qn_links_of(r.card, 0);
    assert_ok(qn_counts_get(f->counts, m, &q, &c));
    assert_ok(qn_scaling_step(c, &r, &f->coefs, links ? links : &own, compression, &s));
    return s;
}

static QnLinks horovod(Fixture *f)
{
    const QnCard *card;
    assert_ok(qn_catalogue_find(&f->catalogue, "P100 PCIe 16GB", &card));
    QnLinks l = qn_links_of(card, 3.125 / 4);
    l.per_node = 4;
    return l;
}

static void test_512(void **state)
{
    Fixture *f = *state;
    static const struct {
        const char *model;
        double published, tolerance;
    } rows[] = { { "inception_v3", 0.90, 0.05 },
                 { "resnet101", 0.90, 0.05 },
                 { "vgg16", 0.68, 0.07 } };
    QnLinks l = horovod(f);
    for (int i = 0; i < QN_COUNT(rows); i++) {
        QnScaling s = scaling_of(f, rows[i].model, "P100 PCIe 16GB", QN_NUMBERS_FP32, 512, &l, 1);
        print_message("%s: %.1f %% of linear, %.0f ms alone, %.0f ms exposed, %.0f ms waiting\n",
                      rows[i].model, 100 * s.efficiency, 1e3 * s.one_s, 1e3 * s.exposed_s,
                      1e3 * s.waiting_s);
        assert_true(fabs(s.efficiency - rows[i].published) < rows[i].tolerance);
    }
}

/* Slower with each doubling; compression and a faster network help. */
static void test_order(void **state)
{
    Fixture *f = *state;
    QnLinks l = horovod(f), fast = l;
    double before = 1;
    for (int n = 1; n <= 1024; n *= 4) {
        QnScaling s = scaling_of(f, "vgg16", "P100 PCIe 16GB", QN_NUMBERS_FP32, n, &l, 1);
        assert_true(n == 1 ? s.efficiency == 1 : s.efficiency < before);
        before = s.efficiency;
    }
    fast.network *= 8;
    QnScaling slow = scaling_of(f, "vgg16", "P100 PCIe 16GB", QN_NUMBERS_FP32, 512, &l, 1);
    QnScaling wide = scaling_of(f, "vgg16", "P100 PCIe 16GB", QN_NUMBERS_FP32, 512, &fast, 1);
    QnScaling packed = scaling_of(f, "vgg16", "P100 PCIe 16GB", QN_NUMBERS_FP32, 512, &l, 4);
    assert_true(wide.efficiency > slow.efficiency + 0.1);
    assert_true(packed.efficiency > slow.efficiency + 0.1);
}

/* Eight devices: NVLink scales to 0.9 and more, cards without peer to peer do not. */
static void test_eight(void **state)
{
    Fixture *f = *state;
    QnScaling a = scaling_of(f, "resnet50", "A100 SXM4 80GB", QN_NUMBERS_FP16_AMP, 8, NULL, 1);
    QnScaling b = scaling_of(f, "resnet50", "RTX 2080 Ti", QN_NUMBERS_FP16_AMP, 8, NULL, 1);
    assert_true(a.efficiency > 0.9 && a.efficiency < 1);
    assert_true(b.efficiency < a.efficiency);
}

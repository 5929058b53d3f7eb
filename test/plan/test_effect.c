/* Effects of known runs, and names as other tables write them. */
#include "test.h"

#include "plan/effect.h"
#include "plan/match.h"
#include "plan/reading.h"
#include "quern/plan.h"

#include <math.h>

#define HEAD "coefficient,value,deviation\npytorch.conv,0.5,\n"

static QnCostRequest request(const QnCatalogue *c, const char *card)
{
    QnCostRequest r = { .n_cards = 1,
                        .numbers = QN_NUMBERS_FP16_AMP,
                        .tier = QN_TIER_EAGER,
                        .train = true,
                        .model = "resnet50",
                        .family = "resnet",
                        .framework = "PyTorch (x)" };
    assert_ok(qn_catalogue_find(c, card, &r.card));
    return r;
}

/* What is in the table is summed up; what is not counts by its group's scatter. */
static void test_lookup(void **state)
{
    static const char table[] = HEAD "any:card.all,0.0000,0.3000\n"
                                     "any:model.all,0.0000,0.4000\n"
                                     "card:RTX 3080 10GB.all,9e-1,0.1\n"
                                     "card:RTX 3090.all,0.2000,0.1000\n"
                                     "card:RTX 3090.memory,-0.1000,0.0500\n"
                                     "framework:PyTorch.all,0.0300,0.0200\n"
                                     "model:resnet50|train.all,0.0500,0.0100\n";
    QnCatalogue c;
    QnCoefs k;
    QnEffects e;
    assert_ok(qn_catalogue_open(&c));
    assert_ok(qn_coefs_parse(&k, "c.csv", table, strlen(table)));
    assert_true(k.tier[QN_TIER_EAGER][QN_COEF_CONV] == 0.5);
    QnCostRequest r = request(&c, "RTX 3090");
    qn_effects_of(&k, &r, &e);
    assert_true(e.card && e.model);
    assert_true(fabs(e.log[QN_PART_ALL] - 0.28) < 1e-9);
    assert_true(fabs(e.log[QN_PART_MEMORY] + 0.1) < 1e-9);
    assert_true(fabs(e.variance[QN_PART_ALL] - (0.01 + 0.0004 + 0.0001)) < 1e-9);
    r = request(&c, "RTX 4090");
    r.model = "resnet18";
    qn_effects_of(&k, &r, &e);
    assert_true(!e.card && !e.model);
    assert_true(fabs(e.log[QN_PART_ALL] - 0.03) < 1e-9);
    assert_true(fabs(e.variance[QN_PART_ALL] - (0.09 + 0.0004 + 0.16)) < 1e-9);
    r.model = r.family = r.framework = NULL;
    qn_effects_of(&k, &r, &e);
    assert_true(e.log[QN_PART_ALL] == 0);
    qn_catalogue_fini(&c);
}

static void test_bad_tables(void **state)
{
    static const char *const bad[] = { HEAD "card:X.all,0.1\n", HEAD "card:X.some,0.1,0.1\n",
                                       HEAD "card:X.all,nan,0.1\n", HEAD "card:X.all,0.1,0.1,\n",
                                       HEAD "card:Y.all,0.1,0.1\ncard:X.all,0.1,0.1\n" };
    QnCoefs k;
    for (int i = 0; i < QN_COUNT(bad); i++)
        assert_fails(qn_coefs_parse(&k, "c.csv", bad[i], strlen(bad[i])), QN_EFORMAT, "c.csv");
}

static void test_cards(void **state)
{
    static const char *const names[][2] = {
        { "A100-SXM4-80GB", "A100 SXM4 80GB" },
        { "NVIDIA A100 80GB PCIe", "A100 PCIe 80GB" },
        { "RTX3090", "RTX 3090" },
        { "Tesla V100-SXM2-16GB", "V100 SXM2 16GB" },
        { "1080Ti", "GTX 1080 Ti" },
        { "NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti" },
        { "GeForce RTX 3080", "RTX 3080 10GB" },
        { "NVIDIA L4 24GB", "L4" },
        { "H100", "H100 SXM5 80GB" },
        { "A6000", "RTX A6000" },
    };
    QnCatalogue c;
    assert_ok(qn_catalogue_open(&c));
    for (int i = 0; i < QN_COUNT(names); i++) {
        const QnCard *card = qn_match_card(&c, names[i][0]);
        assert_non_null(card);
        assert_string_equal(card->name, names[i][1]);
    }
    assert_null(qn_match_card(&c, "Voodoo 3"));
    assert_null(qn_match_card(&c, ""));
    qn_catalogue_fini(&c);
}

static void test_models(void **state)
{
    static const char *const names[][2] = {
        { "ResNet-50", "resnet50" },
        { "gpt2-124M", "gpt2_124m" },
        { "ViT-B/16", "vit_base_patch16_224" },
        { "bert-large", "bert_large" },
        { "VGG 16", "vgg16" },
        { "Mask R-CNN", "maskrcnn_r50_fpn" },
    };
    for (int i = 0; i < QN_COUNT(names); i++) {
        const QnModel *m = qn_match_model(names[i][0]);
        assert_non_null(m);
        assert_string_equal(m->name, names[i][1]);
    }
    assert_null(qn_match_model("resnet5"));
    assert_null(qn_match_model("never_heard_of"));
}

static void test_cells(void **state)
{
    QnReadSize s;
    QnReadUnit u;
    QnNumbers n;
    double bits;
    assert_true(qn_read_size("800x1333", &s) && s.n == 2 && s.dim[1] == 1333);
    assert_true(qn_read_size("in128/out2048", &s) && s.serves && s.in == 128 && s.out == 2048);
    assert_true(qn_read_size("pp512", &s) && s.serves && s.in == 512 && s.out == 0);
    assert_true(qn_read_size("", &s) && !s.n);
    assert_false(qn_read_size("224y224", &s));
    assert_true(qn_read_unit("images/sec", &u) && u.items == QN_READ_EXAMPLES && !u.is_time);
    assert_true(qn_read_unit("tokens/s", &u) && u.items == QN_READ_TOKENS);
    assert_true(qn_read_unit("ms/batch", &u) && u.is_time && u.scale == 1e3);
    assert_false(qn_read_unit("furlongs", &u));
    assert_true(qn_read_numbers("AMP", &n, &bits) && n == QN_NUMBERS_FP16_AMP && bits == 0);
    assert_true(qn_read_numbers("q4_k_m", &n, &bits) && n == QN_NUMBERS_FP16 && bits == 4.85);
    assert_true(qn_read_numbers("float16", &n, &bits) && n == QN_NUMBERS_FP16);
    assert_false(qn_read_numbers("fp17", &n, &bits));
}

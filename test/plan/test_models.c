/* Parameters of the models by name against the published counts, and their work. */
#include "test.h"

#include "plan/count.h"
#include "quern/plan.h"

static QnDevice *null_device(void)
{
    QnDevice *d = NULL;
    assert_int_equal(qn_device_open_named("null", NULL, &d), QN_OK);
    return d;
}

/* Whether a count is within 1 % of what the source says, or the source says nothing. */
static bool is_near(const QnModel *m, const char *what, double got, double want)
{
    double off = got / want - 1;
    if (want <= 0 || (off > -0.01 && off < 0.01))
        return true;
    print_message("%s: %.3f %s, %.3f published (%s): %+.2f %%\n", m->name, got, what, want,
                  m->source, 100 * off);
    return false;
}

/* Within 1 % of what the source says, for every model. */
static void test_published_counts(void **state)
{
    QnDevice *d = null_device();
    const QnModel *m;
    int wrong = 0;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        QnCountRequest r = { .batch = 1, .sequence = m->family->image ? 0 : 16 };
        QnCount c;
        if (qn_count_model(m, &r, d, &c) != QN_OK) {
            print_message("%s: %s\n", m->name, qn_error_last()->text);
            wrong++;
            continue;
        }
        wrong += !is_near(m, "M parameters", c.params / 1e6, m->params);
        wrong += !is_near(m, "G multiply-adds", c.macs / 1e9, m->gmacs);
        qn_count_fini(&c);
    }
    qn_device_close(d);
    assert_int_equal(wrong, 0);
}

/* One model of every family that takes images can be counted for training: the gradients exist, and
 * their products are about twice those of the pass forward. */
static void test_training(void **state)
{
    QnDevice *d = null_device();
    const QnFamily *last = NULL;
    const QnModel *m;
    int wrong = 0;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        QnCountRequest r = { .batch = 2, .train = true };
        QnCount c;
        if (m->family == last || !m->family->image || m->family->depth)
            continue;
        last = m->family;
        if (qn_count_model(m, &r, d, &c) != QN_OK) {
            print_message("%s: %s\n", m->name, qn_error_last()->text);
            wrong++;
            continue;
        }
        double products = 0;
        for (int64_t k = 0; k < c.n_work; k++)
            if (c.work[k].kind < QN_WORK_MOVE)
                products += c.work[k].flops * c.work[k].count;
        if (!(products > 5 * c.macs && products < 8 * c.macs)) {
            print_message("%s: %.3g operations of %.3g multiply-adds\n", m->name, products, c.macs);
            wrong++;
        }
        qn_count_fini(&c);
    }
    qn_device_close(d);
    assert_int_equal(wrong, 0);
}

/* Images of other sizes than a model's own: families take them, or say which they take. */
static void test_sizes(void **state)
{
    static const struct {
        const char *model;
        int64_t image;
        const char *error; /* part of it; NULL: it is counted */
        int64_t width;     /* 0: square */
    } cases[] = {
        { "efficientnet_b0", 600, NULL },
        { "efficientnet_widese_b4", 380, NULL },
        { "inception_v3", 160, NULL },
        { "inception_v4", 600, NULL },
        { "googlenet", 299, NULL },
        { "xception", 160, NULL },
        { "shufflenet_v2_x1_0", 299, NULL },
        { "rexnet_100", 380, NULL },
        { "dpn92", 299, NULL },
        { "nfnet_f0", 250, NULL },
        { "resnest50d", 299, NULL },
        { "regnety_032", 299, NULL },
        { "hrnet_w18", 160, NULL },
        { "hrnet_w18", 380, "multiples of 32" },
        { "dla34", 299, "multiples of 32" },
        { "vit_base_patch16_224", 160, NULL },
        { "vit_base_patch16_224", 299, "multiple of 16" },
        { "beit_base_patch16_224", 160, NULL },
        { "cait_s24_224", 299, "multiple of 16" },
        { "xcit_small_12_p16_224", 299, NULL },
        { "levit_256", 299, NULL },
        { "swin_tiny_patch4_window7_224", 380, NULL }, /* padded to whole windows */
        { "swinv2_tiny_window8_256", 160, NULL },
        { "maxvit_tiny_tf_224", 160, NULL },
        { "maxvit_tiny_tf_224", 380, "multiples of 32" },
        { "coatnet_0_rw_224", 600, "multiples of 32" },
        { "convnextv2_base", 299, NULL },
        { "edgenext_small", 299, NULL },
        { "mobilevit_s", 299, NULL }, /* resized to even sizes */
        { "fastvit_t8", 299, NULL },
        { "mixer_b16_224", 160, NULL },
        { "inception_v3", 40, "window spans" },
        { "vit_base_patch16_224", 224, NULL, 320 },
        { "beit_base_patch16_224", 224, NULL, 320 },
        { "xcit_small_12_p16_224", 224, NULL, 320 },
        { "swinv2_tiny_window8_256", 256, NULL, 320 },
        { "coatnet_0_rw_224", 224, NULL, 320 },
        { "mobilevit_s", 250, NULL, 333 },
        { "maxvit_tiny_tf_224", 224, "windows of 7 x 7", 320 },
        { "levit_256", 224, "square", 320 },
    };
    QnDevice *d = null_device();
    for (int i = 0; i < QN_COUNT(cases); i++) {
        const QnModel *m;
        QnCount c;
        QnCountRequest r = { .batch = 1, .image = cases[i].image, .width = cases[i].width };
        assert_int_equal(qn_model_find(cases[i].model, &m), QN_OK);
        QnStatus st = qn_count_model(m, &r, d, &c);
        bool as_said = cases[i].error ? st != QN_OK && strstr(qn_error_last()->text, cases[i].error)
                                      : st == QN_OK;
        if (!as_said)
            fail_msg("%s at %lld: %s", cases[i].model, (long long)cases[i].image,
                     st == QN_OK ? "counted" : qn_error_last()->text);
        if (st == QN_OK)
            qn_count_fini(&c);
    }
    qn_device_close(d);
}

/* What training has beside the net: side heads are parameters (torchvision 0.19's counts), a
 * teacher is work that is not trained. */
static void test_beside(void **state)
{
    static const struct {
        const char *model;
        double params, gmacs; /* in training; gmacs 0: not said */
    } cases[] = {
        { "inception_v3", 23.835, 5.713 },
        { "inception_v3_aux", 27.161, 0 },
        { "googlenet_aux", 13.005, 0 },
        { "gpunet_d1", 10.6, 4.29 + 10.266 }, /* EfficientNet-B5 teaches */
    };
    QnDevice *d = null_device();
    for (int i = 0; i < QN_COUNT(cases); i++) {
        const QnModel *m;
        QnCount c;
        QnCountRequest r = { .batch = 2, .train = true };
        assert_int_equal(qn_model_find(cases[i].model, &m), QN_OK);
        assert_int_equal(qn_count_model(m, &r, d, &c), QN_OK);
        assert_true(is_near(m, "M parameters", c.params / 1e6, cases[i].params));
        assert_true(is_near(m, "G multiply-adds", c.macs / 2e9, cases[i].gmacs));
        qn_count_fini(&c);
    }
    qn_device_close(d);
}

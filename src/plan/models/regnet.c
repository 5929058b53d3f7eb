/* Designed and re-parameterised nets: RegNet X and Y (Radosavovic et al. 2020), RepVGG (Ding et al.
 * 2021), MobileOne (Vasu et al. 2023). The latter two are built as they are trained, and as they
 * are deployed. */
#include "plan/models/blocks.h"

#include <math.h>

/* ---- RegNet. size: first width, slope and ratio of widths in hundredths, channels of a group,
 * depth, whether blocks have gates (Y) ---- */

/* Width of block i: the nearest power of the ratio to a line, in eights, then in whole groups. */
static int64_t regnet_width(const QnModel *m, int i)
{
    double first = (double)m->size[0], ratio = (double)m->size[2] / 100;
    double line = first + (double)m->size[1] / 100 * i;
    double power = rint(log(line / first) / log(ratio));
    int64_t width = (int64_t)rint(first * pow(ratio, power) / 8) * 8;
    int64_t group = QN_MIN(m->size[3], width);
    return (int64_t)rint((double)width / (double)group) * group;
}

static QnValue *regnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnConvNorm stem = { .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
    int64_t before = 0;
    (void)layers;
    x = qn_block_conv(net, "stem", x, &stem);
    for (int i = 0; i < (int)m->size[4]; i++) {
        int64_t width = regnet_width(m, i), in = qn_block_dim(x, 1);
        QnResidual r = { .out = width,
                         .inner = width,
                         .stride = width == before ? 1 : 2, /* a new width is a new stage */
                         .groups = width / QN_MIN(m->size[3], width),
                         .squeeze = m->size[5] ? (int64_t)rint(0.25 * (double)in) : 0 };
        qn_block_push(net, "block", i);
        x = qn_block_residual(net, x, &r);
        qn_net_pop(net);
        before = width;
    }
    return qn_block_classify(net, "fc", x, 0);
}

/* ---- blocks of several convolutions of the same shape that are added ---- */

typedef struct Sum {
    int64_t out, kernel, stride, groups;
    int convs; /* of that kernel; one more of 1x1 where it is larger, and a norm of x itself; 0: all
                * of them added up in one convolution with a bias, as nets are deployed */
} Sum;

static QnValue *sum_block(QnNet *net, QnValue *x, const Sum *s)
{
    QnGraph *g = net->g;
    QnConvNorm conv = {
        .out = s->out, .kernel = s->kernel, .stride = s->stride, .groups = s->groups
    };
    QnConvNorm point = conv;
    point.kernel = 1;
    QnValue *y = NULL;
    if (!s->convs) {
        conv.no_norm = true;
        return qn_relu(g, qn_block_conv(net, "reparam", x, &conv));
    }
    for (int i = 0; i < s->convs; i++) {
        qn_block_push(net, "conv_kxk", i);
        QnValue *one = qn_block_conv(net, "c", x, &conv);
        y = y ? qn_add(g, y, one) : one;
        qn_net_pop(net);
    }
    if (s->kernel > 1)
        y = qn_add(g, y, qn_block_conv(net, "conv_1x1", x, &point));
    if (s->stride == 1 && qn_block_dim(x, 1) == s->out)
        y = qn_add(g, y, qn_nn_batch_norm(net, "identity", x));
    return qn_relu(g, y);
}

/* size: channels of the stem and of four stages, whether convolutions are added up. */
static QnValue *repvgg(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int depth[] = { 1, 4, 6, 16, 1 };
    (void)layers;
    for (int i = 0; i < QN_COUNT(depth); i++) {
        qn_block_push(net, "stage", i);
        for (int k = 0; k < depth[i]; k++) {
            Sum s = { .out = m->size[i], .kernel = 3, .stride = k ? 1 : 2, .convs = !m->size[5] };
            qn_block_push(net, "", k);
            x = sum_block(net, x, &s);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", x, 0);
}

/* size: channels of the stem and of four stages, convolutions of a block. */
static QnValue *mobileone(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int depth[] = { 2, 8, 10, 1 };
    int convs = (int)m->size[5];
    (void)layers;
    qn_net_push(net, "stem");
    x = sum_block(net, x,
                  &(Sum){ .out = m->size[0], .kernel = 3, .stride = 2, .convs = convs > 0 });
    qn_net_pop(net);
    for (int i = 0; i < QN_COUNT(depth); i++) {
        qn_block_push(net, "stage", i);
        for (int k = 0; k < depth[i]; k++) {
            int64_t in = qn_block_dim(x, 1);
            Sum deep = {
                .out = in, .kernel = 3, .stride = k ? 1 : 2, .groups = in, .convs = convs
            };
            Sum point = { .out = m->size[1 + i], .kernel = 1, .stride = 1, .convs = convs };
            qn_block_push(net, "", 2 * k);
            x = sum_block(net, x, &deep);
            qn_net_pop(net);
            qn_block_push(net, "", 2 * k + 1);
            x = sum_block(net, x, &point);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", x, 0);
}

static const QnFamily regnets = { .name = "regnet", .image = 224, .build = regnet };
static const QnFamily repvggs = { .name = "repvgg", .image = 224, .build = repvgg };
static const QnFamily mobileones = { .name = "mobileone", .image = 224, .build = mobileone };

#define TIMM  "timm 1.0; multiply-adds counted on its code"
#define FUSED "timm's results of PyTorch 2.9.1: as deployed; more digits counted on its code"

static const QnModel models[] = {
    { "regnetx_002", &regnets, { 24, 3644, 249, 8, 13 }, 2.685, TIMM, 0.199 },
    { "regnetx_032", &regnets, { 88, 2631, 225, 48, 25 }, 15.297, "torchvision 0.19", 3.177 },
    { "regnety_008", &regnets, { 56, 3884, 240, 16, 14, 1 }, 6.263, TIMM, 0.7972 },
    { "regnety_016", &regnets, { 48, 2071, 265, 24, 27, 1 }, 11.202, "torchvision 0.19", 1.612 },
    { "regnety_032", &regnets, { 80, 4263, 266, 24, 21, 1 }, 19.436, "torchvision 0.19", 3.176 },
    { "regnety_160",
      &regnets,
      { 200, 10623, 248, 112, 18, 1 },
      83.590,
      "torchvision 0.19",
      15.912 },
    { "repvgg_b0", &repvggs, { 64, 64, 128, 256, 1280 }, 15.818, TIMM, 3.3972 },
    { "repvgg_b0_fused", &repvggs, { 64, 64, 128, 256, 1280, 1 }, 14.339, FUSED, 3.0576 },
    { "mobileone_s0", &mobileones, { 48, 48, 128, 256, 1024, 4 }, 5.293, TIMM, 1.0519 },
    { "mobileone_s0_fused", &mobileones, { 48, 48, 128, 256, 1024, 0 }, 2.079, FUSED, 0.2751 },
};

const QnModelList qn_models_regnet = { models, QN_COUNT(models) };

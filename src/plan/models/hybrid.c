/* Small nets between convolutions and transformers: MobileViT (Mehta and Rastegari 2022) and
 * FastViT (Vasu et al. 2023), the latter as it is trained and as it is deployed. */
#include "plan/models/blocks.h"

/* ---- MobileViT. size: channels and layers of three transformers, and of the image between them
 * ---- */

static QnValue *layer(QnNet *net, int64_t number, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, 2);
    qn_block_push(net, "transformer", number);
    QnValue *y = qn_nn_layer_norm(net, "norm1", x, true);
    x = qn_add(g, x, qn_block_self_attention(net, "attn", y, &(QnSelf){ .heads = 4 }));
    y = qn_nn_layer_norm(net, "norm2", x, true);
    x = qn_add(g, x, qn_block_mlp(net, "mlp", y, 2 * c, c, QN_ACT_SILU));
    qn_net_pop(net);
    return x;
}

/* The four places of each 2x2 patch apart, as four sequences of patches; and back. */
static QnValue *unfold(QnNet *net, QnValue *x, int64_t h, int64_t w)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), c = qn_block_dim(x, 1);
    x = qn_reshape(g, x, &QN_SHAPE(n, c, h / 2, 2, w / 2, 2));
    x = qn_transpose(g, x, (QnInts){ 6, { 0, 3, 5, 2, 4, 1 } });
    return qn_reshape(g, x, &QN_SHAPE(4 * n, h / 2 * (w / 2), c));
}

static QnValue *fold(QnNet *net, QnValue *x, int64_t h, int64_t w)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0) / 4, c = qn_block_dim(x, 2);
    x = qn_reshape(g, x, &QN_SHAPE(n, 2, 2, h / 2, w / 2, c));
    x = qn_transpose(g, x, (QnInts){ 6, { 0, 5, 3, 1, 4, 2 } });
    return qn_reshape(g, x, &QN_SHAPE(n, c, h, w));
}

static QnValue *resized(QnNet *net, QnValue *x, int64_t h, int64_t w)
{
    QnResizeAttr a = { .size = { 2, { h, w } }, .mode = QN_RESIZE_LINEAR };
    return qn_block_dim(x, 2) == h && qn_block_dim(x, 3) == w ? x : qn_resize(net->g, x, &a);
}

static QnValue *vit_block(QnNet *net, QnValue *x, int64_t width, int64_t layers)
{
    int64_t c = qn_block_dim(x, 1), h = qn_block_dim(x, 2), w = qn_block_dim(x, 3);
    int64_t even_h = h + h % 2, even_w = w + w % 2;
    QnConvNorm near = { .out = c, .kernel = 3, .act = QN_ACT_SILU };
    QnConvNorm back = { .out = c, .kernel = 1, .act = QN_ACT_SILU };
    QnConvSpec fit = { .out = width, .kernel = 1 };
    if (qn_value_is_poison(x))
        return x;
    QnValue *y = qn_nn_conv(net, "conv_1x1", qn_block_conv(net, "conv_kxk", x, &near), &fit);
    y = unfold(net, resized(net, y, even_h, even_w), even_h, even_w);
    for (int64_t i = 0; i < layers; i++)
        y = layer(net, i, y);
    y = fold(net, qn_nn_layer_norm(net, "norm", y, true), even_h, even_w);
    y = qn_block_conv(net, "conv_proj", resized(net, y, h, w), &back);
    return qn_block_conv(net, "conv_fusion", qn_concat(net->g, (QnValue *[]){ x, y }, 2, 1), &near);
}

static QnValue *bottle(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t stride)
{
    QnInverted s = { .hidden = 4 * qn_block_dim(x, 1),
                     .out = out,
                     .kernel = 3,
                     .stride = stride,
                     .act = QN_ACT_SILU };
    qn_net_push(net, name);
    x = qn_block_inverted(net, x, &s);
    qn_net_pop(net);
    return x;
}

static QnValue *mobilevit(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnConvNorm stem = { .out = 16, .kernel = 3, .stride = 2, .act = QN_ACT_SILU };
    QnConvNorm last = { .out = 640, .kernel = 1, .act = QN_ACT_SILU };
    (void)layers;
    x = bottle(net, "stages0", qn_block_conv(net, "stem", x, &stem), 32, 1);
    x = bottle(net, "stages1_0", x, 64, 2);
    x = bottle(net, "stages1_2", bottle(net, "stages1_1", x, 64, 1), 64, 1);
    for (int i = 0; i < 3; i++) {
        qn_block_push(net, "stages", i + 2);
        x = bottle(net, "0", x, m->size[6 + i], 2);
        x = vit_block(net, x, m->size[i], m->size[3 + i]);
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", qn_block_conv(net, "final_conv", x, &last), 0.1);
}

/* ---- FastViT-T8. size: widths and layers of the four stages, whether it is as deployed ---- */

/* A kxk convolution, one of 1x1 or `small` and a norm of x, as far as they are there, added. */
typedef struct Sum {
    int64_t out, kernel, small, stride, groups;
    bool no_identity, fused; /* fused: added up in one convolution with a bias */
} Sum;

static QnValue *sum_convs(QnNet *net, const char *name, QnValue *x, const Sum *s)
{
    QnGraph *g = net->g;
    QnConvNorm c = { .out = s->out, .kernel = s->kernel, .stride = s->stride, .groups = s->groups };
    c.no_norm = s->fused;
    qn_net_push(net, name);
    QnValue *y = qn_block_conv(net, "large", x, &c);
    c.kernel = s->small;
    if (s->small && !s->fused)
        y = qn_add(g, y, qn_block_conv(net, "small", x, &c));
    if (!s->no_identity && !s->fused && s->stride == 1 && qn_block_dim(x, 1) == s->out)
        y = qn_add(g, y, qn_nn_batch_norm(net, "identity", x));
    qn_net_pop(net);
    return y;
}

static QnValue *mix_block(QnNet *net, QnValue *x, bool fused)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, 1);
    Sum s = { .out = c, .kernel = 3, .small = 1, .stride = 1, .groups = c, .fused = fused };
    QnConvNorm wide = { .out = c, .kernel = 7, .groups = c };
    QnConvSpec up = { .out = 3 * c, .kernel = 1, .bias = true };
    QnConvSpec down = { .out = c, .kernel = 1, .bias = true };
    QnValue *y = sum_convs(net, "mixer", x, &s);
    if (!fused) {
        y = qn_sub(g, y, qn_nn_batch_norm(net, "norm", x));
        y = qn_add(g, x, qn_block_channel_scale(net, "mixer_scale", y));
    }
    x = y; /* fused: the sum is in the convolution */
    y = qn_nn_conv(net, "fc1", qn_block_conv(net, "conv", x, &wide), &up);
    y = qn_nn_conv(net, "fc2", qn_gelu(g, y), &down);
    return qn_add(g, x, qn_block_channel_scale(net, "layer_scale", y));
}

static QnValue *fastvit(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    const int64_t *width = m->size, *depth = m->size + 4;
    bool fused = m->size[8] != 0;
    int64_t c = width[0];
    Sum stem[] = { { c, 3, 1, 2, 1, false, fused },
                   { c, 3, 1, 2, c, false, fused },
                   { c, 1, 0, 1, 1, false, fused } };
    (void)layers;
    for (int i = 0; i < QN_COUNT(stem); i++) {
        qn_block_push(net, "stem", i);
        x = qn_gelu(g, sum_convs(net, "c", x, &stem[i]));
        qn_net_pop(net);
    }
    for (int i = 0; i < 4; i++) {
        Sum large = { width[i], 7, 3, 2, qn_block_dim(x, 1), true, fused };
        Sum point = { width[i], 1, 0, 1, 1, false, fused };
        qn_block_push(net, "stages", i);
        if (i) {
            x = sum_convs(net, "downsample0", x, &large);
            x = qn_gelu(g, sum_convs(net, "downsample1", x, &point));
        }
        for (int64_t k = 0; k < depth[i]; k++) {
            qn_block_push(net, "", k);
            x = mix_block(net, x, fused);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    Sum last = { 2 * width[3], 3, 1, 1, width[3], true, fused };
    x = sum_convs(net, "final_conv", x, &last);
    x = qn_block_squeeze(net, "se", x, width[3] / 8, QN_ACT_RELU, QN_ACT_SIGMOID);
    return qn_block_classify(net, "fc", qn_gelu(g, x), 0);
}

static const QnFamily mobilevits = {
    .name = "mobilevit", .image = 256, .build = mobilevit, .adam = true
};
static const QnFamily fastvits = {
    .name = "fastvit", .image = 256, .build = fastvit, .adam = true
};

#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "mobilevit_s", &mobilevits, { 144, 192, 240, 2, 4, 3, 96, 128, 160 }, 5.579, TIMM, 2.0008 },
    { "fastvit_t8", &fastvits, { 48, 96, 192, 384, 2, 2, 4, 2 }, 4.026, TIMM, 0.6901 },
    { "fastvit_t8_fused",
      &fastvits,
      { 48, 96, 192, 384, 2, 2, 4, 2, 1 },
      3.996,
      "timm's results of PyTorch 2.9.1: as deployed; more digits counted on its code",
      0.6852 },
};

const QnModelList qn_models_hybrid = { models, QN_COUNT(models) };

/* Convolutional nets in the shape of transformers: ConvNeXt (Liu et al. 2022) and v2 (Woo et al.
 * 2023), PoolFormer (Yu et al. 2022), EdgeNeXt (Maaz et al. 2022). size: widths of the four stages,
 * then their layers. */
#include "plan/models/blocks.h"

static QnValue *patches(QnNet *net, const char *name, QnValue *x, int64_t width, int64_t side)
{
    return qn_nn_conv(net, name, x,
                      &(QnConvSpec){ .out = width, .kernel = side, .stride = side, .bias = true });
}

static QnValue *depthwise(QnNet *net, const char *name, QnValue *x, int64_t kernel)
{
    int64_t c = qn_block_dim(x, 1);
    QnConvSpec spec = { .out = c, .kernel = kernel, .pad = kernel / 2, .groups = c, .bias = true };
    return qn_nn_conv(net, name, x, &spec);
}

/* Mean over the image, norm, scores. */
static QnValue *head(QnNet *net, QnValue *x)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    x = qn_flatten(g, qn_global_avg_pool(g, x), 1);
    return qn_nn_linear(net, "fc", qn_nn_layer_norm(net, "head_norm", x, true), 1000, true);
}

/* ---- ConvNeXt ---- */

/* Global response norm: x (N,H,W,C) weighed by each channel's part of all energy. */
static QnValue *response_norm(QnNet *net, QnValue *x)
{
    QnGraph *g = net->g;
    QnShape c = QN_SHAPE(qn_block_dim(x, -1));
    QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
    if (qn_value_is_poison(x))
        return x;
    QnValue *energy = qn_norm_l2(g, x, (QnInts){ 2, { 1, 2 } }, true);
    QnValue *mean = qn_add_scalar(g, qn_mean(g, energy, (QnInts){ 1, { -1 } }, true), 1e-6);
    QnValue *y = qn_mul(g, x, qn_div(g, energy, mean));
    y = qn_mul(g, y, qn_net_param(net, "grn.weight", &c, &zeros, false));
    return qn_add(g, x, qn_add(g, y, qn_net_param(net, "grn.bias", &c, &zeros, false)));
}

static QnValue *mix_channels(QnNet *net, QnValue *x, bool second)
{
    int64_t width = qn_block_dim(x, -1);
    x = qn_gelu(net->g, qn_nn_linear(net, "fc1", x, 4 * width, true));
    if (second)
        x = response_norm(net, x);
    x = qn_nn_linear(net, "fc2", x, width, true);
    return second ? x : qn_block_scale(net, "gamma", x);
}

static QnValue *convnext_block(QnNet *net, QnValue *x, int64_t kernel, bool second)
{
    QnValue *y = qn_block_channels_last(net, depthwise(net, "conv_dw", x, kernel));
    y = mix_channels(net, qn_nn_layer_norm(net, "norm", y, true), second);
    return qn_add(net->g, x, qn_block_channels_first(net, y));
}

static QnValue *convnext(QnNet *net, const QnModel *m, QnValue *x, bool second)
{
    const int64_t *width = m->size, *depth = m->size + 4;
    x = qn_block_image_norm(net, "stem_norm", patches(net, "stem", x, width[0], 4));
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "stages", i);
        if (i)
            x = patches(net, "downsample", qn_block_image_norm(net, "norm", x), width[i], 2);
        for (int64_t k = 0; k < depth[i]; k++) {
            qn_block_push(net, "", k);
            x = convnext_block(net, x, 7, second);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return head(net, x);
}

static QnValue *convnext_v1(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    (void)layers;
    return convnext(net, m, x, false);
}

static QnValue *convnext_v2(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    (void)layers;
    return convnext(net, m, x, true);
}

/* ---- PoolFormer: places are mixed by a pool ---- */

static QnValue *pool_block(QnNet *net, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t width = qn_block_dim(x, 1);
    QnConvSpec wide = { .out = 4 * width, .kernel = 1, .bias = true };
    QnConvSpec narrow = { .out = width, .kernel = 1, .bias = true };
    QnValue *y = qn_nn_group_norm(net, "norm1", x, 1);
    y = qn_sub(g, qn_block_avg_pool(net, y, 3, 1, 1), y);
    x = qn_add(g, x, qn_block_channel_scale(net, "layer_scale1", y));
    y = qn_nn_conv(net, "fc1", qn_nn_group_norm(net, "norm2", x, 1), &wide);
    y = qn_nn_conv(net, "fc2", qn_gelu(g, y), &narrow);
    return qn_add(g, x, qn_block_channel_scale(net, "layer_scale2", y));
}

static QnValue *poolformer(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    const int64_t *width = m->size, *depth = m->size + 4;
    QnConvSpec stem = { .out = width[0], .kernel = 7, .stride = 4, .pad = 2, .bias = true };
    (void)layers;
    x = qn_nn_conv(net, "stem", x, &stem);
    for (int i = 0; i < 4; i++) {
        QnConvSpec down = { .out = width[i], .kernel = 3, .stride = 2, .pad = 1, .bias = true };
        qn_block_push(net, "stages", i);
        if (i)
            x = qn_nn_conv(net, "downsample", x, &down);
        for (int64_t k = 0; k < depth[i]; k++) {
            qn_block_push(net, "", k);
            x = pool_block(net, x);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return head(net, x);
}

/* ---- EdgeNeXt: the last block of a stage splits channels and attends between them ---- */

/* Parts of the channels through a chain of depthwise convolutions, each added to the next. */
static QnValue *split_scales(QnNet *net, QnValue *x, int parts)
{
    QnGraph *g = net->g;
    QnValue *part[4], *sum = NULL;
    int64_t c = qn_block_dim(x, 1), width = (c + parts - 1) / parts;
    for (int i = 0; i < parts; i++)
        part[i] = qn_slice_axis(g, x, 1, i * width, QN_MIN((i + 1) * width, c));
    for (int i = 0; i < QN_MAX(1, parts - 1); i++) {
        qn_block_push(net, "convs", i);
        part[i] = depthwise(net, "c", sum ? qn_add(g, sum, part[i]) : part[i], 3);
        sum = part[i];
        qn_net_pop(net);
    }
    return qn_concat(g, part, parts, 1);
}

static QnValue *split_block(QnNet *net, QnValue *x, int parts, bool places)
{
    QnGraph *g = net->g;
    int64_t h = qn_block_dim(x, 2);
    QnValue *y = split_scales(net, x, parts);
    if (places)
        y = qn_add(g, y, qn_block_sine_places(net, "pos_embd", y));
    y = qn_block_tokens(net, y);
    QnValue *z = qn_nn_layer_norm(net, "norm_xca", y, true);
    z = qn_block_cross_covariance(net, "xca", z, 8);
    y = qn_add(g, y, qn_block_scale(net, "gamma_xca", z));
    y = mix_channels(net, qn_nn_layer_norm(net, "norm", y, true), false);
    return qn_add(g, x, qn_block_image(net, y, h));
}

static QnValue *edgenext(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int parts[] = { 0, 2, 3, 4 };
    const int64_t *width = m->size, *depth = m->size + 4;
    (void)layers;
    x = qn_block_image_norm(net, "stem_norm", patches(net, "stem", x, width[0], 4));
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "stages", i);
        if (i)
            x = patches(net, "downsample", qn_block_image_norm(net, "norm", x), width[i], 2);
        for (int64_t k = 0; k < depth[i]; k++) {
            qn_block_push(net, "", k);
            x = i && k == depth[i] - 1 ? split_block(net, x, parts[i], i == 1)
                                       : convnext_block(net, x, 3 + 2 * i, false);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return head(net, x);
}

static const QnFamily v1 = { .name = "convnext", .image = 224, .build = convnext_v1, .adam = true };
static const QnFamily v2 = {
    .name = "convnextv2", .image = 224, .build = convnext_v2, .adam = true
};
static const QnFamily pools = {
    .name = "poolformer", .image = 224, .build = poolformer, .adam = true
};
static const QnFamily edges = { .name = "edgenext", .image = 256, .build = edgenext, .adam = true };

#define TV   "torchvision 0.19"
#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "convnext_tiny", &v1, { 96, 192, 384, 768, 3, 3, 9, 3 }, 28.589, TV, 4.456 },
    { "convnext_small", &v1, { 96, 192, 384, 768, 3, 3, 27, 3 }, 50.224, TV, 8.684 },
    { "convnext_base", &v1, { 128, 256, 512, 1024, 3, 3, 27, 3 }, 88.591, TV, 15.355 },
    { "convnext_large", &v1, { 192, 384, 768, 1536, 3, 3, 27, 3 }, 197.767, TV, 34.361 },
    { "convnextv2_base", &v2, { 128, 256, 512, 1024, 3, 3, 27, 3 }, 88.718, TIMM, 15.3547 },
    { "poolformer_s12", &pools, { 64, 128, 320, 512, 2, 2, 6, 2 }, 11.915, TIMM, 1.8123 },
    { "edgenext_small", &edges, { 48, 96, 160, 304, 3, 3, 9, 3 }, 5.587, TIMM, 1.2532 },
};

const QnModelList qn_models_convnext = { models, QN_COUNT(models) };

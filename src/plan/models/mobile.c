/* Small nets with blocks of their own: ShuffleNet v2 (Ma et al. 2018), GhostNet (Han et al. 2020),
 * ReXNet (Han et al. 2021), MobileNet v4 (Qin et al. 2024). */
#include "plan/models/blocks.h"

#include <math.h>

/* ---- ShuffleNet v2. size: channels of the stem, of three stages and of the head ---- */

/* Channels of two halves in turn. */
static QnValue *shuffle(QnNet *net, QnValue *x)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    QnShape s = x->type.shape;
    x = qn_reshape(g, x, &QN_SHAPE(s.dim[0], 2, s.dim[1] / 2, s.dim[2], s.dim[3]));
    return qn_reshape(g, qn_swap_axes(g, x, 1, 2), &s);
}

static QnValue *shuffle_block(QnNet *net, QnValue *x, int64_t out, int64_t stride)
{
    QnGraph *g = net->g;
    int64_t half = out / 2, in = qn_block_dim(x, 1);
    QnConvNorm narrow = { .out = half, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm deep = { .out = half, .kernel = 3, .stride = stride, .groups = half };
    QnConvNorm side = { .out = in, .kernel = 3, .stride = stride, .groups = in };
    QnValue *part[2] = { x, x };
    if (stride == 1) {
        qn_split(g, x, 1, 2, part);
    } else {
        part[0] = qn_block_conv(net, "branch1_0", x, &side);
        part[0] = qn_block_conv(net, "branch1_1", part[0], &narrow);
    }
    part[1] = qn_block_conv(net, "branch2_0", part[1], &narrow);
    part[1] = qn_block_conv(net, "branch2_1", part[1], &deep);
    part[1] = qn_block_conv(net, "branch2_2", part[1], &narrow);
    return shuffle(net, qn_concat(g, part, 2, 1));
}

static QnValue *shufflenet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int repeats[] = { 4, 8, 4 };
    QnConvNorm stem = { .out = m->size[0], .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
    QnConvNorm last = { .out = m->size[4], .kernel = 1, .act = QN_ACT_RELU };
    (void)layers;
    x = qn_block_max_pool(net, qn_block_conv(net, "conv1", x, &stem), 3, 2, 1);
    for (int i = 0; i < QN_COUNT(repeats); i++) {
        qn_block_push(net, "stage", i + 2);
        for (int k = 0; k < repeats[i]; k++) {
            qn_block_push(net, "", k);
            x = shuffle_block(net, x, m->size[1 + i], k ? 1 : 2);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", qn_block_conv(net, "conv5", x, &last), 0);
}

/* ---- GhostNet ---- */

/* Half of the channels by a convolution, the others by a depthwise one of those. */
static QnValue *ghost(QnNet *net, const char *name, QnValue *x, int64_t out, QnAct act)
{
    int64_t half = (out + 1) / 2;
    QnConvNorm first = { .out = half, .kernel = 1, .act = act };
    QnConvNorm cheap = { .out = half, .kernel = 3, .groups = half, .act = act };
    qn_net_push(net, name);
    x = qn_block_conv(net, "primary", x, &first);
    QnValue *parts[] = { x, qn_block_conv(net, "cheap", x, &cheap) };
    qn_net_pop(net);
    return qn_concat(net->g, parts, 2, 1);
}

typedef struct Ghost {
    int64_t kernel, hidden, out, squeeze, stride;
} Ghost;

static QnValue *ghost_block(QnNet *net, QnValue *x, const Ghost *s)
{
    int64_t in = qn_block_dim(x, 1);
    QnConvNorm deep = {
        .out = s->hidden, .kernel = s->kernel, .stride = s->stride, .groups = s->hidden
    };
    QnConvNorm side = { .out = in, .kernel = s->kernel, .stride = s->stride, .groups = in };
    QnConvNorm fit = { .out = s->out, .kernel = 1 };
    QnValue *y = ghost(net, "ghost1", x, s->hidden, QN_ACT_RELU);
    if (s->stride > 1)
        y = qn_block_conv(net, "conv_dw", y, &deep);
    if (s->squeeze)
        y = qn_block_squeeze(net, "se", y, s->squeeze, QN_ACT_RELU, QN_ACT_HARDSIGMOID);
    y = ghost(net, "ghost2", y, s->out, QN_ACT_NONE);
    if (s->stride > 1 || in != s->out)
        x = qn_block_conv(net, "shortcut_1", qn_block_conv(net, "shortcut.0", x, &side), &fit);
    return qn_add(net->g, y, x);
}

static QnValue *ghostnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const Ghost blocks[] = {
        { 3, 16, 16, 0, 1 },     { 3, 48, 24, 0, 2 },     { 3, 72, 24, 0, 1 },
        { 5, 72, 40, 20, 2 },    { 5, 120, 40, 32, 1 },   { 3, 240, 80, 0, 2 },
        { 3, 200, 80, 0, 1 },    { 3, 184, 80, 0, 1 },    { 3, 184, 80, 0, 1 },
        { 3, 480, 112, 120, 1 }, { 3, 672, 112, 168, 1 }, { 5, 672, 160, 168, 2 },
        { 5, 960, 160, 0, 1 },   { 5, 960, 160, 240, 1 }, { 5, 960, 160, 0, 1 },
        { 5, 960, 160, 240, 1 },
    };
    QnGraph *g = net->g;
    QnConvNorm stem = { .out = 16, .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
    QnConvNorm last = { .out = 960, .kernel = 1, .act = QN_ACT_RELU };
    (void)m, (void)layers;
    x = qn_block_conv(net, "conv_stem", x, &stem);
    for (int i = 0; i < QN_COUNT(blocks); i++) {
        qn_block_push(net, "blocks", i);
        x = ghost_block(net, x, &blocks[i]);
        qn_net_pop(net);
    }
    x = qn_global_avg_pool(g, qn_block_conv(net, "conv", x, &last));
    x = qn_relu(g, qn_nn_linear(net, "conv_head", qn_flatten(g, x, 1), 1280, true));
    return qn_nn_linear(net, "classifier", qn_nn_dropout(net, x, 0.2), 1000, true);
}

/* ---- ReXNet: channels grow from block to block, the sum reaches over the first ones ---- */

static QnValue *rex_squeeze(QnNet *net, QnValue *x, int64_t hidden)
{
    QnGraph *g = net->g;
    QnConvSpec down = { .out = hidden, .kernel = 1, .bias = true };
    QnConvSpec up = { .out = qn_block_dim(x, 1), .kernel = 1, .bias = true };
    qn_net_push(net, "se");
    QnValue *s = qn_nn_conv(net, "fc1", qn_global_avg_pool(g, x), &down);
    s = qn_nn_conv(net, "fc2", qn_relu(g, qn_nn_batch_norm(net, "bn", s)), &up);
    qn_net_pop(net);
    return qn_mul(g, x, qn_sigmoid(g, s));
}

static QnValue *rex_block(QnNet *net, QnValue *x, int number, int64_t out, int64_t stride)
{
    QnGraph *g = net->g;
    int64_t in = qn_block_dim(x, 1), hidden = number ? 6 * in : in;
    QnConvNorm wide = { .out = hidden, .kernel = 1, .act = QN_ACT_SILU };
    QnConvNorm deep = { .out = hidden, .kernel = 3, .stride = stride, .groups = hidden };
    QnConvNorm narrow = { .out = out, .kernel = 1 };
    QnValue *y = number ? qn_block_conv(net, "conv_exp", x, &wide) : x;
    y = qn_block_conv(net, "conv_dw", y, &deep);
    if (number > 2)
        y = rex_squeeze(net, y, hidden / 12);
    y = qn_block_conv(net, "conv_pwl", qn_relu6(g, y), &narrow);
    if (stride > 1 || in > out)
        return y;
    QnValue *first = qn_add(g, qn_slice_axis(g, y, 1, 0, in), x);
    return qn_concat(g, (QnValue *[]){ first, qn_slice_axis(g, y, 1, in, out) }, 2, 1);
}

static QnValue *rexnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int strides[] = { 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1 };
    QnConvNorm stem = { .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_SILU };
    QnConvNorm last = { .out = 1280, .kernel = 1, .act = QN_ACT_SILU };
    (void)m, (void)layers;
    x = qn_block_conv(net, "stem", x, &stem);
    for (int i = 0; i < QN_COUNT(strides); i++) {
        qn_block_push(net, "features", i);
        x = rex_block(net, x, i, (int64_t)rint(16 + 180.0 / QN_COUNT(strides) * i), strides[i]);
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", qn_block_conv(net, "last", x, &last), 0.2);
}

/* ---- MobileNet v4, of convolutions ---- */

/* Depthwise before and after the widening, where their kernels are not 0. */
typedef struct Universal {
    int before, between, stride, widen;
    int64_t out;
} Universal;

static QnValue *universal_block(QnNet *net, QnValue *x, const Universal *s)
{
    int64_t in = qn_block_dim(x, 1), hidden = in * s->widen;
    QnValue *y = x;
    QnConvNorm before = {
        .out = in, .kernel = s->before, .stride = s->between ? 1 : s->stride, .groups = in
    };
    QnConvNorm wide = { .out = hidden, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm between = { .out = hidden,
                           .kernel = s->between,
                           .stride = s->stride,
                           .groups = hidden,
                           .act = QN_ACT_RELU };
    QnConvNorm narrow = { .out = s->out, .kernel = 1 };
    if (s->before)
        y = qn_block_conv(net, "dw_start", y, &before);
    y = qn_block_conv(net, "pw_exp", y, &wide);
    if (s->between)
        y = qn_block_conv(net, "dw_mid", y, &between);
    y = qn_block_conv(net, "pw_proj", y, &narrow);
    return s->stride == 1 && in == s->out ? qn_add(net->g, y, x) : y;
}

static QnValue *mobilenet_v4(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const Universal blocks[] = {
        { 3, 5, 2, 4, 80 },  { 3, 3, 1, 2, 80 },  { 3, 5, 2, 6, 160 }, { 3, 3, 1, 4, 160 },
        { 3, 3, 1, 4, 160 }, { 3, 5, 1, 4, 160 }, { 3, 3, 1, 4, 160 }, { 3, 0, 1, 4, 160 },
        { 0, 0, 1, 2, 160 }, { 3, 0, 1, 4, 160 }, { 5, 5, 2, 6, 256 }, { 5, 5, 1, 4, 256 },
        { 3, 5, 1, 4, 256 }, { 3, 5, 1, 4, 256 }, { 0, 0, 1, 4, 256 }, { 3, 0, 1, 4, 256 },
        { 3, 5, 1, 2, 256 }, { 5, 5, 1, 4, 256 }, { 0, 0, 1, 4, 256 }, { 0, 0, 1, 4, 256 },
        { 5, 0, 1, 2, 256 },
    };
    QnGraph *g = net->g;
    QnConvNorm stem = { .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
    QnInverted first = {
        .hidden = 128, .out = 48, .kernel = 3, .stride = 2, .act = QN_ACT_RELU, .fused = true
    };
    QnConvNorm last = { .out = 960, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm head = { .out = 1280, .kernel = 1, .act = QN_ACT_RELU };
    (void)m, (void)layers;
    x = qn_block_inverted(net, qn_block_conv(net, "conv_stem", x, &stem), &first);
    for (int i = 0; i < QN_COUNT(blocks); i++) {
        qn_block_push(net, "blocks", i);
        x = universal_block(net, x, &blocks[i]);
        qn_net_pop(net);
    }
    x = qn_global_avg_pool(g, qn_block_conv(net, "conv_last", x, &last));
    x = qn_flatten(g, qn_block_conv(net, "conv_head", x, &head), 1);
    return qn_nn_linear(net, "classifier", qn_nn_dropout(net, x, 0.2), 1000, true);
}

static const QnFamily shuffles = { .name = "shufflenet", .image = 224, .build = shufflenet };
static const QnFamily ghosts = { .name = "ghostnet", .image = 224, .build = ghostnet };
static const QnFamily rexes = { .name = "rexnet", .image = 224, .build = rexnet };
static const QnFamily v4s = { .name = "mobilenet_v4", .image = 256, .build = mobilenet_v4 };

#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "shufflenet_v2_x1_0",
      &shuffles,
      { 24, 116, 232, 464, 1024 },
      2.279,
      "torchvision 0.19",
      .145 },
    { "ghostnet_100", &ghosts, { 0 }, 5.183, TIMM, 0.1412 },
    { "rexnet_100", &rexes, { 0 }, 4.797, TIMM, 0.3984 },
    { "mobilenetv4_conv_medium", &v4s, { 0 }, 9.716, TIMM, 1.0802 },
};

const QnModelList qn_models_mobile = { models, QN_COUNT(models) };

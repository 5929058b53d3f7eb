/* Convolutions and attention in turn: MaxViT (Tu et al. 2022), whose attention is in windows and in
 * grids, and CoAtNet (Dai et al. 2021), whose last two stages are transformers. size: channels of
 * the stem's two convolutions, then width and layers of the four stages. */
#include "plan/models/blocks.h"

enum { HEAD = 32 }; /* width of an attention head */

/* ---- inverted residuals that norm first ---- */

typedef struct Inverted {
    int64_t out, hidden, stride, squeeze;
    QnAct act;
    bool coat; /* CoAtNet's: pools where it shrinks, activates first, gates before the norm */
} Inverted;

static QnValue *shortcut(QnNet *net, QnValue *x, int64_t out, int64_t stride, bool bias)
{
    QnConvSpec fit = { .out = out, .kernel = 1, .bias = bias };
    if (stride == 2)
        x = qn_block_avg_pool(net, x, 2, 2, 0);
    return qn_block_dim(x, 1) == out ? x : qn_nn_conv(net, "expand", x, &fit);
}

static QnValue *inverted(QnNet *net, QnValue *x, const Inverted *s)
{
    int64_t stride = s->stride;
    QnConvSpec deep = { .out = s->hidden, .kernel = 3, .pad = 1, .groups = s->hidden };
    QnConvSpec last = { .out = s->out, .kernel = 1, .bias = !s->coat };
    QnConvNorm wide = { .out = s->hidden, .kernel = 1, .act = s->act };
    QnValue *y = qn_nn_batch_norm(net, "pre_norm", x);
    qn_net_push(net, "shortcut");
    x = shortcut(net, x, s->out, stride, !s->coat);
    qn_net_pop(net);
    if (s->coat) {
        y = qn_block_act(net, y, s->act);
        y = stride == 2 ? qn_block_avg_pool(net, y, 2, 2, 0) : y;
        stride = 1;
    }
    y = qn_block_conv(net, "conv1", y, &wide);
    deep.stride = stride;
    y = qn_nn_conv(net, "conv2", y, &deep);
    if (s->coat)
        y = qn_block_squeeze(net, "se", y, s->squeeze, QN_ACT_RELU, QN_ACT_SIGMOID);
    y = qn_block_act(net, qn_nn_batch_norm(net, "norm2", y), s->act);
    if (!s->coat)
        y = qn_block_squeeze(net, "se", y, s->squeeze, QN_ACT_SILU, QN_ACT_SIGMOID);
    return qn_add(net->g, x, qn_nn_conv(net, "conv3", y, &last));
}

static QnValue *stem(QnNet *net, const QnModel *m, QnValue *x, QnAct act, bool bias)
{
    QnConvSpec first = { .out = m->size[0], .kernel = 3, .stride = 2, .pad = 1, .bias = bias };
    QnConvSpec second = { .out = m->size[1], .kernel = 3, .pad = 1, .bias = bias };
    x = qn_block_multiple(net, x, 32);
    x = qn_nn_batch_norm(net, "norm1", qn_nn_conv(net, "conv1", x, &first));
    return qn_nn_conv(net, "conv2", qn_block_act(net, x, act), &second);
}

/* ---- MaxViT ---- */

/* Tokens of places that lie a `side`-th of the image apart: (N,H,W,C) to (windows,side*side,C), and
 * back. */
static QnValue *grid(QnNet *net, QnValue *x, int64_t side, int64_t n, int64_t h, int64_t w,
                     bool back)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, -1), a = h / side, b = w / side;
    if (qn_value_is_poison(x))
        return x;
    if (back) {
        x = qn_reshape(g, x, &QN_SHAPE(n, a, b, side, side, c));
        x = qn_transpose(g, x, (QnInts){ 6, { 0, 3, 1, 4, 2, 5 } });
        return qn_reshape(g, x, &QN_SHAPE(n, h, w, c));
    }
    x = qn_reshape(g, x, &QN_SHAPE(n, side, a, side, b, c));
    x = qn_transpose(g, x, (QnInts){ 6, { 0, 2, 4, 1, 3, 5 } });
    return qn_reshape(g, x, &QN_SHAPE(n * a * b, side * side, c));
}

static QnValue *partition(QnNet *net, const char *name, QnValue *x, int64_t side, bool in_grid)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), h = qn_block_dim(x, 1), w = qn_block_dim(x, 2);
    int64_t c = qn_block_dim(x, 3);
    QnSelf self = { .heads = c / HEAD };
    qn_net_push(net, name);
    QnValue *y = qn_nn_layer_norm(net, "norm1", x, true);
    y = in_grid ? grid(net, y, side, n, h, w, false) : qn_block_windows(net, y, side);
    self.mask = qn_block_relative_bias(net, "rel_pos", side, side, self.heads);
    y = qn_block_self_attention(net, "attn", y, &self);
    y = in_grid ? grid(net, y, side, n, h, w, true) : qn_block_unwindow(net, y, side, h, w);
    x = qn_add(g, x, y);
    y = qn_nn_layer_norm(net, "norm2", x, true);
    x = qn_add(g, x, qn_block_mlp(net, "mlp", y, 4 * c, c, QN_ACT_GELU_TANH));
    qn_net_pop(net);
    return x;
}

static QnValue *maxvit(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    const int64_t *width = m->size + 2, *depth = m->size + 6;
    int64_t side = qn_block_dim(x, 2) / 32; /* windows grow with the image */
    (void)layers;
    x = stem(net, m, x, QN_ACT_GELU_TANH, true);
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "stages", i);
        for (int64_t k = 0; k < depth[i]; k++) {
            Inverted s = { .out = width[i],
                           .hidden = 4 * width[i],
                           .stride = k ? 1 : 2,
                           .squeeze = width[i] / 4,
                           .act = QN_ACT_GELU_TANH };
            qn_block_push(net, "", k);
            qn_net_push(net, "conv");
            x = inverted(net, x, &s);
            qn_net_pop(net);
            x = qn_block_channels_last(net, x);
            x = partition(net, "attn_block", x, side, false);
            x = partition(net, "attn_grid", x, side, true);
            x = qn_block_channels_first(net, x);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    x = qn_nn_layer_norm(net, "norm", qn_flatten(g, qn_global_avg_pool(g, x), 1), true);
    x = qn_tanh(g, qn_nn_linear(net, "pre_logits", x, width[3], true));
    return qn_nn_linear(net, "fc", x, 1000, true);
}

/* ---- CoAtNet ---- */

static QnValue *transformer(QnNet *net, QnValue *x, int64_t out, int64_t stride)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, 1), heads = c / HEAD;
    QnValue *part[3], *y = qn_nn_layer_norm(net, "norm1", qn_block_tokens(net, x), true);
    if (stride == 2) {
        y = qn_block_image(net, y, qn_block_dim(x, 2));
        y = qn_block_tokens(net, qn_block_avg_pool(net, y, 2, 2, 0));
    }
    qn_net_push(net, "shortcut");
    x = shortcut(net, x, out, stride, false);
    qn_net_pop(net);
    int64_t h = qn_block_dim(x, 2), w = qn_block_dim(x, 3);
    qn_split(g, qn_nn_linear(net, "qkv", y, 3 * c, true), 2, 3, part);
    for (int i = 0; i < 3; i++)
        part[i] = qn_block_split_heads(net, part[i], heads);
    QnValue *bias = qn_block_relative_bias(net, "rel_pos", h, w, heads);
    y = qn_block_join_heads(net, qn_attention(g, part[0], part[1], part[2], bias, false, 0));
    y = qn_nn_linear(net, "proj", y, out, true);
    x = qn_add(g, qn_block_tokens(net, x), y);
    y = qn_nn_layer_norm(net, "norm2", x, true);
    x = qn_add(g, x, qn_block_mlp(net, "mlp", y, 4 * out, out, QN_ACT_GELU));
    return qn_block_image(net, x, h);
}

static QnValue *coatnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    const int64_t *width = m->size + 2, *depth = m->size + 6;
    (void)layers;
    x = stem(net, m, x, QN_ACT_SILU, false);
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "stages", i);
        for (int64_t k = 0; k < depth[i]; k++) {
            int64_t in = qn_block_dim(x, 1), stride = k ? 1 : 2;
            Inverted s = { .out = width[i],
                           .hidden = 4 * in,
                           .stride = stride,
                           .squeeze = in,
                           .act = QN_ACT_SILU,
                           .coat = true };
            qn_block_push(net, "", k);
            x = i < 2 ? inverted(net, x, &s) : transformer(net, x, width[i], stride);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    x = qn_nn_layer_norm(net, "norm", qn_block_tokens(net, x), true);
    return qn_nn_linear(net, "fc", qn_mean(g, x, (QnInts){ 1, { 1 } }, false), 1000, true);
}

static const QnFamily maxvits = { .name = "maxvit", .image = 224, .build = maxvit, .adam = true };
static const QnFamily coatnets = {
    .name = "coatnet", .image = 224, .build = coatnet, .adam = true
};

#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "maxvit_tiny_tf_224",
      &maxvits,
      { 64, 64, 64, 128, 256, 512, 2, 2, 5, 2 },
      30.917,
      TIMM,
      5.5518 },
    { "coatnet_0_rw_224",
      &coatnets,
      { 32, 64, 96, 192, 384, 768, 2, 3, 7, 2 },
      27.436,
      TIMM,
      4.4063 },
};

const QnModelList qn_models_maxvit = { models, QN_COUNT(models) };

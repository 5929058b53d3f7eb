/* Latent diffusion (Rombach et al. 2022): the U-Net that takes noise out of what an image was
 * packed into, an eighth as high and wide, told by words. Packing and reading words are not in it.
 */
#include "plan/models/text.h"

/* size: channels, levels, transformer layers of each of four levels, width of the words' vectors,
 * width of what else is known of the image (0: nothing) */
enum { CHANNELS, LEVELS, DEPTH, CONTEXT = DEPTH + 4, KNOWN };
enum { HEAD = 64, WORDS = 77, EMBEDDED = 4 /* times the channels */, MAX_SKIPS = 16 };

typedef struct Unet {
    const QnModel *m;
    int64_t layers;        /* of the last level's transformers; 0: the model's own */
    QnValue *time, *words; /* (B,4*channels), (B,77,context) */
    QnValue *skips[MAX_SKIPS];
    int n;
} Unet;

static int64_t channels_of(const QnValue *x)
{
    return x->type.shape.rank > 1 ? x->type.shape.dim[1] : 1;
}

static QnValue *conv(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t kernel,
                     int64_t stride)
{
    QnConvSpec s = {
        .out = out, .kernel = kernel, .stride = stride, .pad = kernel / 2, .bias = true
    };
    return qn_nn_conv(net, name, x, &s);
}

/* Two convolutions, between which the time is added. */
static QnValue *residual(QnNet *net, const char *name, QnValue *x, int64_t out, const Unet *u)
{
    QnGraph *g = net->g;
    qn_net_push(net, name);
    QnValue *y = qn_silu(g, qn_nn_group_norm(net, "norm1", x, 32));
    y = conv(net, "conv1", y, out, 3, 1);
    QnValue *t = qn_nn_linear(net, "time", qn_silu(g, u->time), out, true);
    y = qn_add(g, y, qn_unsqueeze(g, qn_unsqueeze(g, t, 2), 3));
    y = qn_silu(g, qn_nn_group_norm(net, "norm2", y, 32));
    y = conv(net, "conv2", y, out, 3, 1);
    x = channels_of(x) == out ? x : conv(net, "skip", x, out, 1, 1);
    qn_net_pop(net);
    return qn_add(g, x, y);
}

/* Attention of x (B,T,C) to words, or to itself; without biases but the last. */
static QnValue *attend(QnNet *net, const char *name, QnValue *x, QnValue *words)
{
    QnGraph *g = net->g;
    int64_t width = qn_text_width(x), heads = width / HEAD;
    QnValue *from = words ? words : x;
    qn_net_push(net, name);
    QnValue *q = qn_text_split_heads(g, qn_nn_linear(net, "q", x, width, false), heads);
    QnValue *k = qn_text_split_heads(g, qn_nn_linear(net, "k", from, width, false), heads);
    QnValue *v = qn_text_split_heads(g, qn_nn_linear(net, "v", from, width, false), heads);
    QnValue *y = qn_text_join_heads(g, qn_attention(g, q, k, v, NULL, false, 0));
    y = qn_nn_linear(net, "out", y, width, true);
    qn_net_pop(net);
    return y;
}

static QnValue *transformer_layer(QnNet *net, int64_t i, QnValue *x, const Unet *u)
{
    QnGraph *g = net->g;
    QnValue *two[2];
    int64_t width = qn_text_width(x);
    qn_text_push(net, "layer", i);
    x = qn_add(g, x, attend(net, "self", qn_nn_layer_norm(net, "norm1", x, true), NULL));
    x = qn_add(g, x, attend(net, "cross", qn_nn_layer_norm(net, "norm2", x, true), u->words));
    QnValue *y = qn_nn_linear(net, "up", qn_nn_layer_norm(net, "norm3", x, true), 8 * width, true);
    qn_split(g, y, -1, 2, two);
    y = qn_nn_linear(net, "down", qn_mul(g, two[0], qn_gelu(g, two[1])), width, true);
    qn_net_pop(net);
    return qn_add(g, x, y);
}

/* Transformer layers over the places of x (B,C,H,W). */
static QnValue *transformer(QnNet *net, QnValue *x, int64_t depth, const Unet *u)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x) || !depth)
        return x;
    const QnShape s = x->type.shape;
    QnShape flat = QN_SHAPE(s.dim[0], s.dim[1], s.dim[2] * s.dim[3]);
    qn_net_push(net, "attention");
    QnValue *y = qn_reshape(g, qn_nn_group_norm(net, "norm", x, 32), &flat);
    y = qn_nn_linear(net, "in", qn_swap_axes(g, y, 1, 2), s.dim[1], true);
    for (int64_t i = 0; i < depth; i++)
        y = transformer_layer(net, i, y, u);
    y = qn_swap_axes(g, qn_nn_linear(net, "out", y, s.dim[1], true), 1, 2);
    qn_net_pop(net);
    return qn_add(g, x, qn_reshape(g, y, &s));
}

static int64_t level_channels(const QnModel *m, int64_t level)
{
    int64_t times = QN_MIN((int64_t)1 << level, 4);
    return m->size[CHANNELS] * times;
}

static int64_t depth_of(const Unet *u, int64_t level)
{
    bool last = level == u->m->size[LEVELS] - 1;
    return last && u->layers ? u->layers : u->m->size[DEPTH + level];
}

static QnValue *down(QnNet *net, QnValue *x, Unet *u)
{
    const QnModel *m = u->m;
    u->skips[u->n++] = x;
    for (int64_t level = 0; level < m->size[LEVELS]; level++) {
        for (int64_t i = 0; i < 2; i++) {
            qn_text_push(net, "down", 2 * level + i);
            x = residual(net, "block", x, level_channels(m, level), u);
            x = transformer(net, x, depth_of(u, level), u);
            qn_net_pop(net);
            u->skips[u->n++] = x;
        }
        if (level == m->size[LEVELS] - 1)
            break;
        qn_text_push(net, "half", level);
        x = u->skips[u->n++] = conv(net, "conv", x, channels_of(x), 3, 2);
        qn_net_pop(net);
    }
    return x;
}

/* Twice as high and wide, the nearest place. */
static QnValue *twice(QnGraph *g, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnResizeAttr a = { .size = { 2, { 2 * s->dim[2], 2 * s->dim[3] } },
                       .mode = QN_RESIZE_NEAREST,
                       .coord = QN_RESIZE_ASYMMETRIC,
                       .round = QN_RESIZE_FLOOR };
    return qn_resize(g, x, &a);
}

static QnValue *up(QnNet *net, QnValue *x, Unet *u)
{
    const QnModel *m = u->m;
    for (int64_t level = m->size[LEVELS] - 1; level >= 0; level--) {
        for (int64_t i = 0; i < 3; i++) {
            qn_text_push(net, "up", 3 * level + i);
            x = qn_concat(net->g, (QnValue *[]){ x, u->skips[--u->n] }, 2, 1);
            x = residual(net, "block", x, level_channels(m, level), u);
            x = transformer(net, x, depth_of(u, level), u);
            qn_net_pop(net);
        }
        if (!level)
            break;
        qn_text_push(net, "double", level);
        x = conv(net, "conv", twice(net->g, x), channels_of(x), 3, 1);
        qn_net_pop(net);
    }
    return x;
}

/* x (B,in) through two linear layers, as wide as the time's. */
static QnValue *embed(QnNet *net, const char *name, QnValue *x, int64_t width)
{
    qn_net_push(net, name);
    x = qn_silu(net->g, qn_nn_linear(net, "fc1", x, width, true));
    x = qn_nn_linear(net, "fc2", x, width, true);
    qn_net_pop(net);
    return x;
}

static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t c = m->size[CHANNELS], last = m->size[LEVELS] - 1;
    Unet u = { .m = m, .layers = layers };
    QnShape packed = QN_SHAPE(in->batch, 4, in->height / 8, in->width / 8);
    QnValue *x = qn_input(g, "x", net->dtype, &packed);
    u.words = qn_input(g, "words", net->dtype, &QN_SHAPE(in->batch, WORDS, m->size[CONTEXT]));
    QnValue *waves = qn_input(g, "time", net->dtype, &QN_SHAPE(in->batch, c));
    u.time = embed(net, "time", waves, EMBEDDED * c);
    if (m->size[KNOWN]) {
        QnShape known = QN_SHAPE(in->batch, m->size[KNOWN]);
        QnValue *more = embed(net, "known", qn_input(g, "known", net->dtype, &known), EMBEDDED * c);
        u.time = qn_add(g, u.time, more);
    }
    x = down(net, conv(net, "in", x, c, 3, 1), &u);
    qn_net_push(net, "middle");
    x = residual(net, "block1", x, level_channels(m, last), &u);
    x = transformer(net, x, QN_MAX(depth_of(&u, last), 1), &u);
    x = residual(net, "block2", x, level_channels(m, last), &u);
    qn_net_pop(net);
    x = qn_silu(g, qn_nn_group_norm(net, "norm", up(net, x, &u), 32));
    x = conv(net, "out", x, 4, 3, 1);
    if (!in->train)
        return x;
    QnValue *noise = qn_input(g, "y", net->dtype, &packed);
    return qn_mean(g, qn_square(g, qn_sub(g, x, noise)), QN_INTS(0, 1, 2, 3), false);
}

static const QnFamily sd = {
    .name = "latent-diffusion", .image = 512, .batch = 16, .step = step, .adam = true
};
/* of three levels, of which the last has as many layers as are equal */
static const QnFamily xl = { .name = "latent-diffusion",
                             .image = 1024,
                             .batch = 8,
                             .step = step,
                             .layers = DEPTH + 3,
                             .adam = true };

static const QnModel models[] = {
    { "stable_diffusion_v2",
      &sd,
      { 320, 4, 1, 1, 1, 0, 1024 },
      865.9,
      "released weights of the U-Net" },
    { "sdxl",
      &xl,
      { 320, 3, 0, 2, 10, 0, 2048, 2816 },
      2567.5,
      "released weights of the U-Net; Podell et al. 2023: 2.6 B" },
};

const QnModelList qn_models_diffusion = { models, QN_COUNT(models) };

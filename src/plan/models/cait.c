/* Transformers that add the class token late: CaiT (Touvron et al. 2021), whose heads talk to each
 * other, and XCiT (El-Nouby et al. 2021), whose attention is between channels. size: layers, width,
 * heads, patch. */
#include "plan/models/blocks.h"

/* The first token looks at all of x (N,T,C): (N,1,C). */
static QnValue *class_attention(QnNet *net, QnValue *x, int64_t heads)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, 2);
    QnValue *first = qn_slice_axis(g, x, 1, 0, 1);
    qn_net_push(net, "attn");
    QnValue *q = qn_block_split_heads(net, qn_nn_linear(net, "q", first, c, true), heads);
    QnValue *k = qn_block_split_heads(net, qn_nn_linear(net, "k", x, c, true), heads);
    QnValue *v = qn_block_split_heads(net, qn_nn_linear(net, "v", x, c, true), heads);
    x = qn_block_join_heads(net, qn_attention(g, q, k, v, NULL, false, 0));
    x = qn_nn_linear(net, "proj", x, c, true);
    qn_net_pop(net);
    return x;
}

/* x + gamma * y */
static QnValue *add_scaled(QnNet *net, const char *gamma, QnValue *x, QnValue *y)
{
    return qn_add(net->g, x, qn_block_scale(net, gamma, y));
}

static QnValue *class_token(QnNet *net, QnValue *x)
{
    QnValue *t = qn_block_table(net, "cls_token", &QN_SHAPE(1, 1, qn_block_dim(x, 2)));
    return qn_expand(net->g, t, &QN_SHAPE(qn_block_dim(x, 0), 1, qn_block_dim(x, 2)));
}

/* ---- CaiT ---- */

/* Scores (N,H,T,S) of heads mixed by a linear layer. */
static QnValue *talk(QnNet *net, const char *name, QnValue *x, int64_t heads)
{
    QnGraph *g = net->g;
    x = qn_nn_linear(net, name, qn_transpose(g, x, (QnInts){ 4, { 0, 2, 3, 1 } }), heads, true);
    return qn_transpose(g, x, (QnInts){ 4, { 0, 3, 1, 2 } });
}

static QnValue *talking_attention(QnNet *net, QnValue *x, int64_t heads)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, 2);
    QnValue *part[3];
    qn_net_push(net, "attn");
    qn_split(g, qn_nn_linear(net, "qkv", x, 3 * c, true), 2, 3, part);
    for (int i = 0; i < 3; i++)
        part[i] = qn_block_split_heads(net, part[i], heads);
    QnValue *a = qn_matmul(g, qn_mul_scalar(g, part[0], 0.125), part[1], NULL, false, true);
    a = talk(net, "proj_l", a, heads);
    a = talk(net, "proj_w", qn_softmax(g, a, -1), heads);
    x = qn_block_join_heads(net, qn_matmul(g, a, part[2], NULL, false, false));
    x = qn_nn_linear(net, "proj", x, c, true);
    qn_net_pop(net);
    return x;
}

static QnValue *cait(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t c = m->size[1], heads = m->size[2];
    layers = layers ? layers : m->size[0];
    x = qn_block_positions(net, qn_block_patches(net, "patch_embed", x, c, m->size[3]), 0);
    if (qn_value_is_poison(x))
        return x;
    for (int64_t i = 0; i < layers; i++) {
        qn_block_push(net, "blocks", i);
        QnValue *y = qn_nn_layer_norm(net, "norm1", x, true);
        x = add_scaled(net, "gamma_1", x, talking_attention(net, y, heads));
        y = qn_block_mlp(net, "mlp", qn_nn_layer_norm(net, "norm2", x, true), 4 * c, c,
                         QN_ACT_GELU);
        x = add_scaled(net, "gamma_2", x, y);
        qn_net_pop(net);
    }
    QnValue *own = class_token(net, x);
    for (int i = 0; i < 2; i++) {
        qn_block_push(net, "blocks_token_only", i);
        QnValue *y = qn_concat(g, (QnValue *[]){ own, x }, 2, 1);
        y = class_attention(net, qn_nn_layer_norm(net, "norm1", y, true), heads);
        own = add_scaled(net, "gamma_1", own, y);
        y = qn_nn_layer_norm(net, "norm2", own, true);
        y = qn_block_mlp(net, "mlp", y, 4 * c, c, QN_ACT_GELU);
        own = add_scaled(net, "gamma_2", own, y);
        qn_net_pop(net);
    }
    x = qn_concat(g, (QnValue *[]){ own, x }, 2, 1);
    return qn_block_token_classify(net, "head", qn_nn_layer_norm(net, "norm", x, true), false);
}

/* ---- XCiT ---- */

/* Two depthwise convolutions over the image of h rows of tokens. */
static QnValue *local(QnNet *net, QnValue *x, int64_t h)
{
    int64_t c = qn_block_dim(x, 2);
    QnConvSpec deep = { .out = c, .kernel = 3, .pad = 1, .groups = c, .bias = true };
    qn_net_push(net, "local_mp");
    x = qn_nn_conv(net, "conv1", qn_block_image(net, x, h), &deep);
    x = qn_nn_batch_norm(net, "bn", qn_gelu(net->g, x));
    x = qn_nn_conv(net, "conv2", x, &deep);
    qn_net_pop(net);
    return qn_block_tokens(net, x);
}

static QnValue *cross_layer(QnNet *net, QnValue *x, int64_t heads, int64_t h)
{
    int64_t c = qn_block_dim(x, 2);
    QnValue *y = qn_nn_layer_norm(net, "norm1", x, true);
    x = add_scaled(net, "gamma1", x, qn_block_cross_covariance(net, "attn", y, heads));
    y = local(net, qn_nn_layer_norm(net, "norm3", x, true), h);
    x = add_scaled(net, "gamma3", x, y);
    y = qn_nn_layer_norm(net, "norm2", x, true);
    return add_scaled(net, "gamma2", x, qn_block_mlp(net, "mlp", y, 4 * c, c, QN_ACT_GELU));
}

/* Only the class token is computed, the others pass. */
static QnValue *class_layer(QnNet *net, QnValue *x, int64_t heads)
{
    QnGraph *g = net->g;
    int64_t t = qn_block_dim(x, 1), c = qn_block_dim(x, 2);
    QnValue *y = qn_nn_layer_norm(net, "norm1", x, true);
    QnValue *own = class_attention(net, y, heads);
    y = qn_concat(g, (QnValue *[]){ own, qn_slice_axis(g, y, 1, 1, t) }, 2, 1);
    x = qn_nn_layer_norm(net, "norm2", add_scaled(net, "gamma1", x, y), true);
    own = qn_block_mlp(net, "mlp", qn_slice_axis(g, x, 1, 0, 1), 4 * c, c, QN_ACT_GELU);
    own = qn_block_scale(net, "gamma2", own);
    y = qn_concat(g, (QnValue *[]){ own, qn_slice_axis(g, x, 1, 1, t) }, 2, 1);
    return qn_add(g, x, y);
}

static QnValue *xcit(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t c = m->size[1], heads = m->size[2];
    layers = layers ? layers : m->size[0];
    for (int i = 0; i < 4; i++) { /* patches of 16 by four strides of 2 */
        QnConvNorm s = {
            .out = c >> (3 - i), .kernel = 3, .stride = 2, .act = i < 3 ? QN_ACT_GELU : QN_ACT_NONE
        };
        qn_block_push(net, "patch_embed", i);
        x = qn_block_conv(net, "c", x, &s);
        qn_net_pop(net);
    }
    int64_t h = qn_block_dim(x, 2);
    x = qn_block_tokens(net, qn_add(g, x, qn_block_sine_places(net, "pos_embed", x)));
    if (qn_value_is_poison(x))
        return x;
    for (int64_t i = 0; i < layers; i++) {
        qn_block_push(net, "blocks", i);
        x = cross_layer(net, x, heads, h);
        qn_net_pop(net);
    }
    x = qn_concat(g, (QnValue *[]){ class_token(net, x), x }, 2, 1);
    for (int i = 0; i < 2; i++) {
        qn_block_push(net, "cls_attn_blocks", i);
        x = class_layer(net, x, heads);
        qn_net_pop(net);
    }
    return qn_block_token_classify(net, "head", qn_nn_layer_norm(net, "norm", x, true), false);
}

static const QnFamily caits = {
    .name = "cait", .image = 224, .build = cait, .layers = 1, .adam = true
};
static const QnFamily xcits = {
    .name = "xcit", .image = 224, .build = xcit, .layers = 1, .adam = true
};

#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "cait_s24_224", &caits, { 24, 384, 8, 16 }, 46.916, TIMM, 9.3273 },
    { "xcit_small_12_p16_224", &xcits, { 12, 384, 8, 16 }, 26.253, TIMM, 4.7958 },
};

const QnModelList qn_models_cait = { models, QN_COUNT(models) };

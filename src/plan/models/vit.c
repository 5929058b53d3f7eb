/* Vision transformers (Dosovitskiy et al. 2021), as DeiT (Touvron et al. 2021), DeiT III (2022) and
 * SigLIP (Zhai et al. 2023) have them, and MLP-Mixer (Tolstikhin et al. 2021). size: layers, width,
 * heads, patch, hidden width of the feed-forward nets (0: 4 times width), flags. */
#include "plan/models/blocks.h"

enum {
    LAYER_SCALE = 1,    /* each half of a layer has trained factors */
    NO_CLASS_PLACE = 2, /* the class token has no position */
    ATTENTION_POOL = 4, /* no class token: a trained query looks at all; and no scores of classes */
};

/* ---- transformers ---- */

static QnValue *half(QnNet *net, const char *scale, QnValue *x, QnValue *y, int64_t flags)
{
    return qn_add(net->g, x, flags & LAYER_SCALE ? qn_block_scale(net, scale, y) : y);
}

static QnValue *layer(QnNet *net, int64_t number, const QnModel *m, QnValue *x)
{
    int64_t width = m->size[1], hidden = m->size[4] ? m->size[4] : 4 * width;
    QnSelf self = { .heads = m->size[2] };
    qn_block_push(net, "blocks", number);
    QnValue *y = qn_nn_layer_norm(net, "norm1", x, true);
    x = half(net, "ls1", x, qn_block_self_attention(net, "attn", y, &self), m->size[5]);
    y = qn_nn_layer_norm(net, "norm2", x, true);
    x = half(net, "ls2", x, qn_block_mlp(net, "mlp", y, hidden, width, QN_ACT_GELU), m->size[5]);
    qn_net_pop(net);
    return x;
}

/* One trained query over all tokens, then a feed-forward net. */
static QnValue *attention_pool(QnNet *net, const QnModel *m, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), c = m->size[1], heads = m->size[2];
    QnValue *kv[2];
    qn_net_push(net, "attn_pool");
    QnValue *q =
        qn_expand(g, qn_block_table(net, "latent", &QN_SHAPE(1, 1, c)), &QN_SHAPE(n, 1, c));
    q = qn_block_split_heads(net, qn_nn_linear(net, "q", q, c, true), heads);
    qn_split(g, qn_nn_linear(net, "kv", x, 2 * c, true), 2, 2, kv);
    for (int i = 0; i < 2; i++)
        kv[i] = qn_block_split_heads(net, kv[i], heads);
    x = qn_block_join_heads(net, qn_attention(g, q, kv[0], kv[1], NULL, false, 0));
    x = qn_nn_linear(net, "proj", x, c, true);
    QnValue *y = qn_nn_layer_norm(net, "norm", x, true);
    x = qn_add(g, x, qn_block_mlp(net, "mlp", y, m->size[4], c, QN_ACT_GELU));
    qn_net_pop(net);
    return qn_reshape(g, x, &QN_SHAPE(n, c));
}

static QnValue *vit(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    int64_t flags = m->size[5], own = flags & ATTENTION_POOL ? 0 : 1;
    layers = layers ? layers : m->size[0];
    x = qn_block_patches(net, "patch_embed", x, m->size[1], m->size[3]);
    x = qn_block_prepend(net, "cls_token", x, own);
    x = qn_block_positions(net, x, flags & NO_CLASS_PLACE ? own : 0);
    if (qn_value_is_poison(x))
        return x;
    for (int64_t i = 0; i < layers; i++)
        x = layer(net, i, m, x);
    x = qn_nn_layer_norm(net, "norm", x, true);
    return flags & ATTENTION_POOL ? attention_pool(net, m, x)
                                  : qn_block_token_classify(net, "head", x, false);
}

/* ---- mixers: feed-forward nets over tokens and over channels in turn. size: layers, width, hidden
 * widths of the two, patch ---- */

static QnValue *mixer(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    layers = layers ? layers : m->size[0];
    x = qn_block_patches(net, "stem", x, m->size[1], m->size[4]);
    if (qn_value_is_poison(x))
        return x;
    int64_t tokens = qn_block_dim(x, 1);
    for (int64_t i = 0; i < layers; i++) {
        qn_block_push(net, "blocks", i);
        QnValue *y = qn_swap_axes(g, qn_nn_layer_norm(net, "norm1", x, true), 1, 2);
        y = qn_block_mlp(net, "mlp_tokens", y, m->size[2], tokens, QN_ACT_GELU);
        x = qn_add(g, x, qn_swap_axes(g, y, 1, 2));
        y = qn_nn_layer_norm(net, "norm2", x, true);
        x = qn_add(g, x, qn_block_mlp(net, "mlp_channels", y, m->size[3], m->size[1], QN_ACT_GELU));
        qn_net_pop(net);
    }
    return qn_block_token_classify(net, "head", qn_nn_layer_norm(net, "norm", x, true), true);
}

static const QnFamily vits = {
    .name = "vit", .image = 224, .build = vit, .layers = 1, .adam = true
};
static const QnFamily mixers = {
    .name = "mixer", .image = 224, .build = mixer, .layers = 1, .adam = true
};

#define TIMM  "timm 1.0; multiply-adds counted on its code"
#define TV    "torchvision 0.19"
#define TINY  12, 192, 3, 16
#define SMALL 12, 384, 6, 16
#define BASE  12, 768, 12, 16
#define LARGE 24, 1024, 16, 16
#define DEIT3 0, LAYER_SCALE | NO_CLASS_PLACE

static const QnModel models[] = {
    { "vit_tiny_patch16_224", &vits, { TINY }, 5.717, TIMM, 1.258 },
    { "vit_small_patch16_224", &vits, { SMALL }, 22.051, TIMM, 4.599 },
    { "vit_base_patch16_224", &vits, { BASE }, 86.568, TV, 17.564 },
    { "vit_base_16(n/s)", &vits, { BASE }, 86.568, TV, 17.564 },
    { "vit_base_patch16_384", &vits, { BASE }, 86.859, TV, 55.484, 384 },
    { "vit_base_patch32_224", &vits, { 12, 768, 12, 32 }, 88.224, TV, 4.409 },
    { "vit_large_patch16_224", &vits, { LARGE }, 304.327, TV, 61.555 },
    { "vit_huge_patch14_224", &vits, { 32, 1280, 16, 14 }, 632.046, TV, 167.295 },
    { "vit_so400m_patch14_siglip_224",
      &vits,
      { 27, 1152, 16, 14, 4304, ATTENTION_POOL },
      427.681,
      TIMM,
      110.1769 },
    { "deit_tiny_patch16_224", &vits, { TINY }, 5.717, TIMM, 1.258 },
    { "deit_small_patch16_224", &vits, { SMALL }, 22.051, TIMM, 4.599 },
    { "deit_base_patch16_224", &vits, { BASE }, 86.568, TIMM, 17.564 },
    { "deit3_small_patch16_224", &vits, { SMALL, DEIT3 }, 22.059, TIMM, 4.5989 },
    { "deit3_base_patch16_224", &vits, { BASE, DEIT3 }, 86.585, TIMM, 17.5638 },
    { "mixer_b16_224", &mixers, { 12, 768, 384, 3072, 16 }, 59.880, TIMM, 12.6018 },
};

const QnModelList qn_models_vit = { models, QN_COUNT(models) };

/* Transformers of shifted windows: Swin (Liu et al. 2021) and Swin v2 (2022). Images that the
 * windows do not fill are padded, as the published code does. size: width of the first stage,
 * layers and heads of the four stages, side of the windows (1 + 4 + 4 + 1). */
#include "plan/models/blocks.h"

typedef struct Window {
    int64_t side, shift; /* of the windows; by how much they are shifted */
    int64_t heads;
    bool second; /* version 2 */
} Window;

/* ---- biases and masks ---- */

/* Version 2 computes the table of biases from the differences of places. */
static QnValue *computed_bias(QnNet *net, int64_t side, int64_t heads)
{
    QnGraph *g = net->g;
    int64_t n = side * side, rows = (2 * side - 1) * (2 * side - 1);
    qn_net_push(net, "cpb_mlp");
    QnValue *t = qn_net_buffer(net, "relative_coords_table", &QN_SHAPE(rows, 2), 1);
    t = qn_relu(g, qn_nn_linear(net, "0", t, 512, true));
    t = qn_nn_linear(net, "2", t, heads, false);
    qn_net_pop(net);
    t = qn_embedding(g, t, qn_block_differences(net, side, side));
    t = qn_reshape(g, qn_transpose(g, t, (QnInts){ 3, { 2, 0, 1 } }), &QN_SHAPE(1, heads, n, n));
    return qn_mul_scalar(g, qn_sigmoid(g, t), 16);
}

/* What is added to the scores: (1,heads,T,T); for shifted windows (1,windows*heads,T,T), with a
 * mask that keeps places apart that are not neighbours. */
static QnValue *added(QnNet *net, const Window *w, int64_t windows)
{
    QnGraph *g = net->g;
    int64_t n = w->side * w->side;
    QnValue *bias = w->second ? computed_bias(net, w->side, w->heads)
                              : qn_block_relative_bias(net, "relative_position_bias_table", w->side,
                                                       w->side, w->heads);
    if (!w->shift)
        return bias;
    QnValue *mask = qn_net_buffer(net, "attn_mask", &QN_SHAPE(windows, 1, n, n), 0);
    return qn_reshape(g, qn_add(g, mask, bias), &QN_SHAPE(1, windows * w->heads, n, n));
}

/* ---- attention in windows (N*windows,T,C) ---- */

/* Vectors of length 1. */
static QnValue *unit(QnNet *net, QnValue *x)
{
    return qn_lp_normalize(net->g, x, -1, 2);
}

static QnValue *window_attention(QnNet *net, const Window *w, QnValue *x, int64_t windows)
{
    QnGraph *g = net->g;
    int64_t width = qn_block_dim(x, 2);
    QnValue *part[3];
    QnShape to = QN_SHAPE(qn_block_dim(x, 0) / windows, windows * w->heads, w->side * w->side,
                          width / w->heads);
    qn_net_push(net, "attn");
    qn_split(g, qn_nn_linear(net, "qkv", x, 3 * width, true), 2, 3, part);
    for (int i = 0; i < 3; i++)
        part[i] = qn_block_split_heads(net, part[i], w->heads);
    QnShape from = part[0]->type.shape;
    if (w->second) {
        QnInitSpec ones = { QN_INIT_KIND_ONES, 0, 0, 0 };
        QnValue *scale = qn_net_param(net, "logit_scale", &QN_SHAPE(w->heads, 1, 1), &ones, false);
        part[0] = qn_mul(g, unit(net, part[0]), qn_exp(g, scale));
        part[1] = unit(net, part[1]);
    }
    for (int i = 0; w->shift && i < 3; i++)
        part[i] = qn_reshape(g, part[i], &to);
    QnValue *mask = added(net, w, windows), *y;
    if (w->second) /* whose scores are of unit vectors: no kernel of the frameworks has that */
        y = qn_block_plain_attention(net, part, mask, 1);
    else
        y = qn_attention(g, part[0], part[1], part[2], mask, false, 0);
    if (w->shift && !qn_value_is_poison(y))
        y = qn_reshape(g, y, &from);
    y = qn_nn_linear(net, "proj", qn_block_join_heads(net, y), width, true);
    qn_net_pop(net);
    return y;
}

static QnValue *shifted(QnNet *net, QnValue *x, int64_t by)
{
    return by ? qn_roll(net->g, x, (QnInts){ 2, { 1, 2 } }, (QnInts){ 2, { by, by } }) : x;
}

/* x (N,H,W,C) */
static QnValue *attend(QnNet *net, const Window *w, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t h = qn_block_dim(x, 1), wide = qn_block_dim(x, 2);
    x = qn_block_pad_to(net, shifted(net, x, -w->shift), w->side);
    if (qn_value_is_poison(x))
        return x;
    int64_t ph = qn_block_dim(x, 1), pw = qn_block_dim(x, 2);
    x = qn_block_windows(net, x, w->side);
    x = window_attention(net, w, x, ph / w->side * (pw / w->side));
    x = qn_block_unwindow(net, x, w->side, ph, pw);
    if (ph != h)
        x = qn_slice_axis(g, x, 1, 0, h);
    if (pw != wide)
        x = qn_slice_axis(g, x, 2, 0, wide);
    return shifted(net, x, w->shift);
}

/* ---- layers ---- */

/* Version 2 norms what is added, version 1 what goes in. */
static QnValue *layer(QnNet *net, const Window *w, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t width = qn_block_dim(x, 3);
    if (w->second) {
        x = qn_add(g, x, qn_nn_layer_norm(net, "norm1", attend(net, w, x), true));
        QnValue *y = qn_block_mlp(net, "mlp", x, 4 * width, width, QN_ACT_GELU);
        return qn_add(g, x, qn_nn_layer_norm(net, "norm2", y, true));
    }
    x = qn_add(g, x, attend(net, w, qn_nn_layer_norm(net, "norm1", x, true)));
    QnValue *y = qn_nn_layer_norm(net, "norm2", x, true);
    return qn_add(g, x, qn_block_mlp(net, "mlp", y, 4 * width, width, QN_ACT_GELU));
}

/* Four neighbours become one place of twice the width. */
static QnValue *merge(QnNet *net, QnValue *x, bool second)
{
    QnGraph *g = net->g;
    x = qn_block_pad_to(net, x, 2);
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    int64_t n = s->dim[0], h = s->dim[1] / 2, w = s->dim[2] / 2, c = s->dim[3];
    x = qn_reshape(g, x, &QN_SHAPE(n, h, 2, w, 2, c));
    x = qn_transpose(g, x, (QnInts){ 6, { 0, 1, 3, 4, 2, 5 } });
    x = qn_reshape(g, x, &QN_SHAPE(n, h, w, 4 * c));
    if (second)
        return qn_nn_layer_norm(net, "norm", qn_nn_linear(net, "reduction", x, 2 * c, false), true);
    return qn_nn_linear(net, "reduction", qn_nn_layer_norm(net, "norm", x, true), 2 * c, false);
}

static QnValue *swin(QnNet *net, const QnModel *m, QnValue *x, bool second)
{
    QnGraph *g = net->g;
    const int64_t *depth = m->size + 1, *heads = m->size + 5;
    QnConvSpec patch = { .out = m->size[0], .kernel = 4, .stride = 4, .bias = true };
    x = qn_block_channels_last(net, qn_nn_conv(net, "patch_embed", x, &patch));
    x = qn_nn_layer_norm(net, "patch_norm", x, true);
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "layers", i);
        if (i)
            x = merge(net, x, second);
        /* what one window holds is not shifted */
        int64_t least = QN_MIN(qn_block_dim(x, 1), qn_block_dim(x, 2));
        bool one = least <= m->size[9];
        Window w = { .side = one ? least : m->size[9], .heads = heads[i], .second = second };
        for (int64_t k = 0; k < depth[i]; k++) {
            w.shift = one || k % 2 == 0 ? 0 : w.side / 2;
            qn_block_push(net, "blocks", k);
            x = layer(net, &w, x);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    x = qn_nn_layer_norm(net, "norm", x, true);
    x = qn_mean(g, x, (QnInts){ 2, { 1, 2 } }, false);
    return qn_nn_linear(net, "head", x, 1000, true);
}

static QnValue *swin_v1(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    (void)layers;
    return swin(net, m, x, false);
}

static QnValue *swin_v2(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    (void)layers;
    return swin(net, m, x, true);
}

static const QnFamily v1 = { .name = "swin", .image = 224, .build = swin_v1, .adam = true };
static const QnFamily v2 = { .name = "swinv2", .image = 256, .build = swin_v2, .adam = true };

#define TV   "torchvision 0.19"
#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "swin_tiny_patch4_window7_224", &v1, { 96, 2, 2, 6, 2, 3, 6, 12, 24, 7 }, 28.288, TV, 4.491 },
    { "swin_small_patch4_window7_224",
      &v1,
      { 96, 2, 2, 18, 2, 3, 6, 12, 24, 7 },
      49.606,
      TV,
      8.741 },
    { "swin_base_patch4_window7_224",
      &v1,
      { 128, 2, 2, 18, 2, 4, 8, 16, 32, 7 },
      87.768,
      TV,
      15.431 },
    { "swinv2_tiny_window8_256", &v2, { 96, 2, 2, 6, 2, 3, 6, 12, 24, 8 }, 28.347, TIMM, 5.9397 },
};

const QnModelList qn_models_swin = { models, QN_COUNT(models) };

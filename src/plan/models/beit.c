/* Vision transformers whose attention knows places: BEiT (Bao et al. 2022) by a bias for each
 * difference of places, EVA-02 (Fang et al. 2023) by rotated queries and keys, with gated
 * feed-forward nets. size: layers, width, heads, patch, hidden width. */
#include "plan/models/blocks.h"

/* Three projections of which that to the keys has no bias. */
static void project(QnNet *net, QnValue *x, int64_t heads, QnValue *part[3])
{
    static const char *const names[] = { "q_proj", "k_proj", "v_proj" };
    for (int i = 0; i < 3; i++) {
        part[i] = qn_nn_linear(net, names[i], x, qn_block_dim(x, 2), i != 1);
        part[i] = qn_block_split_heads(net, part[i], heads);
    }
}

static QnValue *attend(QnNet *net, QnValue *part[3], QnValue *mask)
{
    QnValue *y = qn_attention(net->g, part[0], part[1], part[2], mask, false, 0);
    y = qn_block_join_heads(net, y);
    return qn_nn_linear(net, "proj", y, qn_block_dim(y, 2), true);
}

/* ---- BEiT ---- */

/* Biases of places, and three more values that the class token gives and gets. */
static QnValue *place_bias(QnNet *net, int64_t h, int64_t w, int64_t heads)
{
    QnGraph *g = net->g;
    int64_t n = h * w + 1, span = 2 * w - 1, rows = (2 * h - 1) * span + 3;
    int64_t *ids = qn_alloc_array((size_t)(n * n), sizeof *ids);
    if (!ids)
        return qn_graph_poison(g);
    for (int64_t i = 0; i < n * n; i++) {
        int64_t a = i / n - 1, b = i % n - 1;
        if (a < 0 || b < 0)
            ids[i] = rows - (a < 0 && b < 0 ? 1 : a < 0 ? 3 : 2);
        else
            ids[i] = (a / w - b / w + h - 1) * span + a % w - b % w + w - 1;
    }
    QnValue *index = qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(n, n), ids);
    qn_free(ids);
    QnValue *table = qn_block_table(net, "relative_position_bias_table", &QN_SHAPE(rows, heads));
    QnValue *bias = qn_transpose(g, qn_embedding(g, table, index), (QnInts){ 3, { 2, 0, 1 } });
    return qn_reshape(g, bias, &QN_SHAPE(1, heads, n, n));
}

static QnValue *beit(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t h = qn_block_dim(x, 2) / m->size[3], w = qn_block_dim(x, 3) / m->size[3];
    int64_t width = m->size[1];
    layers = layers ? layers : m->size[0];
    x = qn_block_patches(net, "patch_embed", x, width, m->size[3]);
    x = qn_block_prepend(net, "cls_token", x, 1);
    if (qn_value_is_poison(x))
        return x;
    for (int64_t i = 0; i < layers; i++) {
        QnValue *part[3];
        qn_block_push(net, "blocks", i);
        project(net, qn_nn_layer_norm(net, "norm1", x, true), m->size[2], part);
        QnValue *y = attend(net, part, place_bias(net, h, w, m->size[2]));
        x = qn_add(g, x, qn_block_scale(net, "gamma_1", y));
        y = qn_nn_layer_norm(net, "norm2", x, true);
        y = qn_block_mlp(net, "mlp", y, m->size[4], width, QN_ACT_GELU);
        x = qn_add(g, x, qn_block_scale(net, "gamma_2", y));
        qn_net_pop(net);
    }
    x = qn_slice_axis(g, x, 1, 1, qn_block_dim(x, 1)); /* the mean is over the patches */
    x = qn_nn_layer_norm(net, "fc_norm", qn_mean(g, x, (QnInts){ 1, { 1 } }, false), true);
    return qn_nn_linear(net, "head", x, 1000, true);
}

/* ---- EVA-02 ---- */

/* Halves of features turned by the angles of their place: x cos + (-second, first) sin. */
static QnValue *rotate(QnNet *net, QnValue *x, QnValue *cosines, QnValue *sines)
{
    QnGraph *g = net->g;
    QnValue *half[2];
    qn_split(g, x, 3, 2, half);
    QnValue *turned = qn_concat(g, (QnValue *[]){ qn_neg(g, half[1]), half[0] }, 2, 3);
    return qn_add(g, qn_mul(g, x, cosines), qn_mul(g, turned, sines));
}

static QnValue *gated(QnNet *net, QnValue *x, int64_t hidden)
{
    QnGraph *g = net->g;
    int64_t width = qn_block_dim(x, 2);
    QnValue *gate = qn_silu(g, qn_nn_linear(net, "fc1_g", x, hidden, true));
    x = qn_mul(g, gate, qn_nn_linear(net, "fc1_x", x, hidden, true));
    return qn_nn_linear(net, "fc2", qn_nn_layer_norm(net, "norm", x, true), width, true);
}

static QnValue *eva(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    layers = layers ? layers : m->size[0];
    x = qn_block_patches(net, "patch_embed", x, m->size[1], m->size[3]);
    x = qn_block_positions(net, qn_block_prepend(net, "cls_token", x, 1), 0);
    if (qn_value_is_poison(x))
        return x;
    /* the class token's angle is 0 */
    QnShape angles = QN_SHAPE(1, 1, qn_block_dim(x, 1), m->size[1] / m->size[2]);
    QnValue *cosines = qn_net_buffer(net, "rope_cos", &angles, 1);
    QnValue *sines = qn_net_buffer(net, "rope_sin", &angles, 0);
    for (int64_t i = 0; i < layers; i++) {
        QnValue *part[3];
        qn_block_push(net, "blocks", i);
        project(net, qn_nn_layer_norm(net, "norm1", x, true), m->size[2], part);
        for (int k = 0; k < 2; k++)
            part[k] = rotate(net, part[k], cosines, sines);
        x = qn_add(g, x, attend(net, part, NULL));
        qn_net_push(net, "mlp");
        x = qn_add(g, x, gated(net, qn_nn_layer_norm(net, "norm2", x, true), m->size[4]));
        qn_net_pop(net);
        qn_net_pop(net);
    }
    x = qn_slice_axis(g, x, 1, 1, qn_block_dim(x, 1));
    return qn_nn_layer_norm(net, "fc_norm", qn_mean(g, x, (QnInts){ 1, { 1 } }, false), true);
}

static const QnFamily beits = {
    .name = "beit", .image = 224, .build = beit, .layers = 1, .adam = true
};
static const QnFamily evas = {
    .name = "eva02", .image = 224, .build = eva, .layers = 1, .adam = true
};

#define TIMM "timm 1.0; multiply-adds counted on its code"

/* EVA-02 of this name is a backbone: it has no scores of classes. */
static const QnModel models[] = {
    { "beit_base_patch16_224", &beits, { 12, 768, 12, 16, 3072 }, 86.531, TIMM, 17.5638 },
    { "eva02_base_patch14_224", &evas, { 12, 768, 12, 14, 2048 }, 85.759, TIMM, 23.1612 },
};

const QnModelList qn_models_beit = { models, QN_COUNT(models) };

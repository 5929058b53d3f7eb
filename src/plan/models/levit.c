/* LeViT (Graham et al. 2021): attention with batch norms over an image that shrinks twice. size:
 * widths of the three stages, their heads, layers of a stage, width of a key. */
#include "plan/models/blocks.h"

#include <math.h>

/* A linear layer without bias and a batch norm over all tokens. */
static QnValue *linear_norm(QnNet *net, const char *name, QnValue *x, int64_t out)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    int64_t n = qn_block_dim(x, 0), t = qn_block_dim(x, 1);
    qn_net_push(net, name);
    x = qn_reshape(g, qn_nn_linear(net, "linear", x, out, false), &QN_SHAPE(n * t, out));
    x = qn_reshape(g, qn_nn_batch_norm(net, "bn", x), &QN_SHAPE(n, t, out));
    qn_net_pop(net);
    return x;
}

/* A trained bias for each head and distance along the two axes; queries stand `stride` apart:
 * (1,heads,queries,keys). */
static QnValue *distance_bias(QnNet *net, int64_t side, int64_t stride, int64_t heads)
{
    QnGraph *g = net->g;
    int64_t few = (side + stride - 1) / stride, q = few * few, k = side * side;
    int64_t *ids = qn_alloc_array((size_t)(q * k), sizeof *ids);
    if (!ids)
        return qn_graph_poison(g);
    for (int64_t i = 0; i < q * k; i++) {
        int64_t a = i / k, b = i % k;
        int64_t dy = a / few * stride - b / side, dx = a % few * stride - b % side;
        ids[i] = (dy < 0 ? -dy : dy) * side + (dx < 0 ? -dx : dx);
    }
    QnValue *index = qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(q, k), ids);
    qn_free(ids);
    QnValue *table = qn_block_table(net, "attention_biases", &QN_SHAPE(k, heads));
    QnValue *bias = qn_transpose(g, qn_embedding(g, table, index), (QnInts){ 3, { 2, 0, 1 } });
    return qn_reshape(g, bias, &QN_SHAPE(1, heads, q, k));
}

/* The last part of each head of x (N,T,heads*(sum of widths)), in parts. */
static void heads_of(QnNet *net, QnValue *x, int64_t heads, const QnDims *widths, QnValue **part)
{
    x = qn_block_split_heads(net, x, heads);
    QnNode *n = qn_split_sizes(net->g, x, 3, widths);
    for (int i = 0; i < widths->n; i++)
        part[i] = qn_node_out(net->g, n, i);
}

static QnValue *attend(QnNet *net, QnValue *x, int64_t side, int64_t heads, int64_t key)
{
    int64_t width = qn_block_dim(x, 2), value = 2 * key;
    QnValue *part[3];
    qn_net_push(net, "attn");
    x = linear_norm(net, "qkv", x, heads * (2 * key + value));
    heads_of(net, x, heads, &(QnDims){ 3, { key, key, value } }, part);
    x = qn_attention(net->g, part[0], part[1], part[2], distance_bias(net, side, 1, heads), false,
                     0);
    x = qn_hardswish(net->g, qn_block_join_heads(net, x));
    x = linear_norm(net, "proj", x, width);
    qn_net_pop(net);
    return x;
}

/* Every second row and column of the image asks. */
static QnValue *shrink(QnNet *net, QnValue *x, int64_t side, int64_t key, int64_t out)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), c = qn_block_dim(x, 2), heads = c / key, value = 4 * key;
    int64_t few = (side + 1) / 2;
    QnValue *part[3];
    QnSliceAttr every = { .axes = { 2, { 1, 2 } },
                          .starts = { 2, { 0, 0 } },
                          .ends = { 2, { side, side } },
                          .steps = { 2, { 2, 2 } } };
    qn_net_push(net, "attn_downsample");
    QnValue *q = qn_slice(g, qn_reshape(g, x, &QN_SHAPE(n, side, side, c)), &every);
    q = linear_norm(net, "q", qn_reshape(g, q, &QN_SHAPE(n, few * few, c)), heads * key);
    part[0] = qn_block_split_heads(net, q, heads);
    x = linear_norm(net, "kv", x, heads * (key + value));
    heads_of(net, x, heads, &(QnDims){ 2, { key, value } }, part + 1);
    x = qn_block_plain_attention(net, part, distance_bias(net, side, 2, heads),
                                 1 / sqrt((double)key));
    x = linear_norm(net, "proj", qn_hardswish(g, qn_block_join_heads(net, x)), out);
    qn_net_pop(net);
    return x;
}

static QnValue *feed(QnNet *net, QnValue *x)
{
    int64_t width = qn_block_dim(x, 2);
    QnValue *y = qn_hardswish(net->g, linear_norm(net, "ln1", x, 2 * width));
    return qn_add(net->g, x, linear_norm(net, "ln2", y, width));
}

static QnValue *head(QnNet *net, const char *name, QnValue *x)
{
    qn_net_push(net, name);
    x = qn_nn_linear(net, "linear", qn_nn_batch_norm(net, "bn", x), 1000, true);
    qn_net_pop(net);
    return x;
}

static QnValue *build(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    const int64_t *width = m->size, *heads = m->size + 3;
    (void)layers;
    for (int i = 0; i < 4; i++) {
        QnConvNorm s = { .out = width[0] >> (3 - i),
                         .kernel = 3,
                         .stride = 2,
                         .act = i < 3 ? QN_ACT_HARDSWISH : QN_ACT_NONE };
        qn_block_push(net, "stem", i);
        x = qn_block_conv(net, "c", x, &s);
        qn_net_pop(net);
    }
    int64_t side = qn_block_dim(x, 2);
    if (!qn_value_is_poison(x) && qn_block_dim(x, 3) != side) {
        qn_fail(QN_ESHAPE, "LeViT takes square images");
        return qn_graph_poison(g);
    }
    x = qn_block_tokens(net, x);
    for (int i = 0; i < 3 && !qn_value_is_poison(x); i++) {
        qn_block_push(net, "stages", i);
        if (i) {
            x = feed(net, shrink(net, x, side, m->size[7], width[i]));
            side = (side + 1) / 2;
        }
        for (int64_t k = 0; k < m->size[6]; k++) {
            qn_block_push(net, "", k);
            x = qn_add(g, x, attend(net, x, side, heads[i], m->size[7]));
            x = feed(net, x);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    x = qn_mean(g, x, (QnInts){ 1, { 1 } }, false);
    /* the second head learns from a teacher; what is predicted is the mean of both */
    QnValue *scores = qn_add(g, head(net, "head", x), head(net, "head_dist", x));
    return qn_mul_scalar(g, scores, 0.5);
}

static const QnFamily family = { .name = "levit", .image = 224, .build = build, .adam = true };

static const QnModel models[] = {
    { "levit_256",
      &family,
      { 256, 384, 512, 4, 6, 8, 4, 32 },
      18.894,
      "timm 1.0; multiply-adds counted on its code",
      1.1273 },
};

const QnModelList qn_models_levit = { models, QN_COUNT(models) };

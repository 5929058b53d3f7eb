/* Decoders whose keys and values are drawn from one short vector a token (DeepSeek-V2: multi-head
 * latent attention), which is all that generation keeps; most with experts. */
#include "plan/models/text.h"

#include <math.h>

/* size: layers, width, heads, rank of the queries (0: not drawn from a short vector), of keys and
 * values, width of a head that is not turned, that is turned, of values; hidden width of a layer
 * without experts, how many such come first, experts, of a token, their hidden width, that of what
 * all tokens go through; words, whether scores are by their table */
enum {
    LAYERS,
    WIDTH,
    HEADS,
    QUERY_RANK,
    RANK,
    FIXED,
    TURNED,
    VALUE,
    HIDDEN,
    DENSE,
    EXPERTS,
    ACTIVE,
    EXPERT,
    SHARED,
    WORDS,
    TIED
};

static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };

typedef struct Layer {
    const QnModel *m;
    const QnStepInput *in; /* of generation, or NULL */
    QnAngles angles;
    int64_t batch, tokens;
} Layer;

static QnValue *linear(QnNet *net, const char *name, QnValue *x, int64_t out)
{
    return qn_nn_linear_init(net, name, x, out, false, &init);
}

/* Queries (B,T,H,fixed + turned). */
static QnValue *queries(QnNet *net, const Layer *l, QnValue *x)
{
    QnGraph *g = net->g;
    const int64_t *s = l->m->size;
    int64_t fixed = s[FIXED], turned = s[TURNED];
    if (s[QUERY_RANK])
        x = qn_nn_rms_norm(net, "q_norm", linear(net, "q_down", x, s[QUERY_RANK]));
    x = linear(net, "q", x, s[HEADS] * (fixed + turned));
    x = qn_reshape(g, x, &QN_SHAPE(l->batch, l->tokens, s[HEADS], fixed + turned));
    QnNode *parts = qn_split_sizes(g, x, 3, &(QnDims){ 2, { fixed, turned } });
    QnValue *both[] = { qn_node_out(g, parts, 0),
                        qn_text_rotate(g, qn_node_out(g, parts, 1), &l->angles) };
    return qn_concat(g, both, 2, 3);
}

/* The short vectors (B,S,1,rank + turned), with those of earlier tokens. */
static QnValue *latents(QnNet *net, const Layer *l, QnValue *x)
{
    QnGraph *g = net->g;
    const int64_t *s = l->m->size;
    int64_t width = s[RANK] + s[TURNED];
    x = qn_unsqueeze(g, linear(net, "kv_down", x, width), 2);
    QnNode *parts = qn_split_sizes(g, x, 3, &(QnDims){ 2, { s[RANK], s[TURNED] } });
    QnValue *both[] = { qn_nn_rms_norm(net, "kv_norm", qn_node_out(g, parts, 0)),
                        qn_text_rotate(g, qn_node_out(g, parts, 1), &l->angles) };
    x = qn_concat(g, both, 2, 3);
    if (l->in)
        qn_cache_put(net, "latents", x);
    if (!l->in || !l->in->context)
        return x;
    return qn_cache_keep(net, "latents", &QN_SHAPE(l->batch, l->in->context + l->tokens, 1, width));
}

/* Keys and values of all heads are drawn out, for prompts and training. */
static QnValue *attend_drawn(QnNet *net, const Layer *l, QnValue *q, QnValue *latent)
{
    QnGraph *g = net->g;
    const int64_t *s = l->m->size;
    int64_t heads = s[HEADS];
    QnNode *parts = qn_split_sizes(g, latent, 3, &(QnDims){ 2, { s[RANK], s[TURNED] } });
    QnValue *kv = linear(net, "kv_up", qn_squeeze(g, qn_node_out(g, parts, 0), 2),
                         heads * (s[FIXED] + s[VALUE]));
    kv = qn_reshape(g, kv, &QN_SHAPE(l->batch, l->tokens, heads, s[FIXED] + s[VALUE]));
    QnNode *two = qn_split_sizes(g, kv, 3, &(QnDims){ 2, { s[FIXED], s[VALUE] } });
    QnShape all = QN_SHAPE(l->batch, l->tokens, heads, s[TURNED]);
    QnValue *k[] = { qn_node_out(g, two, 0), qn_expand(g, qn_node_out(g, parts, 1), &all) };
    QnValue *y =
        qn_attention(g, qn_swap_axes(g, q, 1, 2), qn_swap_axes(g, qn_concat(g, k, 2, 3), 1, 2),
                     qn_swap_axes(g, qn_node_out(g, two, 1), 1, 2), NULL, true, 0);
    return qn_text_join_heads(g, y);
}

/* One more token: queries are taken to the short vectors instead, which are keys and values of one
 * head (the two halves of kv_up are taken into queries and results). */
static QnValue *attend_short(QnNet *net, const Layer *l, QnValue *q, QnValue *latent)
{
    QnGraph *g = net->g;
    const int64_t *s = l->m->size;
    int64_t heads = s[HEADS], rank = s[RANK];
    QnNode *parts =
        qn_split_sizes(g, qn_swap_axes(g, q, 1, 2), 3, &(QnDims){ 2, { s[FIXED], s[TURNED] } });
    QnValue *up = qn_net_param(net, "k_up", &QN_SHAPE(heads, s[FIXED], rank), &init, true);
    QnValue *down = qn_net_param(net, "v_up", &QN_SHAPE(heads, rank, s[VALUE]), &init, true);
    QnValue *both[] = { qn_matmul(g, qn_node_out(g, parts, 0), up, NULL, false, false),
                        qn_node_out(g, parts, 1) };
    QnValue *k = qn_swap_axes(g, latent, 1, 2); /* and values: they are read once */
    QnValue *y = qn_attention(g, qn_concat(g, both, 2, 3), k, k, NULL, true, 0);
    y = qn_matmul(g, qn_slice_axis(g, y, 3, 0, rank), down, NULL, false, false);
    return qn_text_join_heads(g, y);
}

static QnValue *feed(QnNet *net, const Layer *l, int64_t number, QnValue *x)
{
    const int64_t *s = l->m->size;
    if (!s[EXPERTS] || number < s[DENSE])
        return qn_text_gated(net, "mlp", x, s[HIDDEN], false);
    QnExpertSpec spec = { s[EXPERTS], s[ACTIVE], s[EXPERT], false };
    QnValue *y = qn_text_experts(net, "experts", x, &spec);
    return qn_add(net->g, y, qn_text_gated(net, "shared", x, s[SHARED], false));
}

static QnValue *decoder(QnNet *net, const QnModel *m, QnValue *tokens, const QnStepInput *in,
                        int64_t layers)
{
    QnGraph *g = net->g;
    const QnShape *shape = &tokens->type.shape;
    Layer l = { .m = m, .in = in, .batch = shape->dim[0], .tokens = shape->dim[1] };
    l.angles = qn_text_angles(net, in ? in->context : 0, l.tokens, m->size[TURNED]);
    QnValue *table,
        *x = qn_nn_embedding(net, "words", tokens, m->size[WORDS], m->size[WIDTH], &table);
    layers = layers ? layers : m->size[LAYERS];
    for (int64_t i = 0; i < layers; i++) {
        qn_text_push(net, "", i);
        QnValue *n = qn_nn_rms_norm(net, "norm1", x), *q = queries(net, &l, n);
        QnValue *kv = latents(net, &l, n);
        QnValue *y =
            in && in->context ? attend_short(net, &l, q, kv) : attend_drawn(net, &l, q, kv);
        x = qn_add(g, x, linear(net, "out", y, m->size[WIDTH]));
        x = qn_add(g, x, feed(net, &l, i, qn_nn_rms_norm(net, "norm2", x)));
        qn_net_pop(net);
    }
    x = qn_nn_rms_norm(net, "norm", in ? qn_text_last(g, x) : x);
    if (m->size[TIED])
        return qn_matmul(g, x, table, NULL, false, true);
    return qn_nn_linear(net, "lm_head", x, m->size[WORDS], false);
}

static QnValue *build(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    return decoder(net, m, x, NULL, layers);
}

static const QnFamily family = { .name = "latent-decoder",
                                 .sequence = 1024,
                                 .build = build,
                                 .generate = decoder,
                                 .layers = 1,
                                 .bends = true,
                                 .adam = true };

static const QnModel models[] = {
    { "deepseek-v2-lite",
      &family,
      { 27, 2048, 16, 0, 512, 128, 64, 128, 10944, 1, 64, 6, 1408, 2816, 102400 },
      15706,
      "DeepSeek-AI 2024: 15.7 B" },
    { "moonlight-16b-a3b",
      &family,
      { 27, 2048, 16, 0, 512, 128, 64, 128, 11264, 1, 64, 6, 1408, 2816, 163840 },
      15960,
      "Liu et al. 2025: 15.96 B" },
    { "minicpm3-4b",
      &family,
      { 62, 2560, 40, 768, 256, 64, 32, 64, 6400, 0, 0, 0, 0, 0, 73448, 1 },
      4073,
      "released weights" },
};

const QnModelList qn_models_latent = { models, QN_COUNT(models) };

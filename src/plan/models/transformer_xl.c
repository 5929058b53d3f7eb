/* Transformer-XL (Dai et al. 2019): a decoder that also attends to the states of the segment
 * before, by relative positions, with words in clusters by how frequent they are. The step takes
 * `sequence` tokens after `context` remembered ones, and returns the loss, while it predicts too.
 */
#include "plan/models/text.h"

#include <math.h>
#include <stdio.h>

/* size: layers, width, heads, hidden width, how much narrower each cluster's table is than the one
 * before (1: all are one table), memory where nothing is said, dropout of scores in percent */
enum { LAYERS, WIDTH, HEADS, HIDDEN, NARROWER, MEMORY, DROPOUT };

enum { HEAD = 64, CLUSTERS = 4 };

/* Words of WikiText-103 by rank, and about which share of the text they are. */
static const int64_t cuts[CLUSTERS + 1] = { 0, 19997, 39997, 199997, 267735 };
static const double shares[CLUSTERS] = { 0.945, 0.023, 0.03, 0.002 };

static const QnInitSpec small = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
static const QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };

typedef struct Words {
    int64_t rows[CLUSTERS];     /* of the text, by cluster */
    QnValue *table[CLUSTERS];   /* (words,width') */
    QnValue *project[CLUSTERS]; /* (width,width'), or NULL */
} Words;

static QnValue *numbers(QnNet *net, const char *name, int i, int64_t rows)
{
    char text[16];
    snprintf(text, sizeof text, "%s%d", name, i);
    return qn_input(net->g, text, QN_DTYPE_I64, &QN_SHAPE(rows));
}

/* x (rows,width) of the text, cluster after cluster. */
static QnValue *embed(QnNet *net, const QnModel *m, int64_t tokens, Words *w)
{
    QnGraph *g = net->g;
    QnValue *parts[CLUSTERS];
    int64_t width = m->size[WIDTH], narrow = width, left = tokens;
    int n = 0;
    for (int i = CLUSTERS - 1; i >= 0; i--) {
        w->rows[i] = i ? QN_MIN(left, (int64_t)ceil(shares[i] * (double)tokens)) : left;
        left -= w->rows[i];
    }
    if (m->size[NARROWER] == 1)
        return qn_nn_embedding(net, "words", numbers(net, "x", 0, tokens), cuts[CLUSTERS], width,
                               &w->table[0]);
    for (int i = 0; i < CLUSTERS; i++, narrow /= m->size[NARROWER]) {
        qn_text_push(net, "words", i);
        w->table[i] =
            qn_net_param(net, "weight", &QN_SHAPE(cuts[i + 1] - cuts[i], narrow), &small, true);
        w->project[i] = qn_net_param(net, "project", &QN_SHAPE(width, narrow), &small, true);
        qn_net_pop(net);
        if (!w->rows[i])
            continue;
        QnValue *x = qn_embedding(g, w->table[i], numbers(net, "x", i, w->rows[i]));
        parts[n++] = qn_matmul(g, x, w->project[i], NULL, false, true);
    }
    return qn_concat(g, parts, n, 0);
}

/* Loss of rows that lie in cluster i; the first one's scores also say which cluster it is. */
static QnValue *cluster_loss(QnNet *net, const QnModel *m, const Words *w, QnValue *rows, int i)
{
    QnGraph *g = net->g;
    int64_t words = cuts[i + 1] - cuts[i], width = m->size[WIDTH];
    bool apart = m->size[NARROWER] > 1;
    QnValue *table = w->table[i];
    if (apart) { /* the first projection is not that of the embedding */
        QnValue *p =
            i ? w->project[i] : qn_net_param(net, "project", &QN_SHAPE(width, width), &small, true);
        rows = qn_matmul(g, rows, p, NULL, false, false);
    } else {
        table = qn_slice_axis(g, w->table[0], 0, cuts[i], cuts[i + 1]);
    }
    QnValue *bias =
        qn_net_param(net, apart || i ? "bias" : "bias0", &QN_SHAPE(words), &zeros, false);
    if (!i) {
        QnValue *more[] = { table, qn_net_param(net, "clusters", &QN_SHAPE(CLUSTERS - 1, width),
                                                &small, true) };
        QnValue *add[] = { bias, qn_net_param(net, "clusters_bias", &QN_SHAPE(CLUSTERS - 1), &zeros,
                                              false) };
        table = qn_concat(g, more, 2, 0);
        bias = qn_concat(g, add, 2, 0);
    }
    QnValue *scores = qn_matmul(g, rows, table, bias, false, true);
    return qn_step_cross_entropy(net, qn_arena_printf(g->arena, "y%d", i), scores);
}

static QnValue *loss_of(QnNet *net, const QnModel *m, const Words *w, QnValue *x)
{
    QnValue *loss = NULL;
    for (int i = 0; i < CLUSTERS; i++) {
        qn_text_push(net, "out", i);
        QnValue *rows =
            i ? qn_gather(net->g, x, numbers(net, "rows", i, QN_MAX(w->rows[i], 1)), 0) : x;
        QnValue *part = cluster_loss(net, m, w, rows, i);
        loss = loss ? qn_add(net->g, loss, part) : part;
        qn_net_pop(net);
    }
    return loss;
}

/* What is said of every layer. */
typedef struct Step {
    const QnModel *m;
    int64_t batch, tokens, all; /* all: with the remembered ones */
    QnValue *positions, *mask, *key_bias, *position_bias;
} Step;

/* Scores (B,H,T,S) by distance, moved to where each query's distances begin. */
static QnValue *shift(QnGraph *g, QnValue *x, const Step *s)
{
    int64_t heads = s->m->size[HEADS];
    QnShape column = QN_SHAPE(s->batch, heads, s->tokens, 1);
    QnValue *padded[] = { qn_full(g, 0, x->type.dtype, &column), x };
    x = qn_concat(g, padded, 2, 3);
    x = qn_reshape(g, x, &QN_SHAPE(s->batch, heads, s->all + 1, s->tokens));
    x = qn_slice_axis(g, x, 2, 1, s->all + 1);
    return qn_reshape(g, x, &QN_SHAPE(s->batch, heads, s->tokens, s->all));
}

static QnValue *attend(QnNet *net, QnValue *x, QnValue *memory, const Step *s)
{
    QnGraph *g = net->g;
    int64_t heads = s->m->size[HEADS], width = heads * HEAD;
    QnValue *all = memory ? qn_concat(g, (QnValue *[]){ memory, x }, 2, 1) : x;
    QnValue *qkv = qn_nn_linear(net, "qkv", all, 3 * width, false);
    QnValue *far = qn_nn_linear(net, "r", s->positions, width, false);
    if (qn_value_is_poison(qkv) || qn_value_is_poison(far))
        return x;
    QnValue *parts[3];
    qn_split(g, qkv, 2, 3, parts);
    QnValue *q = qn_slice_axis(g, parts[0], 1, s->all - s->tokens, s->all);
    q = qn_reshape(g, q, &QN_SHAPE(s->batch, s->tokens, heads, HEAD));
    QnValue *near_q = qn_swap_axes(g, qn_add(g, q, s->key_bias), 1, 2);
    QnValue *far_q = qn_swap_axes(g, qn_add(g, q, s->position_bias), 1, 2);
    QnValue *k = qn_text_split_heads(g, parts[1], heads),
            *v = qn_text_split_heads(g, parts[2], heads);
    far = qn_swap_axes(g, qn_reshape(g, far, &QN_SHAPE(1, s->all, heads, HEAD)), 1, 2);
    QnValue *scores = qn_matmul(g, near_q, k, NULL, false, true);
    scores = qn_add(g, scores, shift(g, qn_matmul(g, far_q, far, NULL, false, true), s));
    scores = qn_mul(g, scores, qn_scalar_like(g, scores, 1 / sqrt(HEAD)));
    scores = qn_where(g, s->mask, qn_scalar_like(g, scores, -65504), scores);
    QnValue *p = qn_nn_dropout(net, qn_softmax(g, scores, -1), 0.01 * (double)s->m->size[DROPOUT]);
    QnValue *y = qn_text_join_heads(g, qn_matmul(g, p, v, NULL, false, false));
    return qn_nn_linear(net, "o", y, s->m->size[WIDTH], false);
}

static QnValue *layer(QnNet *net, int64_t number, QnValue *x, const Step *s)
{
    QnGraph *g = net->g;
    int64_t width = s->m->size[WIDTH], remembered = s->all - s->tokens;
    QnValue *memory = NULL;
    qn_text_push(net, "", number);
    if (remembered)
        memory = qn_input(g, qn_arena_printf(g->arena, "memory%lld", (long long)number), net->dtype,
                          &QN_SHAPE(s->batch, remembered, width));
    QnValue *y = qn_nn_dropout(net, attend(net, x, memory, s), 0.1);
    x = qn_nn_layer_norm(net, "norm", qn_add(g, x, y), true);
    y = qn_relu(g, qn_nn_linear(net, "fc1", x, s->m->size[HIDDEN], true));
    y = qn_nn_linear(net, "fc2", qn_nn_dropout(net, y, 0.1), width, true);
    x = qn_nn_layer_norm(net, "norm2", qn_add(g, x, qn_nn_dropout(net, y, 0.1)), true);
    qn_net_pop(net);
    return x;
}

static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    Words words = { 0 };
    int64_t width = m->size[WIDTH];
    QnShape bias = QN_SHAPE(m->size[HEADS], HEAD);
    Step s = { .m = m, .batch = in->batch, .tokens = in->sequence };
    s.all = in->sequence + (in->context ? in->context : m->size[MEMORY]);
    s.positions = qn_input(g, "positions", net->dtype, &QN_SHAPE(s.all, width));
    s.mask = qn_input(g, "mask", QN_DTYPE_BOOL, &QN_SHAPE(s.tokens, s.all));
    s.key_bias = qn_net_param(net, "key_bias", &bias, &small, false);
    s.position_bias = qn_net_param(net, "position_bias", &bias, &small, false);
    QnValue *x = embed(net, m, s.batch * s.tokens, &words);
    x = qn_mul(g, x, qn_scalar_like(g, x, sqrt((double)width)));
    x = qn_nn_dropout(net, qn_reshape(g, x, &QN_SHAPE(s.batch, s.tokens, width)), 0.1);
    layers = layers ? layers : m->size[LAYERS];
    qn_net_push(net, "layers");
    for (int64_t i = 0; i < layers; i++)
        x = layer(net, i, x, &s);
    qn_net_pop(net);
    x = qn_nn_dropout(net, x, 0.1);
    return loss_of(net, m, &words, qn_reshape(g, x, &QN_SHAPE(s.batch * s.tokens, width)));
}

#define FAMILY(tokens)                                                                             \
    {                                                                                              \
        .name = "transformer-xl", .sequence = tokens, .batch = 16, .step = step,                   \
        .layers = LAYERS + 1, .lamb = true                                                         \
    }
static const QnFamily base = FAMILY(192), large = FAMILY(384);

static const QnModel models[] = {
    { "transformer_xl_base",
      &base,
      { 16, 512, 8, 2048, 1, 192, 0 },
      192,
      "NVIDIA DeepLearningExamples" },
    { "transformer_xl_large",
      &large,
      { 18, 1024, 16, 4096, 4, 384, 20 },
      285,
      "weights of transfo-xl-wt103: 1.14 GB in float32" },
};

const QnModelList qn_models_transformer_xl = { models, QN_COUNT(models) };

/* One net reads a source of `sequence` tokens, another writes `context` tokens about it, or, where
 * it generates, one at a time: the Transformer (Vaswani et al. 2017) and BART (Lewis et al. 2020).
 */
#include "plan/models/text.h"

#include <math.h>

/* size: layers of each, width, heads, hidden width, words, positions (0: waves without weights, and
 * ReLU instead of GELU), tokens that are written, dropout in percent */
enum { LAYERS, WIDTH, HEADS, HIDDEN, WORDS, POSITIONS, WRITTEN, DROPOUT };

static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };

typedef struct Net {
    const QnModel *m;
    const QnStepInput *in;
    QnValue *table; /* of words */
    QnValue *order; /* of the answers that are followed, or NULL */
} Net;

static QnValue *drop(QnNet *net, const Net *n, QnValue *x)
{
    return qn_nn_dropout(net, x, 0.01 * (double)n->m->size[DROPOUT]);
}

static QnValue *add_norm(QnNet *net, const char *name, const Net *n, QnValue *x, QnValue *y)
{
    y = qn_add(net->g, x, drop(net, n, y));
    return qn_nn_layer_norm(net, name, y, true);
}

/* Words of tokens x (B,T), and waves that say where they stand. */
static QnValue *embed_waves(QnNet *net, const char *name, const Net *n, QnValue *x)
{
    QnGraph *g = net->g;
    QnShape waves = QN_SHAPE(x->type.shape.dim[1], n->m->size[WIDTH]);
    x = qn_embedding(g, n->table, x);
    x = qn_mul(g, x, qn_scalar_like(g, x, sqrt((double)n->m->size[WIDTH])));
    x = qn_add(g, x, qn_input(g, qn_arena_printf(g->arena, "%s.waves", name), net->dtype, &waves));
    return drop(net, n, x);
}

/* Words at positions first, first + 1 … */
static QnValue *embed(QnNet *net, const char *name, const Net *n, QnValue *x, int64_t first)
{
    QnGraph *g = net->g;
    int64_t rows = n->m->size[POSITIONS], tokens = x->type.shape.dim[1];
    if (!rows)
        return embed_waves(net, name, n, x);
    if (tokens > rows) {
        qn_fail(QN_ESHAPE, "%lld tokens, but positions for %lld", (long long)tokens,
                (long long)rows);
        return qn_graph_poison(g);
    }
    first = QN_MIN(first, rows - tokens);
    qn_net_push(net, name);
    x = qn_embedding(g, n->table, x);
    QnValue *p = qn_net_param(net, "positions", &QN_SHAPE(rows, n->m->size[WIDTH]), &init, true);
    x = qn_add(g, x, qn_slice_axis(g, p, 0, first, first + tokens));
    x = drop(net, n, qn_nn_layer_norm(net, "norm", x, true));
    qn_net_pop(net);
    return x;
}

/* To what is written so far, or of the source to all. */
static QnValue *attend_self(QnNet *net, const Net *n, QnValue *x, bool causal)
{
    QnSelfSpec kept = { .heads = n->m->size[HEADS],
                        .bias_in = true,
                        .bias_out = true,
                        .in = n->in,
                        .order = n->order };
    QnAttentionSpec plain = { .heads = n->m->size[HEADS], .causal = causal, .bias = true };
    QnValue *y = causal && n->in->generate ? qn_text_self(net, "self", x, &kept)
                                           : qn_nn_attention(net, "self", x, &plain);
    return add_norm(net, "self_norm", n, x, y);
}

/* To the source (B,S,C), or where it was read before (NULL) to its keys and values. */
static QnValue *attend_source(QnNet *net, const Net *n, QnValue *x, QnValue *source)
{
    QnGraph *g = net->g;
    int64_t width = n->m->size[WIDTH], heads = n->m->size[HEADS];
    QnValue *kv[2];
    qn_net_push(net, "cross");
    QnValue *q = qn_text_split_heads(g, qn_nn_linear(net, "q", x, width, true), heads);
    if (source) {
        qn_split(g, qn_nn_linear(net, "kv", source, 2 * width, true), -1, 2, kv);
        for (int i = 0; i < 2; i++)
            kv[i] = qn_text_split_heads(g, kv[i], heads);
    } else {
        QnShape s = QN_SHAPE(n->in->batch, heads, n->in->source, width / heads);
        kv[0] = qn_text_reorder(g, qn_cache_keep(net, "k", &s), n->order);
        kv[1] = qn_text_reorder(g, qn_cache_keep(net, "v", &s), n->order);
        /* not read, but there */
        qn_step_idle(net, "kv", &QN_SHAPE(2 * width, width));
        qn_step_idle(net, "kv_bias", &QN_SHAPE(2 * width));
    }
    if (source && n->in->generate) {
        qn_cache_put(net, "k", kv[0]);
        qn_cache_put(net, "v", kv[1]);
    }
    QnValue *y = qn_text_join_heads(g, qn_attention(g, q, kv[0], kv[1], NULL, false, 0));
    y = qn_nn_linear(net, "out", y, width, true);
    qn_net_pop(net);
    return add_norm(net, "cross_norm", n, x, y);
}

static QnValue *feed(QnNet *net, const Net *n, QnValue *x)
{
    QnValue *y = qn_nn_linear(net, "fc1", x, n->m->size[HIDDEN], true);
    y = n->m->size[POSITIONS] ? qn_gelu(net->g, y) : qn_relu(net->g, y);
    return add_norm(net, "feed_norm", n, x, qn_nn_linear(net, "fc2", y, n->m->size[WIDTH], true));
}

static QnValue *read_source(QnNet *net, const Net *n, QnValue *x, int64_t layers)
{
    x = embed(net, "encoder", n, x, 0);
    for (int64_t i = 0; i < layers; i++) {
        qn_text_push(net, "encoder", i);
        x = feed(net, n, attend_self(net, n, x, false));
        qn_net_pop(net);
    }
    return x;
}

static QnValue *write(QnNet *net, const Net *n, QnValue *x, QnValue *source, int64_t layers)
{
    x = embed(net, "decoder", n, x, n->in->generate ? n->in->context : 0);
    for (int64_t i = 0; i < layers; i++) {
        qn_text_push(net, "decoder", i);
        x = attend_source(net, n, attend_self(net, n, x, true), source);
        x = feed(net, n, x);
        qn_net_pop(net);
    }
    return qn_matmul(net->g, x, n->table, NULL, false, true);
}

static Net begin(QnNet *net, const QnModel *m, const QnStepInput *in)
{
    QnShape table = QN_SHAPE(m->size[WORDS], m->size[WIDTH]);
    Net n = { m, in, qn_net_param(net, "words", &table, &init, true), NULL };
    if (in->generate && in->context && m->family->beams > 1)
        n.order = qn_input(net->g, "order", QN_DTYPE_I64, &QN_SHAPE(in->batch));
    return n;
}

static QnValue *tokens_of(QnNet *net, const char *name, int64_t batch, int64_t n)
{
    return qn_input(net->g, name, QN_DTYPE_I64, &QN_SHAPE(batch, n));
}

static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    Net n = begin(net, m, in);
    int64_t written = in->context ? in->context : m->size[WRITTEN];
    layers = layers ? layers : m->size[LAYERS];
    QnValue *source = read_source(net, &n, tokens_of(net, "x", in->batch, in->sequence), layers);
    QnValue *x = write(net, &n, tokens_of(net, "written", in->batch, written), source, layers);
    return in->train ? qn_step_cross_entropy(net, "y", x) : x;
}

/* The prompt's step reads the source and writes the first token. */
static QnValue *generate(QnNet *net, const QnModel *m, QnValue *x, const QnStepInput *in,
                         int64_t layers)
{
    Net n = begin(net, m, in);
    QnValue *source = NULL;
    layers = layers ? layers : m->size[LAYERS];
    if (!in->context) {
        source = read_source(net, &n, x, layers);
        x = tokens_of(net, "written", in->batch, 1);
    } else { /* the net that reads is there, but has read */
        int64_t width = m->size[WIDTH], hidden = m->size[HIDDEN];
        qn_step_idle(net, "encoder", &QN_SHAPE(layers, 4 * width + 2 * hidden + 9, width));
        if (m->size[POSITIONS])
            qn_step_idle(net, "encoder_positions", &QN_SHAPE(m->size[POSITIONS], width));
        qn_step_idle(net, "encoder_bias", &QN_SHAPE(layers, hidden));
    }
    return write(net, &n, x, source, layers);
}

static const QnFamily bart = { .name = "encoder-decoder",
                               .sequence = 1024,
                               .batch = 16,
                               .step = step,
                               .generate = generate,
                               .answers = true,
                               .beams = 6,
                               .layers = 1,
                               .adam = true };
/* Sentences of WMT are about this long; batches are published in tokens of what is written. */
static const QnFamily transformer = { .name = "transformer",
                                      .sequence = 28,
                                      .batch = 128,
                                      .token_batch = true,
                                      .step = step,
                                      .generate = generate,
                                      .answers = true,
                                      .beams = 4,
                                      .layers = 1,
                                      .adam = true };

static const QnModel models[] = {
    { "bart_large_xsum",
      &bart,
      { 12, 1024, 16, 4096, 50264, 1026, 60, 10 },
      406.3,
      "Lewis et al. 2020; released weights" },
    { "bart_large_pretrain",
      &bart,
      { 12, 1024, 16, 4096, 50265, 1026, 1024, 10 },
      406.3,
      "Lewis et al. 2020; released weights" },
    { "transformer_big_wmt",
      &transformer,
      { 6, 1024, 16, 4096, 33712, 0, 28, 30 },
      210.8,
      "Ott et al. 2018: 210 M" },
};

const QnModelList qn_models_answer = { models, QN_COUNT(models) };

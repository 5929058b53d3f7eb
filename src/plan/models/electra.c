/* ELECTRA's training (Clark et al. 2020): a small net fills gaps with words, a larger one finds
 * which words are not the text's own. */
#include "plan/models/text.h"

/* size: layers, width, heads, hidden width, words, positions, and of the small net: width, heads,
 * hidden width */
enum { LAYERS, WIDTH, HEADS, HIDDEN, WORDS, POSITIONS, SMALL, SMALL_HEADS, SMALL_HIDDEN };

typedef struct Encoder {
    int64_t width, heads, hidden;
} Encoder;

static QnValue *layer(QnNet *net, int64_t i, QnValue *x, const Encoder *e)
{
    QnGraph *g = net->g;
    QnAttentionSpec attention = { .heads = e->heads, .bias = true };
    qn_text_push(net, "", i);
    QnValue *y = qn_nn_dropout(net, qn_nn_attention(net, "attention", x, &attention), 0.1);
    x = qn_nn_layer_norm(net, "norm1", qn_add(g, x, y), true);
    y = qn_gelu(g, qn_nn_linear(net, "fc1", x, e->hidden, true));
    y = qn_nn_dropout(net, qn_nn_linear(net, "fc2", y, e->width, true), 0.1);
    x = qn_nn_layer_norm(net, "norm2", qn_add(g, x, y), true);
    qn_net_pop(net);
    return x;
}

/* x: embeddings (B,T,width of the larger net). */
static QnValue *encode(QnNet *net, const char *name, QnValue *x, const Encoder *e, int64_t layers)
{
    qn_net_push(net, name);
    if (qn_text_width(x) != e->width)
        x = qn_nn_linear(net, "project", x, e->width, true);
    for (int64_t i = 0; i < layers; i++)
        x = layer(net, i, x, e);
    qn_net_pop(net);
    return x;
}

/* Words, positions and one of two segments, for both nets. */
static QnValue *embed(QnNet *net, const QnModel *m, QnValue *tokens, QnValue *table,
                      QnValue *positions)
{
    QnGraph *g = net->g;
    QnValue *x = qn_embedding(g, table, tokens);
    (void)m;
    if (qn_value_is_poison(x))
        return x;
    return qn_add(g, x, qn_slice_axis(g, positions, 0, 0, x->type.shape.dim[1]));
}

static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    QnGraph *g = net->g;
    const int64_t *s = m->size;
    int64_t all = in->batch * in->sequence, masked = QN_MAX(all * 15 / 100, 1);
    Encoder finder = { s[WIDTH], s[HEADS], s[HIDDEN] };
    Encoder filler = { s[SMALL], s[SMALL_HEADS], s[SMALL_HIDDEN] };
    QnShape tokens = QN_SHAPE(in->batch, in->sequence);
    layers = layers ? layers : s[LAYERS];
    QnValue *table = qn_net_param(net, "words", &QN_SHAPE(s[WORDS], s[WIDTH]), &init, true);
    QnValue *positions =
        qn_net_param(net, "positions", &QN_SHAPE(s[POSITIONS] + 2, s[WIDTH]), &init, true);
    QnValue *x = embed(net, m, qn_input(g, "filled", QN_DTYPE_I64, &tokens), table, positions);
    x = qn_nn_dropout(net, qn_nn_layer_norm(net, "norm", x, true), 0.1);
    x = encode(net, "finder", x, &finder, layers);
    x = qn_gelu(g, qn_nn_linear(net, "found1", x, s[WIDTH], true));
    x = qn_nn_linear(net, "found2", x, 1, true);
    if (!in->train)
        return x;
    QnValue *wrong = qn_input(g, "wrong", net->dtype, &QN_SHAPE(in->batch, in->sequence, 1));
    QnValue *loss = qn_bce_with_logits(g, x, wrong, QN_REDUCTION_MEAN);
    QnValue *y = embed(net, m, qn_input(g, "x", QN_DTYPE_I64, &tokens), table, positions);
    y = encode(net, "filler", qn_nn_layer_norm(net, "filler_norm", y, true), &filler, layers);
    y = qn_reshape(g, y, &QN_SHAPE(all, filler.width));
    y = qn_gather(g, y, qn_input(g, "gaps", QN_DTYPE_I64, &QN_SHAPE(masked)), 0);
    y = qn_gelu(g, qn_nn_linear(net, "fill1", y, s[WIDTH], true));
    y = qn_matmul(g, qn_nn_layer_norm(net, "fill_norm", y, true), table, NULL, false, true);
    return qn_add(g, loss, qn_step_cross_entropy(net, "y", y));
}

static const QnFamily family = {
    .name = "electra", .sequence = 128, .batch = 16, .step = step, .layers = 1, .adam = true
};

static const QnModel models[] = {
    { "electra_base_pretrain",
      &family,
      { 12, 768, 12, 3072, 30522, 512, 256, 4, 1024 },
      109.5,
      "Clark et al. 2020: 110 M, of what finds" },
};

const QnModelList qn_models_electra = { models, QN_COUNT(models) };

/* Translation by recurrent nets: GNMT. A step takes sentences of `sequence` tokens and as many of
 * what they should become; without training the latter are given too (scores of known text). */
#include "plan/models/recurrent.h"
#include "plan/models/text.h"

static QnValue *words(QnNet *net, const char *input, const QnShape *shape)
{
    return qn_input(net->g, input, QN_DTYPE_I64, shape);
}

/* ---- GNMT v2 (Wu et al. 2016; as in NVIDIA's examples and MLPerf). size: width, vocabulary ----
 */

enum { GNMT_WIDTH, GNMT_VOCAB };

/* How well each query (B,Q,C) fits each key (B,K,C): a net of one layer (Bahdanau et al. 2015); the
 * keys' weighted means. */
static QnValue *additive_attention(QnNet *net, QnValue *queries, QnValue *keys)
{
    static const QnInitSpec init = { QN_INIT_KIND_UNIFORM, 0, 0, 0.1 };
    QnGraph *g = net->g;
    int64_t width = qn_text_width(keys);
    QnShape vector = QN_SHAPE(width);
    qn_net_push(net, "attention");
    QnValue *q = qn_unsqueeze(g, qn_nn_linear(net, "q", queries, width, false), 2);
    QnValue *k = qn_unsqueeze(g, qn_nn_linear(net, "k", keys, width, false), 1);
    QnValue *sum = qn_add(g, qn_add(g, q, k), qn_net_param(net, "bias", &vector, &init, false));
    QnValue *v = qn_net_param(net, "v", &vector, &init, false);
    QnValue *scale = qn_net_param(net, "scale", &(QnShape){ 0 }, &init, false);
    v = qn_mul(g, v, qn_mul(g, scale, qn_rsqrt(g, qn_sum(g, qn_square(g, v), QN_INTS(0), true))));
    v = qn_reshape(g, v, &QN_SHAPE(width, 1));
    QnValue *scores = qn_squeeze(g, qn_matmul(g, qn_tanh(g, sum), v, NULL, false, false), 3);
    qn_net_pop(net);
    return qn_matmul(g, qn_softmax(g, scores, -1), keys, NULL, false, false);
}

static QnValue *gnmt_encoder(QnNet *net, QnValue *x, int64_t width)
{
    QnGraph *g = net->g;
    qn_net_push(net, "encoder");
    x = qn_recurrent_both(net, "0", qn_nn_dropout(net, x, 0.2), width);
    x = qn_recurrent_lstm(net, "1", qn_nn_dropout(net, x, 0.2), width);
    for (int i = 2; i < 4; i++)
        x = qn_add(g, x,
                   qn_recurrent_lstm(net, i == 2 ? "2" : "3", qn_nn_dropout(net, x, 0.2), width));
    qn_net_pop(net);
    return x;
}

static QnValue *gnmt_decoder(QnNet *net, QnValue *x, QnValue *source, int64_t width)
{
    static const char *const names[] = { "1", "2", "3" };
    QnGraph *g = net->g;
    qn_net_push(net, "decoder");
    x = qn_recurrent_lstm(net, "0", x, width);
    QnValue *seen =
        additive_attention(net, qn_swap_axes(g, x, 0, 1), qn_swap_axes(g, source, 0, 1));
    seen = qn_swap_axes(g, seen, 0, 1);
    x = qn_nn_dropout(net, x, 0.2);
    for (int i = 0; i < 3; i++) {
        QnValue *both[] = { i ? qn_nn_dropout(net, x, 0.2) : x, seen };
        QnValue *y = qn_recurrent_lstm(net, names[i], qn_concat(g, both, 2, -1), width);
        x = i ? qn_add(g, x, y) : y;
    }
    qn_net_pop(net);
    return x;
}

static QnValue *gnmt(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnValue *table;
    int64_t width = m->size[GNMT_WIDTH], vocab = m->size[GNMT_VOCAB];
    QnShape tokens = QN_SHAPE(in->sequence, in->batch); /* (T,B) */
    (void)layers;
    QnValue *x = qn_nn_embedding(net, "words", words(net, "x", &tokens), vocab, width, &table);
    QnValue *source = gnmt_encoder(net, x, width);
    x = qn_embedding(net->g, table, words(net, "target", &tokens));
    x = gnmt_decoder(net, qn_nn_dropout(net, x, 0.2), source, width);
    x = qn_nn_linear(net, "classifier", x, vocab, true);
    return in->train ? qn_step_cross_entropy(net, "y", x) : x;
}

/* Sentences of WMT are about this long, in tokens of a vocabulary of 32,000. */
static const QnFamily recurrent = {
    .name = "gnmt", .sequence = 26, .batch = 128, .pairs = true, .step = gnmt, .adam = true
};
static const QnModel models[] = {
    { "gnmt_v2", &recurrent, { 1024, 32320 }, 160.7, "MLPerf Training's reference: 160 M" },
};

const QnModelList qn_models_translation = { models, QN_COUNT(models) };

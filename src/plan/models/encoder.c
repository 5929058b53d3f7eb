/* Encoders of text: BERT and its kin. */
#include "plan/models.h"

#include <stdio.h>

static int64_t width_of(const QnValue *x)
{
    return x->type.shape.rank ? x->type.shape.dim[x->type.shape.rank - 1] : 1;
}

/* ---- BERT. size: layers, width, heads, hidden width, vocabulary, positions, types of segments,
 * head (0: begin and end of an answer; 1: the masked words), width of the embeddings (0: width) */

/* Post-norm, as the paper's. */
static QnValue *bert_layer(QnNet *net, int64_t number, const QnModel *m, QnValue *x)
{
    QnGraph *g = net->g;
    QnAttentionSpec attention = { .heads = m->size[2], .bias = true };
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)number);
    qn_net_push(net, name);
    QnValue *y = qn_nn_attention(net, "attention", x, &attention);
    x = qn_nn_layer_norm(net, "attention_norm", qn_add(g, x, qn_nn_dropout(net, y, 0.1)), true);
    y = qn_gelu(g, qn_nn_linear(net, "intermediate", x, m->size[3], true));
    y = qn_nn_dropout(net, qn_nn_linear(net, "output", y, m->size[1], true), 0.1);
    x = qn_nn_layer_norm(net, "output_norm", qn_add(g, x, y), true);
    qn_net_pop(net);
    return x;
}

/* A table of `rows` vectors of which the first `used` are taken, once for each example. */
static QnValue *add_table(QnNet *net, const char *name, QnValue *x, int64_t rows, int64_t used)
{
    QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    if (!rows)
        return x;
    qn_net_push(net, name);
    QnValue *p = qn_net_param(net, "weight", &QN_SHAPE(rows, width_of(x)), &init, true);
    qn_net_pop(net);
    return qn_add(net->g, x, qn_slice_axis(net->g, p, 0, 0, used));
}

static QnValue *bert(QnNet *net, const QnModel *m, QnValue *tokens, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *table = NULL;
    int64_t narrow = m->size[8] ? m->size[8] : m->size[1];
    layers = layers ? layers : m->size[0];
    QnValue *x = qn_nn_embedding(net, "words", tokens, m->size[4], narrow, &table);
    x = add_table(net, "positions", x, m->size[5], tokens->type.shape.dim[1]);
    x = add_table(net, "segments", x, m->size[6], 1);
    x = qn_nn_dropout(net, qn_nn_layer_norm(net, "norm", x, true), 0.1);
    if (narrow != m->size[1])
        x = qn_nn_linear(net, "project", x, m->size[1], true);
    for (int64_t i = 0; i < layers; i++)
        x = bert_layer(net, i, m, x);
    if (!m->size[7])
        return qn_nn_linear(net, "qa_outputs", x, 2, true);
    if (net->training) { /* 80 of 512 and 20 of 128 words are masked, and scored */
        int64_t masked = QN_MAX(tokens->type.shape.dim[1] * 5 / 32, 1);
        x = qn_slice_axis(g, x, 1, 0, masked);
    }
    x = qn_nn_layer_norm(net, "transform_norm",
                         qn_gelu(g, qn_nn_linear(net, "transform", x, narrow, true)), true);
    QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
    QnValue *bias = qn_net_param(net, "decoder.bias", &QN_SHAPE(m->size[4]), &zeros, false);
    return qn_matmul(g, x, table, bias, false, true);
}

static const QnFamily encoder = {
    .name = "encoder", .sequence = 128, .build = bert, .layers = 1, .adam = true
};

#define BERT_BASE  12, 768, 12, 3072, 30522, 512, 2
#define BERT_LARGE 24, 1024, 16, 4096, 30522, 512, 2

static const QnModel models[] = {
    { "bert_base_squad", &encoder, { BERT_BASE }, 109.5, "Devlin et al. 2019: 110M" },
    { "bert_base", &encoder, { BERT_BASE, 1 }, 109.5, "Devlin et al. 2019: 110M" },
    { "bert_large", &encoder, { BERT_LARGE }, 335.1, "Devlin et al. 2019: 340M" },
    { "bert_large_squad", &encoder, { BERT_LARGE }, 335.1, "Devlin et al. 2019: 340M" },
    { "bert_large_squad_99.9", &encoder, { BERT_LARGE }, 335.1, "Devlin et al. 2019: 340M" },
    { "bert_large_mrpc", &encoder, { BERT_LARGE }, 335.1, "Devlin et al. 2019: 340M" },
    { "bert_large_pretrain", &encoder, { BERT_LARGE, 1 }, 335.1, "Devlin et al. 2019: 340M" },
    { "roberta_large_squad",
      &encoder,
      { 24, 1024, 16, 4096, 50265, 514, 1 },
      355.4,
      "Liu et al. 2019: 355M" },
    { "roberta_large_mlm",
      &encoder,
      { 24, 1024, 16, 4096, 50265, 514, 1, 1 },
      355.4,
      "Liu et al. 2019: 355M" },
    { "distilbert", &encoder, { 6, 768, 12, 3072, 30522, 512, 0 }, 66.4, "Sanh et al. 2019: 66M" },
    { "electra_base_squad", &encoder, { BERT_BASE }, 109.5, "Clark et al. 2020: 110M" },
};

const QnModelList qn_models_encoder = { models, QN_COUNT(models) };

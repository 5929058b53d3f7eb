/* GPT-2: token and position embeddings, pre-norm blocks, a norm and scores. */
#include "nn/models.h"
#include "nn/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool qn_nn_gpt2_size(const char *name, QnGptSpec *spec)
{
    static const struct {
        const char *name;
        int64_t layers, heads, width;
    } sizes[] = {
        { "small", 12, 12, 768 },
        { "medium", 24, 16, 1024 },
        { "large", 36, 20, 1280 },
        { "xl", 48, 25, 1600 },
    };
    if (!strcmp(name, "tiny")) {
        *spec = (QnGptSpec){ .vocab = 65, .window = 64, .layers = 4, .heads = 4, .width = 128 };
        return true;
    }
    for (int i = 0; i < QN_COUNT(sizes); i++) {
        if (strcmp(name, sizes[i].name) != 0)
            continue;
        *spec = (QnGptSpec){ .vocab = 50257,
                             .window = 1024,
                             .layers = sizes[i].layers,
                             .heads = sizes[i].heads,
                             .width = sizes[i].width,
                             .tied = true,
                             .bias = true };
        return true;
    }
    return false;
}

/* Token embeddings plus those of positions 0..T-1. */
static QnValue *embed(QnNet *net, QnValue *tokens, const QnGptSpec *spec, QnValue **table)
{
    QnGraph *g = net->g;
    QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    const QnShape *s = &tokens->type.shape;
    if (s->rank != 2 || s->dim[1] < 1 || s->dim[1] > spec->window) {
        char text[QN_TYPE_TEXT_BYTES];
        qn_fail(QN_ESHAPE, "gpt2: tokens are %s; needs (B,T) with T known and at most %lld",
                qn_shape_text(s, text), (long long)spec->window);
        return qn_graph_poison(g);
    }
    QnValue *x = qn_nn_embedding(net, "wte", tokens, spec->vocab, spec->width, table);
    qn_net_push(net, "wpe");
    QnValue *p = qn_net_param(net, "weight", &QN_SHAPE(spec->window, spec->width), &init, true);
    qn_net_pop(net);
    x = qn_add(g, x, qn_slice_axis(g, p, 0, 0, s->dim[1]));
    return qn_nn_dropout(net, x, spec->dropout);
}

QnValue *qn_nn_gpt2(QnNet *net, QnValue *tokens, const QnGptSpec *spec)
{
    QnValue *table = NULL;
    if (qn_value_is_poison(tokens))
        return qn_graph_poison(net->g);
    QnValue *x = embed(net, tokens, spec, &table);
    /* the paper's scaling: each of the 2 * layers residual additions starts small */
    QnAttentionSpec attn = { .heads = spec->heads,
                             .causal = true,
                             .bias = spec->bias,
                             .dropout = spec->dropout,
                             .out_std = 0.02 / sqrt(2 * (double)QN_MAX(spec->layers, 1)) };
    qn_net_push(net, "h");
    for (int64_t i = 0; i < spec->layers; i++) {
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)i);
        x = qn_nn_block(net, name, x, &attn);
    }
    qn_net_pop(net);
    x = qn_nn_layer_norm(net, "ln_f", x, spec->bias);
    if (spec->tied)
        return qn_matmul(net->g, x, table, NULL, false, true);
    QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    return qn_nn_linear_init(net, "lm_head", x, spec->vocab, false, &init);
}

int64_t qn_nn_param_count(const QnNet *net)
{
    int64_t total = 0;
    for (int64_t i = 0; i < net->n_params; i++) {
        int64_t n = qn_shape_count(&net->params[i].state->type.shape);
        if (n < 0)
            return -1;
        total += n;
    }
    return total;
}

/* Hugging Face keeps the causal mask beside the weights, and matrices as (in, out); nanoGPT's names
 * are the model's own, as are its (out, in). Both tie the head to the embedding or not. */
static const QnNameRule rules[] = {
    { "h.#.attn.bias", NULL },
    { "h.#.attn.masked_bias", NULL },
};
static const char *const turned[] = {
    "h.#.attn.c_attn.weight",
    "h.#.attn.c_proj.weight",
    "h.#.mlp.c_fc.weight",
    "h.#.mlp.c_proj.weight",
};

const QnNameMap qn_names_gpt2 = { .rules = rules,
                                  .n_rules = QN_COUNT(rules),
                                  .turned = turned,
                                  .n_turned = QN_COUNT(turned),
                                  .witness = "h.0.attn.c_attn.weight",
                                  .by_position = "wpe.weight",
                                  .tied = { "lm_head.weight", "wte.weight" } };

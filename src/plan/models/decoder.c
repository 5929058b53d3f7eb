/* Decoders: GPT, Llama and their kin, also with experts. */
#include "plan/models/decoder.h"

static bool has(const QnModel *m, int64_t flag)
{
    return (m->size[QN_DECODER_FLAGS] & flag) != 0;
}

static QnValue *norm(QnNet *net, const char *name, QnValue *x, const QnModel *m)
{
    return has(m, QN_DECODER_RMS) ? qn_nn_rms_norm(net, name, x)
                                  : qn_nn_layer_norm(net, name, x, has(m, QN_DECODER_NORM_BIAS));
}

static QnValue *feed(QnNet *net, int64_t number, const QnModel *m, QnValue *x)
{
    const int64_t *size = m->size;
    bool bias = has(m, QN_DECODER_FEED_BIAS);
    int64_t hidden = size[QN_DECODER_HIDDEN];
    if (size[QN_DECODER_EXPERTS] && (number > 0 || !size[QN_DECODER_DENSE])) {
        QnExpertSpec spec = { size[QN_DECODER_EXPERTS], size[QN_DECODER_ACTIVE], hidden, bias };
        QnValue *y = qn_text_experts(net, "experts", x, &spec);
        if (!size[QN_DECODER_SHARED])
            return y;
        QnValue *all = qn_text_gated(net, "shared", x, size[QN_DECODER_SHARED], bias);
        return qn_add(net->g, y, all);
    }
    if (size[QN_DECODER_EXPERTS])
        hidden = size[QN_DECODER_DENSE];
    return has(m, QN_DECODER_GATED) ? qn_text_gated(net, "mlp", x, hidden, bias)
                                    : qn_nn_gelu_mlp(net, "mlp", x, hidden, bias, 0, 0.02);
}

static QnValue *layer(QnNet *net, int64_t number, const QnModel *m, QnValue *x,
                      const QnSelfSpec *attention)
{
    QnGraph *g = net->g;
    bool parallel = has(m, QN_DECODER_PARALLEL), after = has(m, QN_DECODER_POST_NORMS);
    qn_text_push(net, "", number);
    QnValue *n = norm(net, "ln_1", x, m), *y = qn_text_self(net, "attn", n, attention);
    y = qn_add(g, x, after ? norm(net, "ln_1_after", y, m) : y);
    if (!parallel)
        n = norm(net, "ln_2", y, m);
    else if (has(m, QN_DECODER_TWO_NORMS))
        n = norm(net, "ln_2", x, m);
    n = feed(net, number, m, n);
    y = qn_add(g, y, after ? norm(net, "ln_2_after", n, m) : n);
    qn_net_pop(net);
    return y;
}

/* Learned positions first, first + 1 …, the last ones of the table where it ends. */
static QnValue *add_positions(QnNet *net, const QnModel *m, QnValue *x, int64_t first)
{
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    int64_t rows = m->size[QN_DECODER_POSITIONS];
    if (qn_value_is_poison(x))
        return x;
    int64_t tokens = x->type.shape.dim[1];
    if (has(m, QN_DECODER_STRETCHES))
        rows = QN_MAX(rows, tokens);
    if (tokens > rows) {
        qn_fail(QN_ESHAPE, "%lld tokens, but positions for %lld", (long long)tokens,
                (long long)rows);
        return qn_graph_poison(net->g);
    }
    first = QN_MIN(first, rows - tokens);
    qn_net_push(net, "wpe");
    QnValue *p =
        qn_net_param(net, "weight", &QN_SHAPE(rows, m->size[QN_DECODER_WIDTH]), &init, true);
    qn_net_pop(net);
    return qn_add(net->g, x, qn_slice_axis(net->g, p, 0, first, first + tokens));
}

/* Tokens kept before the new ones, in the mean of layers that keep all and that keep a window. */
static int64_t mean_context(const QnModel *m, const QnStepInput *in)
{
    int64_t window = m->size[QN_DECODER_WINDOW], local = m->size[QN_DECODER_LOCAL];
    if (!window || in->context <= window)
        return in->context;
    return (local * window + (100 - local) * in->context) / 100;
}

static QnValue *decoder(QnNet *net, const QnModel *m, QnValue *tokens, const QnStepInput *in,
                        int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *table = NULL;
    const int64_t *size = m->size;
    int64_t length = tokens->type.shape.dim[1], first = in ? in->context : 0;
    int64_t head = size[QN_DECODER_HEAD] ? size[QN_DECODER_HEAD]
                                         : size[QN_DECODER_WIDTH] / size[QN_DECODER_HEADS];
    QnAngles angles;
    QnStepInput seen = { 0 };
    if (in) {
        seen = *in;
        seen.context = mean_context(m, in);
    }
    QnSelfSpec attention = { .heads = size[QN_DECODER_HEADS],
                             .kv_heads = size[QN_DECODER_KV_HEADS],
                             .head = head,
                             .bias_in = has(m, QN_DECODER_QKV_BIAS),
                             .bias_out = has(m, QN_DECODER_OUT_BIAS),
                             .norm = has(m, QN_DECODER_QK_NORM),
                             .adapter = size[QN_DECODER_ADAPTER],
                             .in = in ? &seen : NULL };
    QnValue *x =
        qn_nn_embedding(net, "wte", tokens, size[QN_DECODER_VOCAB], size[QN_DECODER_WIDTH], &table);
    if (has(m, QN_DECODER_FIRST_NORM))
        x = norm(net, "ln_0", x, m);
    if (size[QN_DECODER_POSITIONS]) {
        x = add_positions(net, m, x, first);
    } else if (!has(m, QN_DECODER_LINEAR)) {
        angles = qn_text_angles(net, first, length, head);
        attention.angles = &angles;
    }
    layers = layers ? layers : size[QN_DECODER_LAYERS];
    qn_net_push(net, "h");
    for (int64_t i = 0; i < layers; i++)
        x = layer(net, i, m, x, &attention);
    qn_net_pop(net);
    x = norm(net, "ln_f", in ? qn_text_last(g, x) : x, m);
    if (has(m, QN_DECODER_TIED))
        return qn_matmul(g, x, table, NULL, false, true);
    return qn_nn_linear(net, "lm_head", x, size[QN_DECODER_VOCAB], has(m, QN_DECODER_HEAD_BIAS));
}

static QnValue *build(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    return decoder(net, m, x, NULL, layers);
}

#define FAMILY(tokens, ...)                                                                        \
    {                                                                                              \
        .name = "decoder", .sequence = tokens, .build = build, .generate = decoder,                \
        .layers = QN_DECODER_LAYERS + 1, .adam = true, __VA_ARGS__                                 \
    }
const QnFamily qn_family_decoder = FAMILY(1024, .bends = false);
const QnFamily qn_family_experts = FAMILY(1024, .bends = true);
const QnFamily qn_family_adapted = FAMILY(8192, .trained = "lora_");

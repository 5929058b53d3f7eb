/* Forecasts: the temporal fusion transformer (Lim et al. 2021) as in NVIDIA's examples, on hourly
 * electricity. An example is `sequence` hours, of which seven eighths are known. */
#include "plan/models/recurrent.h"
#include "plan/models/text.h"

/* size: width, heads, kinds of series, inputs known ahead */
enum { WIDTH, HEADS, SERIES, KNOWN };
enum { QUANTILES = 3 };

/* The first half of a product, as the second lets it through. */
static QnValue *gated(QnNet *net, const char *name, QnValue *x, int64_t out)
{
    QnValue *two[2];
    x = qn_nn_linear(net, name, x, 2 * out, true);
    qn_split(net->g, x, -1, 2, two);
    return qn_mul(net->g, two[0], qn_sigmoid(net->g, two[1]));
}

/* A gated residual net of x (...,in), with what is known of the series (B,1,width) or NULL. out 0:
 * as wide as x. */
static QnValue *residual(QnNet *net, const char *name, QnValue *x, QnValue *context, int64_t width,
                         int64_t out)
{
    QnGraph *g = net->g;
    qn_net_push(net, name);
    QnValue *y = qn_nn_linear(net, "a", x, width, true);
    if (context)
        y = qn_add(g, y, qn_nn_linear(net, "c", context, width, false));
    y = qn_nn_linear(net, "i", qn_elu(g, y, 1), width, true);
    y = gated(net, "gate", qn_nn_dropout(net, y, 0.1), out ? out : width);
    y = qn_add(g, y, out ? qn_nn_linear(net, "out", x, out, true) : x);
    if (out != 1)
        y = qn_nn_layer_norm(net, "norm", y, true);
    qn_net_pop(net);
    return y;
}

/* Of n inputs (B,T,n,width) what matters now, (B,T,width). */
static QnValue *select_inputs(QnNet *net, const char *name, QnValue *x, QnValue *context)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x) || x->type.shape.rank != 4)
        return x;
    const QnShape s = x->type.shape;
    int64_t n = s.dim[2], width = s.dim[3];
    QnValue *own[8], *y;
    qn_net_push(net, name);
    y = qn_reshape(g, x, &QN_SHAPE(s.dim[0], s.dim[1], n * width));
    QnValue *weights = qn_softmax(g, residual(net, "joint", y, context, width, n), -1);
    for (int64_t i = 0; i < n && i < QN_COUNT(own); i++) {
        qn_text_push(net, "var", i);
        y = qn_reshape(g, qn_slice_axis(g, x, 2, i, i + 1), &QN_SHAPE(s.dim[0], s.dim[1], width));
        own[i] = residual(net, "grn", y, NULL, width, 0);
        qn_net_pop(net);
    }
    y = qn_matmul(g, qn_stack(g, own, (int)n, 3), qn_unsqueeze(g, weights, 3), NULL, false, false);
    qn_net_pop(net);
    return qn_squeeze(g, y, 3);
}

/* Numbers (B,T,n) as vectors of their own, (B,T,n,width). */
static QnValue *embed(QnNet *net, const char *name, const QnStepInput *in, int64_t n, int64_t width)
{
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.1 };
    QnGraph *g = net->g;
    QnShape table = QN_SHAPE(n, width);
    QnValue *x = qn_input(g, name, net->dtype, &QN_SHAPE(in->batch, in->sequence, n, 1));
    qn_net_push(net, name);
    x = qn_mul(g, x, qn_net_param(net, "vectors", &table, &init, true));
    x = qn_add(g, x, qn_net_param(net, "bias", &table, &init, false));
    qn_net_pop(net);
    return x;
}

/* Heads with queries and keys of their own and one set of values. */
static QnValue *attend(QnNet *net, const QnModel *m, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t heads = m->size[HEADS], d = m->size[WIDTH] / heads;
    qn_net_push(net, "attention");
    QnValue *qkv = qn_nn_linear(net, "qkv", x, (2 * heads + 1) * d, false);
    QnNode *parts = qn_split_sizes(g, qkv, -1, &(QnDims){ 3, { heads * d, heads * d, d } });
    QnValue *q = qn_text_split_heads(g, qn_node_out(g, parts, 0), heads);
    QnValue *k = qn_text_split_heads(g, qn_node_out(g, parts, 1), heads);
    QnValue *v = qn_unsqueeze(g, qn_node_out(g, parts, 2), 1);
    QnValue *scores = qn_matmul(g, q, k, NULL, false, true);
    scores = qn_mul(g, scores, qn_scalar_like(g, scores, 0.2));
    if (!qn_value_is_poison(scores)) {
        int64_t hours = scores->type.shape.dim[3];
        scores = qn_add(g, scores, qn_net_buffer(net, "mask", &QN_SHAPE(1, hours, hours), 0));
    }
    QnValue *y = qn_matmul(g, qn_softmax(g, scores, -1), v, NULL, false, false);
    y = qn_nn_linear(net, "out", qn_mean(g, y, QN_INTS(1), false), m->size[WIDTH], false);
    qn_net_pop(net);
    return qn_nn_dropout(net, y, 0.1);
}

/* The series so far and the hours to come through one recurrent layer each, (B,T,width). */
static QnValue *remember(QnNet *net, QnValue *past, QnValue *future, int64_t width)
{
    QnGraph *g = net->g;
    past = qn_recurrent_lstm(net, "history", qn_swap_axes(g, past, 0, 1), width);
    future = qn_recurrent_lstm(net, "future", qn_swap_axes(g, future, 0, 1), width);
    return qn_swap_axes(g, qn_concat(g, (QnValue *[]){ past, future }, 2, 0), 0, 1);
}

static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t width = m->size[WIDTH], hours = in->sequence, known = hours - QN_MAX(hours / 8, 1);
    QnValue *context[4];
    (void)layers;
    QnValue *id = qn_input(g, "series", QN_DTYPE_I64, &QN_SHAPE(in->batch, 1, 1));
    id = qn_nn_embedding(net, "series", id, m->size[SERIES], width, NULL);
    id = select_inputs(net, "static", id, NULL);
    for (int i = 0; i < 4; i++) {
        qn_text_push(net, "context", i);
        context[i] = residual(net, "grn", id, NULL, width, 0);
        qn_net_pop(net);
    }
    QnValue *ahead = embed(net, "known", in, m->size[KNOWN], width);
    QnValue *target = embed(net, "target", in, 1, width);
    QnValue *past[] = { qn_slice_axis(g, ahead, 1, 0, known),
                        qn_slice_axis(g, target, 1, 0, known) };
    QnValue *history = select_inputs(net, "past", qn_concat(g, past, 2, 2), context[0]);
    QnValue *future =
        select_inputs(net, "ahead", qn_slice_axis(g, ahead, 1, known, hours), context[0]);
    QnValue *x = gated(net, "input_gate", remember(net, history, future, width), width);
    x = qn_add(g, x, qn_concat(g, (QnValue *[]){ history, future }, 2, 1));
    /* the first states of the recurrent layers */
    x = qn_add(g, x, qn_add(g, context[2], context[3]));
    x = qn_nn_layer_norm(net, "input_norm", x, true);
    QnValue *rich = residual(net, "enrich", x, context[1], width, 0);
    QnValue *y = qn_slice_axis(g, attend(net, m, rich), 1, known, hours);
    rich = qn_slice_axis(g, rich, 1, known, hours);
    y = qn_nn_layer_norm(net, "attention_norm",
                         qn_add(g, gated(net, "attention_gate", y, width), rich), true);
    y = residual(net, "position", y, NULL, width, 0);
    y = qn_add(g, gated(net, "decoder_gate", y, width), qn_slice_axis(g, x, 1, known, hours));
    y = qn_nn_linear(net, "quantiles", qn_nn_layer_norm(net, "decoder_norm", y, true), QUANTILES,
                     true);
    if (!in->train)
        return y;
    QnValue *wanted = qn_input(g, "y", net->dtype, &QN_SHAPE(in->batch, hours - known, 1));
    return qn_mean(g, qn_abs(g, qn_sub(g, y, wanted)), QN_INTS(0, 1, 2), false);
}

static const QnFamily family = {
    .name = "tft", .sequence = 192, .batch = 1024, .step = step, .adam = true
};

static const QnModel models[] = {
    { "tft", &family, { 128, 4, 369, 3 }, 0, "" },
};

const QnModelList qn_models_forecast = { models, QN_COUNT(models) };

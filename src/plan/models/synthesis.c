/* Speech from text: FastPitch, Tacotron 2, and HiFi-GAN, which makes sound of spectrograms.
 * Sentences of LJ Speech have about 566 frames of 11.6 ms and a letter for each 5.7 of them. */
#include "plan/models/recurrent.h"
#include "plan/models/text.h"

#include <math.h>

enum { MELS = 80, LETTERS = 148 };

static int64_t letters_of(const QnStepInput *in)
{
    return QN_MAX((in->sequence * 10 + 56) / 57, 1);
}

static QnValue *text_of(QnNet *net, const QnStepInput *in, int64_t width)
{
    QnShape s = QN_SHAPE(in->batch, letters_of(in));
    return qn_nn_embedding(net, "letters", qn_input(net->g, "x", QN_DTYPE_I64, &s), LETTERS, width,
                           NULL);
}

/* Convolution along the steps of x (B,T,C) that keeps their number. */
static QnValue *conv(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t kernel)
{
    QnConvSpec s = { .out = out, .kernel = kernel, .pad = kernel / 2, .bias = true };
    x = qn_nn_conv(net, name, qn_swap_axes(net->g, x, 1, 2), &s);
    return qn_swap_axes(net->g, x, 1, 2);
}

static QnValue *distance(QnNet *net, const char *name, QnValue *x)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    QnValue *y = qn_sub(g, x, qn_input(g, name, net->dtype, &x->type.shape));
    return qn_mean(g, qn_square(g, y), QN_INTS(0, 1, 2), false);
}

/* ---- FastPitch (Lancucki 2021), version 1.1. size: layers before and after, width, hidden ---- */

enum { LAYERS, WIDTH, HIDDEN };

static QnValue *transform(QnNet *net, const char *name, const QnModel *m, QnValue *x)
{
    enum { HEAD = 64 };
    QnGraph *g = net->g;
    QnValue *part[3];
    qn_net_push(net, name);
    for (int64_t i = 0; i < m->size[LAYERS]; i++) {
        qn_text_push(net, "", i);
        qn_split(g, qn_nn_linear(net, "qkv", x, 3 * HEAD, true), -1, 3, part);
        for (int k = 0; k < 3; k++)
            part[k] = qn_unsqueeze(g, part[k], 1);
        QnValue *y = qn_squeeze(g, qn_attention(g, part[0], part[1], part[2], NULL, false, 0), 1);
        y = qn_nn_dropout(net, qn_nn_linear(net, "out", y, m->size[WIDTH], false), 0.1);
        x = qn_nn_layer_norm(net, "norm1", qn_add(g, x, y), true);
        y = qn_relu(g, conv(net, "conv1", x, m->size[HIDDEN], 3));
        y = qn_nn_dropout(net, conv(net, "conv2", y, m->size[WIDTH], 3), 0.1);
        x = qn_nn_layer_norm(net, "norm2", qn_add(g, x, y), true);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return x;
}

/* A number for each letter: how long, how high, how loud. */
static QnValue *predict(QnNet *net, const char *name, QnValue *x)
{
    qn_net_push(net, name);
    for (int i = 0; i < 2; i++) {
        qn_text_push(net, "", i);
        x = qn_nn_layer_norm(net, "norm", qn_relu(net->g, conv(net, "conv", x, 256, 3)), true);
        x = qn_nn_dropout(net, x, 0.1);
        qn_net_pop(net);
    }
    x = qn_nn_linear(net, "out", x, 1, true);
    qn_net_pop(net);
    return x;
}

/* Which frame belongs to which letter: how near what is heard is to what is written, (B,T,letters).
 */
static QnValue *align(QnNet *net, const QnStepInput *in, QnValue *text, int64_t width)
{
    QnGraph *g = net->g;
    QnShape s = QN_SHAPE(in->batch, in->sequence, MELS);
    qn_net_push(net, "align");
    QnValue *k = conv(net, "k2", qn_relu(g, conv(net, "k1", text, 2 * width, 3)), MELS, 1);
    QnValue *q = conv(net, "q1", qn_input(g, "mels", net->dtype, &s), 2 * MELS, 3);
    q = qn_relu(g, conv(net, "q2", qn_relu(g, q), MELS, 1));
    q = conv(net, "q3", q, MELS, 1);
    QnValue *d = qn_square(g, qn_sub(g, qn_unsqueeze(g, q, 2), qn_unsqueeze(g, k, 1)));
    d = qn_sum(g, d, QN_INTS(3), false);
    qn_net_pop(net);
    return qn_softmax(g, qn_mul(g, d, qn_scalar_like(g, d, -0.0005)), -1);
}

static QnValue *fastpitch(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const char *const names[] = { "duration", "pitch", "energy" };
    QnGraph *g = net->g;
    QnValue *loss = NULL, *text = text_of(net, in, m->size[WIDTH]), *spread;
    (void)layers;
    QnValue *x = transform(net, "encoder", m, text), *told = x;
    for (int i = 0; i < 3; i++) {
        QnValue *y = predict(net, names[i], x);
        if (in->train) {
            QnValue *part = distance(net, names[i], y);
            loss = loss ? qn_add(g, loss, part) : part;
        }
        if (i)
            told = qn_add(g, told,
                          conv(net, i == 1 ? "pitch_emb" : "energy_emb", y, m->size[WIDTH], 3));
    }
    /* each letter as many frames as it lasts */
    if (in->train)
        spread = align(net, in, text, m->size[WIDTH]);
    else
        spread = qn_input(g, "durations", net->dtype,
                          &QN_SHAPE(in->batch, in->sequence, letters_of(in)));
    x = transform(net, "decoder", m, qn_matmul(g, spread, told, NULL, false, false));
    x = qn_nn_linear(net, "mels", x, MELS, true);
    return in->train ? qn_add(g, loss, distance(net, "y", x)) : x;
}

/* ---- Tacotron 2 (Shen et al. 2018) ---- */

static QnValue *conv_norm(QnNet *net, const char *name, QnValue *x, int64_t out)
{
    qn_net_push(net, name);
    QnConvSpec s = { .out = out, .kernel = 5, .pad = 2, .bias = true };
    x = qn_nn_batch_norm(net, "norm", qn_nn_conv(net, "conv", x, &s));
    qn_net_pop(net);
    return x;
}

/* Where in the text each frame is: by its state, and where the frames before were. All frames at
 * once, which is the same work. queries (B,T,1024), text (B,S,512) */
static QnValue *look_up(QnNet *net, const QnStepInput *in, QnValue *queries, QnValue *text)
{
    enum { INNER = 128 };
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.1 };
    QnGraph *g = net->g;
    int64_t letters = letters_of(in);
    QnConvSpec places = { .out = 32, .kernel = 31, .pad = 15 };
    qn_net_push(net, "attention");
    QnValue *seen =
        qn_input(g, "seen", net->dtype, &QN_SHAPE(in->batch * in->sequence, 2, letters));
    seen = qn_swap_axes(g, qn_nn_conv(net, "places", seen, &places), 1, 2);
    seen = qn_nn_linear(net, "place", seen, INNER, false);
    seen = qn_reshape(g, seen, &QN_SHAPE(in->batch, in->sequence, letters, INNER));
    QnValue *q = qn_unsqueeze(g, qn_nn_linear(net, "query", queries, INNER, false), 2);
    QnValue *k = qn_unsqueeze(g, qn_nn_linear(net, "memory", text, INNER, false), 1);
    QnValue *x = qn_tanh(g, qn_add(g, qn_add(g, q, k), seen));
    QnValue *v = qn_net_param(net, "v", &QN_SHAPE(INNER, 1), &init, true);
    x = qn_squeeze(g, qn_matmul(g, x, v, NULL, false, false), 3);
    qn_net_pop(net);
    return qn_matmul(g, qn_softmax(g, x, -1), text, NULL, false, false);
}

static QnValue *tacotron2(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const char *const names[] = { "0", "1", "2", "3", "4" };
    QnGraph *g = net->g;
    QnShape mels = QN_SHAPE(in->batch, in->sequence, MELS);
    (void)m, (void)layers;
    QnValue *text = qn_swap_axes(g, text_of(net, in, 512), 1, 2);
    for (int i = 0; i < 3; i++)
        text = qn_nn_dropout(net, qn_relu(g, conv_norm(net, names[i], text, 512)), 0.5);
    text = qn_recurrent_both(net, "encoder", qn_transpose(g, text, QN_INTS(2, 0, 1)), 256);
    text = qn_swap_axes(g, text, 0, 1);
    QnValue *x = qn_input(g, "mels", net->dtype, &mels);
    x = qn_nn_dropout(net, qn_relu(g, qn_nn_linear(net, "prenet0", x, 256, false)), 0.5);
    x = qn_nn_dropout(net, qn_relu(g, qn_nn_linear(net, "prenet1", x, 256, false)), 0.5);
    /* what was looked up for the frame before goes in too */
    QnShape before = QN_SHAPE(in->batch, in->sequence, 512);
    QnValue *both[] = { x, qn_input(g, "before", net->dtype, &before) };
    x = qn_swap_axes(g, qn_concat(g, both, 2, 2), 0, 1);
    x = qn_swap_axes(g, qn_recurrent_lstm(net, "attention_rnn", x, 1024), 0, 1);
    QnValue *found = look_up(net, in, x, text);
    x = qn_swap_axes(g, qn_concat(g, (QnValue *[]){ x, found }, 2, 2), 0, 1);
    x = qn_swap_axes(g, qn_recurrent_lstm(net, "decoder_rnn", x, 1024), 0, 1);
    x = qn_concat(g, (QnValue *[]){ x, found }, 2, 2);
    QnValue *stop = qn_nn_linear(net, "stop", x, 1, true);
    x = qn_nn_linear(net, "mel", x, MELS, true);
    QnValue *y = qn_swap_axes(g, x, 1, 2);
    qn_net_push(net, "postnet");
    for (int i = 0; i < 5; i++) {
        y = conv_norm(net, names[i], y, i == 4 ? MELS : 512);
        y = qn_nn_dropout(net, i == 4 ? y : qn_tanh(g, y), 0.5);
    }
    qn_net_pop(net);
    y = qn_add(g, x, qn_swap_axes(g, y, 1, 2));
    if (!in->train)
        return y;
    QnValue *loss = qn_add(g, distance(net, "y", x), distance(net, "y2", y));
    return qn_add(g, loss, distance(net, "stops", qn_sigmoid(g, stop)));
}

static const QnFamily fastpitches = {
    .name = "fastpitch", .sequence = 870, .items = 566, .batch = 32, .step = fastpitch, .lamb = true
};
static const QnFamily tacotrons = {
    .name = "tacotron", .sequence = 870, .items = 566, .batch = 48, .step = tacotron2, .adam = true
};

static const QnModel models[] = {
    { "fastpitch", &fastpitches, { 6, 384, 1536 }, 0, "" },
    { "tacotron2", &tacotrons, { 0 }, 28.19, "NVIDIA's weights of Tacotron 2" },
};

const QnModelList qn_models_synthesis = { models, QN_COUNT(models) };

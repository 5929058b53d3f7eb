/* What was said: Jasper, RNN-T, wav2vec 2.0. Utterances of LibriSpeech last 12.3 seconds on
 * average, and up to 16.7, and have about 50 pieces of words. An example is `sequence` frames of 10
 * ms, or samples of sound. */
#include "plan/models/recurrent.h"
#include "plan/models/text.h"

/* ---- Jasper (Li et al. 2019): blocks of one-dimensional convolutions, each fed by all before.
 * size: convolutions of a block ---- */

enum { REPEATS };
enum { JASPER_BLOCKS = 10, MELS = 64, LETTERS = 29 };

typedef struct Layer {
    int64_t out, kernel, stride, dilation, drop; /* drop: percent */
} Layer;

static QnValue *conv_norm(QnNet *net, const char *name, QnValue *x, const Layer *l)
{
    int64_t dilation = l->dilation ? l->dilation : 1;
    QnConvSpec spec = { .out = l->out,
                        .kernel = l->kernel,
                        .stride = l->stride,
                        .dilation = dilation,
                        .pad = dilation * (l->kernel - 1) / 2 };
    qn_net_push(net, name);
    x = qn_nn_batch_norm(net, "norm", qn_nn_conv(net, "conv", x, &spec));
    qn_net_pop(net);
    return x;
}

static QnValue *active(QnNet *net, QnValue *x, const Layer *l)
{
    return qn_nn_dropout(net, qn_relu(net->g, x), 0.01 * (double)l->drop);
}

/* One block; earlier: what came out of those before, of which it adds its own view. */
static QnValue *jasper_block(QnNet *net, const Layer *l, int64_t repeats, QnValue *const *earlier,
                             int n)
{
    QnValue *x = earlier[n - 1];
    for (int64_t i = 0; i < repeats; i++) {
        qn_text_push(net, "sub", i);
        x = conv_norm(net, "main", x, l);
        for (int k = 0; k < n && i == repeats - 1; k++) {
            qn_text_push(net, "from", k);
            x = qn_add(net->g, x, conv_norm(net, "1x1", earlier[k], &(Layer){ l->out, 1 }));
            qn_net_pop(net);
        }
        x = active(net, x, l);
        qn_net_pop(net);
    }
    return x;
}

/* Loss of connectionist temporal classification stands for itself as a mean: its own work, over
 * some tens of letters, is little. */
static QnValue *mean_score(QnNet *net, QnValue *x)
{
    return qn_mean(net->g, qn_log_softmax(net->g, x, -1), QN_INTS(0, 1, 2), false);
}

static QnValue *jasper(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const Layer kinds[] = { { 256, 11, 1, 1, 20 },
                                   { 384, 13, 1, 1, 20 },
                                   { 512, 17, 1, 1, 20 },
                                   { 640, 21, 1, 1, 30 },
                                   { 768, 25, 1, 1, 30 } };
    static const Layer first = { 256, 11, 2, 1, 20 };
    static const Layer last[] = { { 896, 29, 1, 2, 40 }, { 1024, 1, 1, 1, 40 } };
    QnValue *x[JASPER_BLOCKS + 1];
    (void)layers;
    x[0] = qn_input(net->g, "x", net->dtype, &QN_SHAPE(in->batch, MELS, in->sequence));
    x[0] = active(net, conv_norm(net, "first", x[0], &first), &first);
    for (int i = 0; i < JASPER_BLOCKS; i++) {
        qn_text_push(net, "block", i);
        x[i + 1] = jasper_block(net, &kinds[i / 2], m->size[REPEATS], x, i + 1);
        qn_net_pop(net);
    }
    QnValue *y = active(net, conv_norm(net, "last0", x[JASPER_BLOCKS], &last[0]), &last[0]);
    y = active(net, conv_norm(net, "last1", y, &last[1]), &last[1]);
    y = qn_nn_conv(net, "letters", y, &(QnConvSpec){ .out = LETTERS, .kernel = 1, .bias = true });
    y = qn_swap_axes(net->g, y, 1, 2);
    return in->train ? mean_score(net, y) : y;
}

/* ---- RNN-T (Graves 2012) as in MLPerf: an encoder of sound, one of what was written so far, and
 * scores of each pair of their states. size: width of the encoder, of the prediction, of their
 * meeting, pieces of words ---- */

enum { ENCODER, PREDICTION, JOINT, PIECES };
enum { STACKED = 3, RNNT_MELS = 80, WRITTEN = 50 };

static QnValue *rnnt_encoder(QnNet *net, const QnModel *m, const QnStepInput *in)
{
    static const char *const names[] = { "0", "1", "2", "3", "4" };
    QnGraph *g = net->g;
    int64_t steps = (in->sequence / STACKED + 1) / 2 * 2, width = m->size[ENCODER];
    QnShape shape = QN_SHAPE(steps, in->batch, STACKED * RNNT_MELS);
    QnValue *x = qn_input(g, "x", net->dtype, &shape);
    qn_net_push(net, "encoder");
    for (int i = 0; i < 5; i++) {
        if (i == 2) { /* two steps become one */
            x = qn_reshape(g, x, &QN_SHAPE(steps / 2, 2, in->batch, width));
            x = qn_reshape(g, qn_swap_axes(g, x, 1, 2), &QN_SHAPE(steps / 2, in->batch, 2 * width));
        }
        x = qn_nn_dropout(net, qn_recurrent_lstm(net, names[i], x, width), 0.1);
    }
    qn_net_pop(net);
    return qn_nn_linear(net, "joint_encoder", x, m->size[JOINT], true);
}

static QnValue *rnnt_prediction(QnNet *net, const QnModel *m, const QnStepInput *in)
{
    int64_t width = m->size[PREDICTION];
    QnShape shape = QN_SHAPE(WRITTEN + 1, in->batch);
    QnValue *x = qn_nn_embedding(net, "words", qn_input(net->g, "written", QN_DTYPE_I64, &shape),
                                 m->size[PIECES] - 1, width, NULL);
    x = qn_nn_dropout(net, qn_recurrent_lstm(net, "prediction0", x, width), 0.3);
    x = qn_nn_dropout(net, qn_recurrent_lstm(net, "prediction1", x, width), 0.3);
    return qn_nn_linear(net, "joint_prediction", x, m->size[JOINT], true);
}

static QnValue *rnnt(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    (void)layers;
    QnValue *sound = qn_swap_axes(g, rnnt_encoder(net, m, in), 0, 1);
    QnValue *written = qn_swap_axes(g, rnnt_prediction(net, m, in), 0, 1);
    QnValue *x = qn_add(g, qn_unsqueeze(g, sound, 2), qn_unsqueeze(g, written, 1));
    x = qn_nn_dropout(net, qn_relu(g, x), 0.3);
    x = qn_nn_linear(net, "joint", x, m->size[PIECES], true);
    if (!in->train)
        return x;
    /* of each pair the scores of two pieces count: the next one, and none */
    return qn_mean(g, qn_log_softmax(g, x, -1), QN_INTS(0, 1, 2, 3), false);
}

/* ---- wav2vec 2.0 (Baevski et al. 2020), tuned to letters. size: layers, width, heads, hidden ----
 */

enum { LAYERS, WIDTH, HEADS, HIDDEN };

/* Convolutions over samples: a vector for each 20 ms, (B,T,512). */
static QnValue *wave_features(QnNet *net, const QnStepInput *in)
{
    static const int64_t kernels[] = { 10, 3, 3, 3, 3, 2, 2 }, strides[] = { 5, 2, 2, 2, 2, 2, 2 };
    QnGraph *g = net->g;
    int64_t samples = QN_MAX(in->sequence, 400);
    QnValue *x = qn_input(g, "x", net->dtype, &QN_SHAPE(in->batch, 1, samples));
    for (int i = 0; i < QN_COUNT(kernels); i++) {
        QnConvSpec spec = { .out = 512, .kernel = kernels[i], .stride = strides[i], .bias = true };
        qn_text_push(net, "wave", i);
        x = qn_swap_axes(g, qn_nn_conv(net, "conv", x, &spec), 1, 2);
        x = qn_gelu(g, qn_nn_layer_norm(net, "norm", x, true));
        qn_net_pop(net);
        x = i == QN_COUNT(kernels) - 1 ? x : qn_swap_axes(g, x, 1, 2);
    }
    return x;
}

static QnValue *wav2vec2(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t width = m->size[WIDTH];
    QnConvSpec near = { .out = width, .kernel = 128, .pad = 64, .groups = 16, .bias = true };
    QnValue *x = qn_nn_layer_norm(net, "feature_norm", wave_features(net, in), true);
    x = qn_nn_dropout(net, qn_nn_linear(net, "project", x, width, true), 0.1);
    if (qn_value_is_poison(x))
        return x;
    int64_t steps = x->type.shape.dim[1];
    QnValue *y = qn_nn_conv(net, "positions", qn_swap_axes(g, x, 1, 2), &near);
    y = qn_swap_axes(g, qn_gelu(g, qn_slice_axis(g, y, 2, 0, steps)), 1, 2);
    x = qn_nn_dropout(net, qn_add(g, x, y), 0.1);
    layers = layers ? layers : m->size[LAYERS];
    for (int64_t i = 0; i < layers; i++) {
        QnAttentionSpec attention = { .heads = m->size[HEADS], .bias = true, .dropout = 0.1 };
        qn_text_push(net, "layer", i);
        x = qn_nn_block(net, "block", x, &attention);
        qn_net_pop(net);
    }
    x = qn_nn_layer_norm(net, "norm", x, true);
    x = qn_nn_linear(net, "letters", x, 32, true);
    return in->train ? mean_score(net, x) : x;
}

static const QnFamily jaspers = {
    .name = "jasper", .sequence = 1670, .batch = 16, .step = jasper, .adam = true
};
static const QnFamily rnnts = {
    .name = "rnnt", .sequence = 1230, .batch = 128, .step = rnnt, .lamb = true
};
static const QnFamily waves = {
    .name = "wav2vec2", .sequence = 196800, .batch = 8, .step = wav2vec2, .layers = 1, .adam = true
};

static const QnModel models[] = {
    { "jasper10x5dr", &jaspers, { 5 }, 333, "Li et al. 2019, table 3" },
    { "rnnt_mlperf", &rnnts, { 1024, 512, 512, 1024 }, 49, "MLPerf Training's reference: 49 M" },
    { "rnnt", &rnnts, { 1024, 512, 512, 1024 }, 49, "MLPerf Training's reference: 49 M" },
    { "wav2vec2_large_lv60", &waves, { 24, 1024, 16, 4096 }, 317, "Baevski et al. 2020: 317 M" },
};

const QnModelList qn_models_speech = { models, QN_COUNT(models) };

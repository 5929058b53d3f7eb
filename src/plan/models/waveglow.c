/* WaveGlow (Prenger et al. 2019): a flow between sound and noise, told by a spectrogram. An example
 * is `sequence` samples of sound, in groups of eight. */
#include "plan/models/text.h"

/* size: flows, channels of the nets within, their layers */
enum { FLOWS, CHANNELS, LAYERS };
enum { MELS = 80, GROUP = 8, HOP = 256, EARLY_EVERY = 4, EARLY = 2 };

/* Weights as a direction and a length for each output (Salimans and Kingma 2016). */
static QnValue *normed_conv(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t kernel,
                            int64_t dilation)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    int64_t in = x->type.shape.dim[1], pad = (kernel - 1) / 2 * dilation;
    QnInitSpec init = { QN_INIT_KIND_KAIMING_UNIFORM, (double)(in * kernel), 0, 0 };
    QnConvAttr a = { .pads = { 2, { pad, pad } }, .dilations = { 1, { dilation } } };
    qn_net_push(net, name);
    QnValue *v = qn_net_param(net, "weight_v", &QN_SHAPE(out, in, kernel), &init, true);
    QnValue *length = qn_net_param(net, "weight_g", &QN_SHAPE(out, 1, 1), &init, true);
    QnValue *bias = qn_net_param(net, "bias", &QN_SHAPE(out), &init, false);
    QnValue *scale = qn_rsqrt(g, qn_sum(g, qn_square(g, v), QN_INTS(1, 2), true));
    QnValue *w = qn_mul(g, v, qn_mul(g, length, scale));
    qn_net_pop(net);
    return qn_conv(g, x, w, bias, &a);
}

/* Scales and shifts (B,2*half,T) for the other half of the sound. */
static QnValue *inner(QnNet *net, const QnModel *m, QnValue *sound, QnValue *mels, int64_t half)
{
    QnGraph *g = net->g;
    int64_t channels = m->size[CHANNELS], layers = m->size[LAYERS];
    QnValue *x = normed_conv(net, "start", sound, channels, 1, 1), *skipped = NULL, *two[2];
    for (int64_t i = 0; i < layers; i++) {
        bool last = i == layers - 1;
        qn_text_push(net, "", i);
        QnValue *y = normed_conv(net, "in", x, 2 * channels, 3, (int64_t)1 << i);
        qn_split(g, qn_add(g, y, normed_conv(net, "cond", mels, 2 * channels, 1, 1)), 1, 2, two);
        y = qn_mul(g, qn_tanh(g, two[0]), qn_sigmoid(g, two[1]));
        y = normed_conv(net, "res_skip", y, last ? channels : 2 * channels, 1, 1);
        if (!last) {
            qn_split(g, y, 1, 2, two);
            x = qn_add(g, x, two[0]);
            y = two[1];
        }
        skipped = skipped ? qn_add(g, skipped, y) : y;
        qn_net_pop(net);
    }
    return qn_nn_conv(net, "end", skipped,
                      &(QnConvSpec){ .out = 2 * half, .kernel = 1, .bias = true });
}

/* The spectrogram, as long as the sound and grouped like it: (B,80*8,T/8). */
static QnValue *upsample(QnNet *net, const QnStepInput *in)
{
    static const QnInitSpec init = { QN_INIT_KIND_KAIMING_UNIFORM, MELS * 1024, 0, 0 };
    QnGraph *g = net->g;
    int64_t frames = (in->sequence + HOP - 1) / HOP, groups = in->sequence / GROUP;
    QnConvAttr a = { .strides = { 1, { HOP } } };
    QnValue *x = qn_input(g, "mels", net->dtype, &QN_SHAPE(in->batch, MELS, frames));
    qn_net_push(net, "upsample");
    QnValue *w = qn_net_param(net, "weight", &QN_SHAPE(MELS, MELS, 1024), &init, true);
    x = qn_conv_transpose(g, x, w, qn_net_param(net, "bias", &QN_SHAPE(MELS), &init, false), &a,
                          (QnInts){ 0 });
    qn_net_pop(net);
    x = qn_slice_axis(g, x, 2, 0, groups * GROUP);
    x = qn_reshape(g, x, &QN_SHAPE(in->batch, MELS, groups, GROUP));
    x = qn_transpose(g, x, QN_INTS(0, 1, 3, 2));
    return qn_reshape(g, x, &QN_SHAPE(in->batch, MELS * GROUP, groups));
}

static QnValue *mean_square(QnGraph *g, QnValue *x)
{
    return qn_mean(g, qn_square(g, x), QN_INTS(0, 1, 2), false);
}

static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t groups = in->sequence / GROUP, channels = GROUP;
    QnValue *mels = upsample(net, in), *done[GROUP], *loss = NULL, *two[2], *half[2];
    int n = 0;
    (void)layers;
    QnValue *x = qn_input(g, "x", net->dtype, &QN_SHAPE(in->batch, groups, GROUP));
    x = qn_swap_axes(g, x, 1, 2);
    for (int64_t i = 0; i < m->size[FLOWS]; i++) {
        if (i && i % EARLY_EVERY == 0) { /* some of it is ready */
            done[n++] = qn_slice_axis(g, x, 1, 0, EARLY);
            x = qn_slice_axis(g, x, 1, EARLY, channels);
            channels -= EARLY;
        }
        qn_text_push(net, "flow", i);
        x = qn_nn_conv(net, "mix", x, &(QnConvSpec){ .out = channels, .kernel = 1 });
        qn_split(g, x, 1, 2, half);
        qn_split(g, inner(net, m, half[0], mels, channels / 2), 1, 2, two);
        half[1] = qn_add(g, qn_mul(g, qn_exp(g, two[1]), half[1]), two[0]);
        x = qn_concat(g, half, 2, 1);
        QnValue *scales = qn_mean(g, two[1], QN_INTS(0, 1, 2), false);
        loss = loss ? qn_add(g, loss, scales) : scales;
        qn_net_pop(net);
    }
    done[n++] = x;
    x = qn_concat(g, done, n, 1);
    return in->train ? qn_sub(g, mean_square(g, x), loss) : x;
}

static const QnFamily family = {
    .name = "waveglow", .sequence = 8000, .batch = 10, .step = step, .adam = true
};

static const QnModel models[] = {
    { "waveglow", &family, { 12, 512, 8 }, 268, "NVIDIA's weights of WaveGlow with 512 channels" },
};

const QnModelList qn_models_waveglow = { models, QN_COUNT(models) };

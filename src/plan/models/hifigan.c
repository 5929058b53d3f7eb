/* HiFi-GAN (Kong et al. 2020): a generator of sound from spectrograms, and critics that hear what
 * is real. An example is `sequence` frames of 256 samples. */
#include "plan/models/text.h"

#include <math.h>

/* size: channels at first */
enum { CHANNELS };
enum { MELS = 80, HOP = 256 };

static const char frozen[] = "~critics"; /* the scope of those that are not trained */

static QnValue *leaky(QnNet *net, QnValue *x)
{
    return qn_leaky_relu(net->g, x, 0.1);
}

/* What the generator learns from are the critics as they are: the same weights, which take no part
 * in that. */
static QnValue *param(QnNet *net, const char *name, const QnShape *shape, const QnInitSpec *init)
{
    return net->scope[0] == frozen[0] ? qn_net_buffer(net, name, shape, 0)
                                      : qn_net_param(net, name, shape, init, shape->rank > 1);
}

/* Weights as a direction and a length for each output. */
static QnValue *normed(QnNet *net, const QnShape *shape)
{
    QnGraph *g = net->g;
    double fan_in = (double)qn_shape_count(shape) / (double)shape->dim[0];
    QnInitSpec init = { QN_INIT_KIND_KAIMING_UNIFORM, fan_in, 0, 0 };
    QnShape lengths = *shape;
    QnInts axes = { shape->rank - 1, { 0 } };
    for (int i = 1; i < shape->rank; i++) {
        lengths.dim[i] = 1;
        axes.v[i - 1] = i;
    }
    QnValue *v = param(net, "weight_v", shape, &init);
    QnValue *length = param(net, "weight_g", &lengths, &init);
    return qn_mul(g, v, qn_mul(g, length, qn_rsqrt(g, qn_sum(g, qn_square(g, v), axes, true))));
}

static QnValue *bias_of(QnNet *net, int64_t out)
{
    static const QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
    return param(net, "bias", &QN_SHAPE(out), &zeros);
}

typedef struct Conv {
    int64_t out, kernel, stride, groups, dilation; /* the last three: 0 stands for 1 */
} Conv;

/* Along the last axis but one of what has four (B,C,T,p), along the last of what has three. */
static QnValue *conv(QnNet *net, const char *name, QnValue *x, Conv c)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    int64_t groups = QN_MAX(c.groups, 1), dilation = QN_MAX(c.dilation, 1),
            in = x->type.shape.dim[1];
    int64_t pad = (c.kernel - 1) * dilation / 2, stride = QN_MAX(c.stride, 1);
    bool flat = x->type.shape.rank == 4;
    QnShape shape =
        flat ? QN_SHAPE(c.out, in / groups, c.kernel, 1) : QN_SHAPE(c.out, in / groups, c.kernel);
    QnConvAttr a = { .groups = groups };
    a.strides = flat ? (QnInts){ 2, { stride, 1 } } : (QnInts){ 1, { stride } };
    a.dilations = flat ? (QnInts){ 2, { dilation, 1 } } : (QnInts){ 1, { dilation } };
    a.pads = flat ? (QnInts){ 4, { pad, 0, pad, 0 } } : (QnInts){ 2, { pad, pad } };
    qn_net_push(net, name);
    x = qn_conv(g, x, normed(net, &shape), bias_of(net, c.out), &a);
    qn_net_pop(net);
    return x;
}

/* ---- the generator ---- */

static QnValue *widen(QnNet *net, QnValue *x, int64_t out, int64_t kernel, int64_t stride)
{
    if (qn_value_is_poison(x))
        return x;
    int64_t pad = (kernel - stride) / 2;
    QnShape shape = QN_SHAPE(x->type.shape.dim[1], out, kernel);
    QnConvAttr a = { .strides = { 1, { stride } }, .pads = { 2, { pad, pad } } };
    qn_net_push(net, "widen");
    x = qn_conv_transpose(net->g, x, normed(net, &shape), bias_of(net, out), &a, (QnInts){ 0 });
    qn_net_pop(net);
    return x;
}

static QnValue *residual(QnNet *net, QnValue *x, int64_t channels, int64_t kernel)
{
    static const int64_t dilations[] = { 1, 3, 5 };
    for (int i = 0; i < 3; i++) {
        qn_text_push(net, "", i);
        QnValue *y =
            conv(net, "conv1", leaky(net, x), (Conv){ channels, kernel, .dilation = dilations[i] });
        y = conv(net, "conv2", leaky(net, y), (Conv){ channels, kernel });
        x = qn_add(net->g, x, y);
        qn_net_pop(net);
    }
    return x;
}

/* Frames (B,80,T) to sound (B,1,256 T). */
static QnValue *generate(QnNet *net, const QnModel *m, QnValue *x)
{
    static const int64_t strides[] = { 8, 8, 2, 2 }, kernels[] = { 3, 7, 11 };
    QnGraph *g = net->g;
    int64_t channels = m->size[CHANNELS];
    qn_net_push(net, "generator");
    x = conv(net, "first", x, (Conv){ channels, 7 });
    for (int i = 0; i < 4; i++) {
        QnValue *sum = NULL;
        channels /= 2;
        qn_text_push(net, "up", i);
        x = widen(net, leaky(net, x), channels, 2 * strides[i], strides[i]);
        for (int k = 0; k < 3; k++) {
            qn_text_push(net, "block", k);
            QnValue *y = residual(net, x, channels, kernels[k]);
            sum = sum ? qn_add(g, sum, y) : y;
            qn_net_pop(net);
        }
        x = qn_mul(g, sum, qn_scalar_like(g, sum, 1.0 / 3));
        qn_net_pop(net);
    }
    x = qn_tanh(g, conv(net, "last", leaky(net, x), (Conv){ 1, 7 }));
    qn_net_pop(net);
    return x;
}

/* ---- critics: their scores' mean squares, of sound (B,1,S) ---- */

static QnValue *mean_square(QnGraph *g, QnValue *x)
{
    QnInts axes = { 3, { 0, 1, 2 } };
    if (!qn_value_is_poison(x) && x->type.shape.rank == 4)
        axes = (QnInts){ 4, { 0, 1, 2, 3 } };
    return qn_mean(g, qn_square(g, x), axes, false);
}

static QnValue *run(QnNet *net, QnValue *x, const Conv *convs, int n)
{
    for (int i = 0; i < n; i++) {
        qn_text_push(net, "", i);
        x = conv(net, "conv", x, convs[i]);
        x = i < n - 1 ? leaky(net, x) : x;
        qn_net_pop(net);
    }
    return mean_square(net->g, x);
}

/* Hears every `period`-th sample. */
static QnValue *by_period(QnNet *net, QnValue *x, int64_t period)
{
    static const Conv convs[] = { { 32, 5, 3 },   { 128, 5, 3 },  { 512, 5, 3 },
                                  { 1024, 5, 3 }, { 1024, 5, 1 }, { 1, 3, 1 } };
    if (qn_value_is_poison(x))
        return x;
    int64_t batch = x->type.shape.dim[0], rows = x->type.shape.dim[2] / period;
    x = qn_slice_axis(net->g, x, 2, 0, rows * period);
    x = qn_reshape(net->g, x, &QN_SHAPE(batch, 1, rows, period));
    return run(net, x, convs, QN_COUNT(convs));
}

static QnValue *by_scale(QnNet *net, QnValue *x)
{
    static const Conv convs[] = { { 128, 15 },         { 128, 41, 2, 4 },
                                  { 256, 41, 2, 16 },  { 512, 41, 4, 16 },
                                  { 1024, 41, 4, 16 }, { 1024, 41, 1, 16 },
                                  { 1024, 5 },         { 1, 3 } };
    return run(net, x, convs, QN_COUNT(convs));
}

static QnValue *judge(QnNet *net, QnValue *x)
{
    static const int64_t periods[] = { 2, 3, 5, 7, 11 };
    static const QnPoolAttr pool = { .kernel = { 1, { 4 } },
                                     .strides = { 1, { 2 } },
                                     .pads = { 2, { 2, 2 } } };
    QnGraph *g = net->g;
    QnValue *sum = NULL;
    for (int i = 0; i < QN_COUNT(periods); i++) {
        qn_text_push(net, "period", periods[i]);
        QnValue *y = by_period(net, x, periods[i]);
        sum = sum ? qn_add(g, sum, y) : y;
        qn_net_pop(net);
    }
    for (int i = 0; i < 3; i++) {
        qn_text_push(net, "scale", i);
        sum = qn_add(g, sum, by_scale(net, x));
        x = qn_avg_pool(g, x, &pool);
        qn_net_pop(net);
    }
    return sum;
}

/* A step trains the critics on what is real and what is not, then the generator by what they say of
 * both. */
static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    (void)layers;
    QnShape frames = QN_SHAPE(in->batch, MELS, in->sequence);
    QnShape sound = QN_SHAPE(in->batch, 1, HOP * in->sequence);
    QnValue *made = generate(net, m, qn_input(g, "x", net->dtype, &frames));
    if (!in->train)
        return made;
    QnValue *real = qn_input(g, "y", net->dtype, &sound);
    /* made before, as no gradient goes back from here */
    QnValue *before = qn_input(g, "made", net->dtype, &sound);
    QnValue *loss = judge(net, qn_concat(g, (QnValue *[]){ real, before }, 2, 0));
    qn_net_push(net, frozen);
    loss = qn_add(g, loss, judge(net, made));
    qn_net_push(net, "real");
    loss = qn_add(g, loss, judge(net, real));
    qn_net_pop(net);
    qn_net_pop(net);
    return loss;
}

/* Rates are published as 80 "frames" an example, which is how many mels one has. */
static const QnFamily family = {
    .name = "hifigan", .sequence = 32, .items = MELS, .batch = 16, .step = step, .adam = true
};

static const QnModel models[] = {
    /* 13.94 M of the generator, 41.1 M and 29.6 M of the critics, which are there in training */
    { "hifigan", &family, { 512 }, 13.94, "Kong et al. 2020: the generator has 13.92 M" },
};

const QnModelList qn_models_hifigan = { models, QN_COUNT(models) };

/* Convolutional nets before and beside ResNet: AlexNet, VGG, SqueezeNet, DenseNet, Inception. */
#include "plan/models.h"

#include <stdio.h>

typedef struct Pool {
    int64_t kernel, stride, pad;
    bool ceil_mode;
} Pool;

static QnPoolAttr pool_attr(Pool p)
{
    return (QnPoolAttr){ .kernel = { 2, { p.kernel, p.kernel } },
                         .strides = { 2, { p.stride, p.stride } },
                         .pads = { 4, { p.pad, p.pad, p.pad, p.pad } },
                         .ceil_mode = p.ceil_mode };
}

static QnValue *max_pool(QnNet *net, QnValue *x, Pool p)
{
    QnPoolAttr a = pool_attr(p);
    return qn_max_pool(net->g, x, &a);
}

static QnValue *avg_pool(QnNet *net, QnValue *x, Pool p)
{
    QnPoolAttr a = pool_attr(p);
    a.count_include_pad = true;
    return qn_avg_pool(net->g, x, &a);
}

static int64_t channels(const QnValue *x)
{
    return x->type.shape.rank > 1 ? x->type.shape.dim[1] : 1;
}

/* A number as the name of what is built until the pop. */
static void push_number(QnNet *net, const char *prefix, int64_t i)
{
    char name[32];
    snprintf(name, sizeof name, "%s%lld", prefix, (long long)i);
    qn_net_push(net, name);
}

/* ---- AlexNet, Krizhevsky 2014 ("one weird trick"), as torchvision's ---- */

static QnValue *alexnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const QnConvSpec convs[] = {
        { .out = 64, .kernel = 11, .stride = 4, .pad = 2, .bias = true },
        { .out = 192, .kernel = 5, .pad = 2, .bias = true },
        { .out = 384, .kernel = 3, .pad = 1, .bias = true },
        { .out = 256, .kernel = 3, .pad = 1, .bias = true },
        { .out = 256, .kernel = 3, .pad = 1, .bias = true },
    };
    QnGraph *g = net->g;
    (void)m, (void)layers;
    for (int i = 0; i < QN_COUNT(convs); i++) {
        push_number(net, "features", i);
        x = qn_relu(g, qn_nn_conv(net, "conv", x, &convs[i]));
        qn_net_pop(net);
        if (i != 2 && i != 3)
            x = max_pool(net, x, (Pool){ 3, 2, 0, false });
    }
    x = qn_flatten(g, qn_adaptive_avg_pool(g, x, (QnInts){ 2, { 6, 6 } }), 1);
    x = qn_relu(g, qn_nn_linear(net, "fc1", qn_nn_dropout(net, x, 0.5), 4096, true));
    x = qn_relu(g, qn_nn_linear(net, "fc2", qn_nn_dropout(net, x, 0.5), 4096, true));
    return qn_nn_linear(net, "fc3", x, 1000, true);
}

/* ---- VGG. size: depth, batch norm ---- */

static QnValue *vgg(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnVggSpec spec = {
        .depth = (int)m->size[0], .batch_norm = m->size[1] != 0, .outputs = 1000, .dropout = 0.5
    };
    (void)layers;
    return qn_nn_vgg(net, x, &spec);
}

/* ---- SqueezeNet. size: 0 for version 1.0, 1 for 1.1 ---- */

static QnValue *fire(QnNet *net, int64_t number, QnValue *x, int64_t squeeze, int64_t expand)
{
    QnGraph *g = net->g;
    QnConvSpec s = { .out = squeeze, .kernel = 1, .bias = true };
    QnConvSpec e1 = { .out = expand, .kernel = 1, .bias = true };
    QnConvSpec e3 = { .out = expand, .kernel = 3, .pad = 1, .bias = true };
    push_number(net, "fire", number);
    x = qn_relu(g, qn_nn_conv(net, "squeeze", x, &s));
    QnValue *parts[] = { qn_relu(g, qn_nn_conv(net, "expand1x1", x, &e1)),
                         qn_relu(g, qn_nn_conv(net, "expand3x3", x, &e3)) };
    qn_net_pop(net);
    return qn_concat(g, parts, 2, 1);
}

static QnValue *squeezenet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int64_t squeeze[] = { 16, 16, 32, 32, 48, 48, 64, 64 };
    static const int pools[2][2] = { { 3, 7 }, { 2, 4 } }; /* before these numbers of fire */
    QnGraph *g = net->g;
    bool old = !m->size[0];
    QnConvSpec first = { .out = old ? 96 : 64, .kernel = old ? 7 : 3, .stride = 2, .bias = true };
    Pool pool = { 3, 2, 0, true };
    (void)layers;
    x = max_pool(net, qn_relu(g, qn_nn_conv(net, "conv1", x, &first)), pool);
    for (int i = 0; i < QN_COUNT(squeeze); i++) {
        const int *at = pools[old ? 0 : 1];
        if (i == at[0] || i == at[1])
            x = max_pool(net, x, pool);
        x = fire(net, i + 2, x, squeeze[i], 4 * squeeze[i]);
    }
    QnConvSpec last = { .out = 1000, .kernel = 1, .bias = true };
    x = qn_relu(g, qn_nn_conv(net, "classifier", qn_nn_dropout(net, x, 0.5), &last));
    return qn_flatten(g, qn_global_avg_pool(g, x), 1);
}

/* ---- DenseNet. size: growth, first channels, layers of the four blocks ---- */

static QnValue *norm_conv(QnNet *net, const char *name, QnValue *x, const QnConvSpec *spec)
{
    qn_net_push(net, name);
    x = qn_relu(net->g, qn_nn_batch_norm(net, "norm", x));
    x = qn_nn_conv(net, "conv", x, spec);
    qn_net_pop(net);
    return x;
}

static QnValue *densenet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t growth = m->size[0];
    QnConvSpec first = { .out = m->size[1], .kernel = 7, .stride = 2, .pad = 3 };
    QnConvSpec narrow = { .out = 4 * growth, .kernel = 1 };
    QnConvSpec wide = { .out = growth, .kernel = 3, .pad = 1 };
    (void)layers;
    x = qn_relu(g, qn_nn_batch_norm(net, "norm0", qn_nn_conv(net, "conv0", x, &first)));
    x = max_pool(net, x, (Pool){ 3, 2, 1, false });
    for (int b = 0; b < 4; b++) {
        push_number(net, "denseblock", b + 1);
        for (int64_t i = 0; i < m->size[2 + b]; i++) {
            push_number(net, "denselayer", i + 1);
            QnValue *y = norm_conv(net, "1", x, &narrow);
            y = norm_conv(net, "2", y, &wide);
            x = qn_concat(g, (QnValue *[]){ x, y }, 2, 1);
            qn_net_pop(net);
        }
        qn_net_pop(net);
        if (b == 3)
            break;
        push_number(net, "transition", b + 1);
        x = norm_conv(net, "t", x, &(QnConvSpec){ .out = channels(x) / 2, .kernel = 1 });
        x = avg_pool(net, x, (Pool){ 2, 2, 0, false });
        qn_net_pop(net);
    }
    x = qn_relu(g, qn_nn_batch_norm(net, "norm5", x));
    return qn_nn_linear(net, "classifier", qn_flatten(g, qn_global_avg_pool(g, x), 1), 1000, true);
}

static const QnFamily alexnets = { .name = "alexnet", .image = 224, .build = alexnet };
static const QnFamily vggs = { .name = "vgg", .image = 224, .build = vgg };
static const QnFamily squeezenets = { .name = "squeezenet", .image = 224, .build = squeezenet };
static const QnFamily densenets = { .name = "densenet", .image = 224, .build = densenet };

static const QnModel models[] = {
    { "alexnet", &alexnets, { 0 }, 61.101, "torchvision 0.19, Krizhevsky 2014", 0.714 },
    { "vgg11", &vggs, { 11 }, 132.863, "torchvision 0.19, Simonyan and Zisserman 2015", 7.609 },
    { "vgg13", &vggs, { 13 }, 133.048, "torchvision 0.19, Simonyan and Zisserman 2015", 11.308 },
    { "vgg16", &vggs, { 16 }, 138.358, "torchvision 0.19, Simonyan and Zisserman 2015", 15.47 },
    { "vgg19", &vggs, { 19 }, 143.667, "torchvision 0.19, Simonyan and Zisserman 2015", 19.632 },
    { "vgg11_bn", &vggs, { 11, 1 }, 132.869, "torchvision 0.19", 7.609 },
    { "vgg13_bn", &vggs, { 13, 1 }, 133.054, "torchvision 0.19", 11.308 },
    { "vgg16_bn", &vggs, { 16, 1 }, 138.366, "torchvision 0.19", 15.47 },
    { "vgg19_bn", &vggs, { 19, 1 }, 143.678, "torchvision 0.19", 19.632 },
    { "squeezenet1_0", &squeezenets, { 0 }, 1.248, "torchvision 0.19, Iandola et al. 2016", 0.819 },
    { "squeezenet1_1", &squeezenets, { 1 }, 1.235, "torchvision 0.19, Iandola et al. 2016", 0.349 },
    { "densenet121", &densenets, { 32, 64, 6, 12, 24, 16 }, 7.979, "torchvision 0.19", 2.834 },
    { "densenet161", &densenets, { 48, 96, 6, 12, 36, 24 }, 28.681, "torchvision 0.19", 7.728 },
    { "densenet169", &densenets, { 32, 64, 6, 12, 32, 32 }, 14.149, "torchvision 0.19", 3.36 },
    { "densenet201", &densenets, { 32, 64, 6, 12, 48, 32 }, 20.014, "torchvision 0.19", 4.291 },
};

const QnModelList qn_models_cnn = { models, QN_COUNT(models) };

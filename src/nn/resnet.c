/* ResNet: stages of residual blocks. */
#include "nn/models.h"
#include "nn/names.h"

#include <stdio.h>

typedef struct Plan {
    int depth;
    bool bottleneck; /* 1x1, 3x3, 1x1 with four times the channels at the end; else 3x3, 3x3 */
    int blocks[4];
} Plan;

static const Plan plans[] = {
    { 18, false, { 2, 2, 2, 2 } },  { 34, false, { 3, 4, 6, 3 } },  { 50, true, { 3, 4, 6, 3 } },
    { 101, true, { 3, 4, 23, 3 } }, { 152, true, { 3, 8, 36, 3 } }, { 200, true, { 3, 24, 36, 3 } },
};

/* Convolution without bias and batch norm, numbered as torchvision's blocks do. */
static QnValue *conv_norm(QnNet *net, int number, QnValue *x, int64_t out, int64_t kernel,
                          int64_t stride, int64_t groups)
{
    char conv[16], norm[16];
    snprintf(conv, sizeof conv, "conv%d", number);
    snprintf(norm, sizeof norm, "bn%d", number);
    QnConvSpec spec = {
        .out = out, .kernel = kernel, .stride = stride, .pad = kernel / 2, .groups = groups
    };
    return qn_nn_batch_norm(net, norm, qn_nn_conv(net, conv, x, &spec));
}

/* The way around a block, where it changes the shape. */
static QnValue *shortcut(QnNet *net, QnValue *x, int64_t out, int64_t stride)
{
    if (qn_value_is_poison(x) || (stride == 1 && x->type.shape.dim[1] == out))
        return x;
    qn_net_push(net, "downsample");
    x = qn_nn_conv(net, "0", x, &(QnConvSpec){ .out = out, .kernel = 1, .stride = stride });
    x = qn_nn_batch_norm(net, "1", x);
    qn_net_pop(net);
    return x;
}

/* Gates the channels of x by what their means say. */
static QnValue *squeeze(QnNet *net, QnValue *x, int64_t reduction)
{
    QnGraph *g = net->g;
    if (!reduction || qn_value_is_poison(x))
        return x;
    int64_t channels = x->type.shape.dim[1];
    QnConvSpec down = { .out = channels / reduction, .kernel = 1, .bias = true };
    QnConvSpec up = { .out = channels, .kernel = 1, .bias = true };
    qn_net_push(net, "se_module");
    QnValue *gate = qn_relu(g, qn_nn_conv(net, "fc1", qn_global_avg_pool(g, x), &down));
    gate = qn_sigmoid(g, qn_nn_conv(net, "fc2", gate, &up));
    qn_net_pop(net);
    return qn_mul(g, x, gate);
}

static QnValue *block(QnNet *net, const Plan *p, const QnResnetSpec *spec, QnValue *x,
                      int64_t width, int64_t stride)
{
    QnGraph *g = net->g;
    QnValue *y;
    int64_t out = p->bottleneck ? 4 * width : width;
    if (p->bottleneck) {
        int64_t groups = spec->groups ? spec->groups : 1;
        int64_t inner = width * (spec->group_width ? spec->group_width : 64) / 64 * groups;
        y = qn_relu(g, conv_norm(net, 1, x, inner, 1, 1, 1));
        y = qn_relu(g, conv_norm(net, 2, y, inner, 3, stride, groups));
        y = conv_norm(net, 3, y, out, 1, 1, 1);
    } else {
        y = qn_relu(g, conv_norm(net, 1, x, width, 3, stride, 1));
        y = conv_norm(net, 2, y, out, 3, 1, 1);
    }
    y = squeeze(net, y, spec->squeeze);
    return qn_relu(g, qn_add(g, y, shortcut(net, x, out, stride)));
}

static QnValue *stage(QnNet *net, const Plan *p, const QnResnetSpec *spec, int number, QnValue *x,
                      int64_t width)
{
    char name[16];
    snprintf(name, sizeof name, "layer%d", number + 1);
    qn_net_push(net, name);
    for (int i = 0; i < p->blocks[number]; i++) {
        snprintf(name, sizeof name, "%d", i);
        qn_net_push(net, name);
        x = block(net, p, spec, x, width, i == 0 && number > 0 ? 2 : 1);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return x;
}

QnValue *qn_nn_resnet(QnNet *net, QnValue *x, const QnResnetSpec *spec)
{
    QnGraph *g = net->g;
    const Plan *p = NULL;
    for (int i = 0; i < QN_COUNT(plans); i++)
        p = plans[i].depth == spec->depth ? &plans[i] : p;
    if (!p) {
        qn_fail(QN_EARG, "resnet: no depth %d; there are 18, 34, 50, 101, 152, 200", spec->depth);
        return qn_graph_poison(g);
    }
    int64_t width = spec->width ? spec->width : 64;
    x = qn_relu(g, conv_norm(net, 1, x, width, spec->small ? 3 : 7, spec->small ? 1 : 2, 1));
    if (!spec->small)
        x = qn_max_pool(g, x,
                        &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                                       .strides = { 2, { 2, 2 } },
                                       .pads = { 4, { 1, 1, 1, 1 } } });
    for (int i = 0; i < 4; i++)
        x = stage(net, p, spec, i, x, width << i);
    x = qn_flatten(g, qn_global_avg_pool(g, x), 1);
    return qn_nn_linear(net, "fc", x, spec->outputs, true);
}

/* torchvision's names are the model's own; these are Hugging Face's. */
static const QnNameRule rules[] = {
    { "resnet.embedder.embedder.convolution.weight", "conv1.weight" },
    { "resnet.embedder.embedder.normalization.num_batches_tracked", NULL },
    { "resnet.embedder.embedder.normalization.*", "bn1.*" },
    { "resnet.encoder.stages.#.layers.#.layer.#.normalization.num_batches_tracked", NULL },
    { "resnet.encoder.stages.#.layers.#.layer.#.convolution.weight", "layer+.#.conv+.weight" },
    { "resnet.encoder.stages.#.layers.#.layer.#.normalization.*", "layer+.#.bn+.*" },
    { "resnet.encoder.stages.#.layers.#.shortcut.normalization.num_batches_tracked", NULL },
    { "resnet.encoder.stages.#.layers.#.shortcut.convolution.weight",
      "layer+.#.downsample.0.weight" },
    { "resnet.encoder.stages.#.layers.#.shortcut.normalization.*", "layer+.#.downsample.1.*" },
    { "classifier.1.*", "fc.*" },
};

const QnNameMap qn_names_resnet = { .rules = rules, .n_rules = QN_COUNT(rules) };

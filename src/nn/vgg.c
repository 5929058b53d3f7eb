/* LeNet and VGG: plain stacks of convolutions. */
#include "nn/models.h"
#include "nn/names.h"

#include <stdio.h>

static QnValue *max_pool(QnGraph *g, QnValue *x)
{
    return qn_max_pool(g, x, &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } });
}

QnValue *qn_nn_lenet(QnNet *net, QnValue *x, int64_t outputs)
{
    QnGraph *g = net->g;
    x = qn_nn_conv(net, "conv1", x, &(QnConvSpec){ .out = 6, .kernel = 5, .pad = 2, .bias = true });
    x = max_pool(g, qn_relu(g, x));
    x = qn_nn_conv(net, "conv2", x, &(QnConvSpec){ .out = 16, .kernel = 5, .bias = true });
    x = qn_flatten(g, max_pool(g, qn_relu(g, x)), 1);
    x = qn_relu(g, qn_nn_linear(net, "fc1", x, 120, true));
    x = qn_relu(g, qn_nn_linear(net, "fc2", x, 84, true));
    return qn_nn_linear(net, "fc3", x, outputs, true);
}

/* Channels of the convolutions, 0 for a pool, -1 at the end. */
static const int plans[][24] = {
    { 11, 64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0, -1 },
    { 13, 64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0, -1 },
    { 16, 64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0, -1 },
    { 19,  64,  64,  0,   128, 128, 0,   256, 256, 256, 256, 0,
      512, 512, 512, 512, 0,   512, 512, 512, 512, 0,   -1 },
};

static QnValue *features(QnNet *net, QnValue *x, const QnVggSpec *spec, const int *plan)
{
    QnGraph *g = net->g;
    int at = 0; /* position in torchvision's list of modules, which names the parameters */
    qn_net_push(net, "features");
    for (int i = 0; plan[i] >= 0; i++) {
        char name[16];
        if (plan[i] == 0) {
            x = max_pool(g, x);
            at++;
            continue;
        }
        snprintf(name, sizeof name, "%d", at++);
        x = qn_nn_conv(net, name, x,
                       &(QnConvSpec){ .out = plan[i], .kernel = 3, .pad = 1, .bias = true });
        if (spec->batch_norm) {
            snprintf(name, sizeof name, "%d", at++);
            x = qn_nn_batch_norm(net, name, x);
        }
        x = qn_relu(g, x);
        at++;
    }
    qn_net_pop(net);
    return x;
}

QnValue *qn_nn_vgg(QnNet *net, QnValue *x, const QnVggSpec *spec)
{
    QnGraph *g = net->g;
    const int *plan = NULL;
    for (int i = 0; i < QN_COUNT(plans); i++)
        plan = plans[i][0] == spec->depth ? plans[i] + 1 : plan;
    if (!plan) {
        qn_fail(QN_EARG, "vgg: no depth %d; there are 11, 13, 16, 19", spec->depth);
        return qn_graph_poison(g);
    }
    x = features(net, x, spec, plan);
    if (spec->small) {
        x = qn_flatten(g, qn_global_avg_pool(g, x), 1);
        return qn_nn_linear(net, "classifier", qn_nn_dropout(net, x, spec->dropout), spec->outputs,
                            true);
    }
    x = qn_flatten(g, qn_adaptive_avg_pool(g, x, (QnInts){ 2, { 7, 7 } }), 1);
    qn_net_push(net, "classifier");
    x = qn_relu(g, qn_nn_linear(net, "0", x, 4096, true));
    x = qn_nn_dropout(net, x, spec->dropout);
    x = qn_relu(g, qn_nn_linear(net, "3", x, 4096, true));
    x = qn_nn_dropout(net, x, spec->dropout);
    x = qn_nn_linear(net, "6", x, spec->outputs, true);
    qn_net_pop(net);
    return x;
}

/* torchvision's names are the model's own. The small form has one linear layer, `classifier`: the
 * last of another program's head, where that has the width of the last convolution. */
static const QnNameRule rules[] = {
    { "head.fc.*", "classifier.*" },
};

const QnNameMap qn_names_vgg = { .rules = rules, .n_rules = QN_COUNT(rules) };

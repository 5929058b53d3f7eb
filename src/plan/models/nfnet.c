/* Residual nets with other means of normalising and attending: NFNet (Brock et al. 2021), without
 * norms of activations, and ResNeSt (Zhang et al. 2022), whose 3x3 convolutions are weighed. */
#include "plan/models/blocks.h"

/* ---- NFNet. size: layers of the four stages, whether the residual has a trained gain ---- */

/* Convolution whose weights have mean 0 and variance 1 for each output, times a trained gain. */
static QnValue *standard_conv(QnNet *net, const char *name, QnValue *x, const QnConvNorm *s)
{
    QnGraph *g = net->g;
    int64_t groups = s->groups ? s->groups : 1, in = qn_block_dim(x, 1) / groups, k = s->kernel;
    QnInitSpec init = { QN_INIT_KIND_KAIMING_NORMAL, (double)(in * k * k), (double)s->out, 0 };
    QnInitSpec ones = { QN_INIT_KIND_ONES, 0, 0, 0 }, zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
    int64_t stride = s->stride ? s->stride : 1;
    QnConvAttr a = { .strides = { 2, { stride, stride } },
                     .pads = { 4, { k / 2, k / 2, k / 2, k / 2 } },
                     .groups = groups };
    qn_net_push(net, name);
    QnValue *w = qn_net_param(net, "weight", &QN_SHAPE(s->out, in, k, k), &init, true);
    QnValue *gain = qn_net_param(net, "gain", &QN_SHAPE(s->out, 1, 1, 1), &ones, false);
    QnValue *bias = qn_net_param(net, "bias", &QN_SHAPE(s->out), &zeros, false);
    w = qn_mul(g, qn_mean_variance_norm(g, w, (QnInts){ 3, { 1, 2, 3 } }, 1e-6), gain);
    x = qn_conv(g, x, w, bias, &a);
    qn_net_pop(net);
    return qn_block_act(net, x, s->act);
}

static QnValue *nf_block(QnNet *net, QnValue *x, int64_t out, int64_t stride, bool gain)
{
    QnGraph *g = net->g;
    int64_t mid = out / 2, groups = mid / 128;
    QnConvNorm c1 = { .out = mid, .kernel = 1, .act = QN_ACT_GELU };
    QnConvNorm c2 = {
        .out = mid, .kernel = 3, .stride = stride, .groups = groups, .act = QN_ACT_GELU
    };
    QnConvNorm c3 = { .out = mid, .kernel = 3, .groups = groups, .act = QN_ACT_GELU };
    QnConvNorm c4 = { .out = out, .kernel = 1 };
    QnValue *y = qn_mul_scalar(g, qn_gelu(g, x), 0.98), *around = x; /* by the depth's variance */
    if (stride > 1 || qn_block_dim(x, 1) != out) {
        around = stride > 1 ? qn_block_halve(net, y) : y;
        around = standard_conv(net, "downsample", around, &c4);
    }
    y = standard_conv(net, "conv1", y, &c1);
    y = standard_conv(net, "conv2", y, &c2);
    y = standard_conv(net, "conv2b", y, &c3);
    y = standard_conv(net, "conv3", y, &c4);
    y = qn_block_squeeze(net, "attn_last", y, out / 2, QN_ACT_RELU, QN_ACT_SIGMOID);
    if (gain) {
        QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
        y = qn_mul(g, y, qn_net_param(net, "skipinit_gain", &QN_SHAPE(1), &zeros, false));
    }
    return qn_add(g, qn_mul_scalar(g, y, 2 * 0.2), around);
}

static QnValue *nfnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const QnConvNorm stem[] = {
        { .out = 16, .kernel = 3, .stride = 2, .act = QN_ACT_GELU },
        { .out = 32, .kernel = 3, .act = QN_ACT_GELU },
        { .out = 64, .kernel = 3, .act = QN_ACT_GELU },
        { .out = 128, .kernel = 3, .stride = 2 },
    };
    static const int64_t width[] = { 256, 512, 1536, 1536 };
    QnConvNorm last = { .out = 3072, .kernel = 1, .act = QN_ACT_GELU };
    (void)layers;
    for (int i = 0; i < QN_COUNT(stem); i++) {
        qn_block_push(net, "stem", i);
        x = standard_conv(net, "conv", x, &stem[i]);
        qn_net_pop(net);
    }
    for (int i = 0; i < QN_COUNT(width); i++) {
        qn_block_push(net, "stages", i);
        for (int64_t k = 0; k < m->size[i]; k++) {
            qn_block_push(net, "", k);
            x = nf_block(net, x, width[i], i && !k ? 2 : 1, m->size[4] != 0);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", standard_conv(net, "final_conv", x, &last), 0.2);
}

/* ---- ResNeSt-50 of two weighed parts ---- */

/* A grouped convolution to twice `width` channels; the two halves are weighed by a softmax. */
static QnValue *split_attention(QnNet *net, QnValue *x, int64_t width)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), h = qn_block_dim(x, 2), w = qn_block_dim(x, 3);
    QnConvNorm conv = { .out = 2 * width, .kernel = 3, .groups = 2, .act = QN_ACT_RELU };
    QnConvSpec down = { .out = QN_MAX(32, width / 2), .kernel = 1, .bias = true };
    QnConvSpec up = { .out = 2 * width, .kernel = 1, .bias = true };
    QnInts first = { 1, { 1 } };
    x = qn_block_conv(net, "conv", x, &conv);
    QnValue *parts = qn_reshape(g, x, &QN_SHAPE(n, 2, width, h, w));
    QnValue *a = qn_global_avg_pool(g, qn_sum(g, parts, first, false));
    a = qn_relu(g, qn_nn_batch_norm(net, "bn1", qn_nn_conv(net, "fc1", a, &down)));
    a = qn_reshape(g, qn_nn_conv(net, "fc2", a, &up), &QN_SHAPE(n, 2, width, 1, 1));
    return qn_sum(g, qn_mul(g, parts, qn_softmax(g, a, 1)), first, false);
}

static QnValue *resnest_block(QnNet *net, QnValue *x, int64_t width, int64_t stride, bool first)
{
    QnConvNorm in = { .out = width, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm out = { .out = 4 * width, .kernel = 1 };
    QnValue *y = qn_block_conv(net, "conv1", x, &in);
    qn_net_push(net, "conv2");
    y = split_attention(net, y, width);
    qn_net_pop(net);
    if (first)
        y = qn_block_avg_pool(net, y, 3, stride, 1);
    y = qn_block_conv(net, "conv3", y, &out);
    if (first) {
        x = stride > 1 ? qn_block_halve(net, x) : x;
        x = qn_block_conv(net, "downsample", x, &out);
    }
    return qn_relu(net->g, qn_add(net->g, y, x));
}

static QnValue *resnest(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int depth[] = { 3, 4, 6, 3 };
    QnConvNorm stem[] = { { .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_RELU },
                          { .out = 32, .kernel = 3, .act = QN_ACT_RELU },
                          { .out = 64, .kernel = 3, .act = QN_ACT_RELU } };
    (void)m, (void)layers;
    for (int i = 0; i < QN_COUNT(stem); i++) {
        qn_block_push(net, "conv1_", i);
        x = qn_block_conv(net, "c", x, &stem[i]);
        qn_net_pop(net);
    }
    x = qn_block_max_pool(net, x, 3, 2, 1);
    for (int i = 0; i < QN_COUNT(depth); i++) {
        qn_block_push(net, "layer", i + 1);
        for (int k = 0; k < depth[i]; k++) {
            qn_block_push(net, "", k);
            x = resnest_block(net, x, (int64_t)64 << i, i && !k ? 2 : 1, k == 0);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    return qn_block_classify(net, "fc", x, 0);
}

static const QnFamily nfnets = { .name = "nfnet", .image = 192, .build = nfnet };
static const QnFamily resnests = { .name = "resnest", .image = 224, .build = resnest };

#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "nfnet_f0", &nfnets, { 1, 2, 6, 3 }, 71.489, TIMM, 6.977 },
    { "dm_nfnet_f0", &nfnets, { 1, 2, 6, 3, 1 }, 71.489, TIMM, 6.977 },
    { "resnest50d", &resnests, { 0 }, 27.483, TIMM, 5.3712 },
};

const QnModelList qn_models_nfnet = { models, QN_COUNT(models) };

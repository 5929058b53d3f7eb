/* Blocks of convolutional nets. */
#include "plan/models/blocks.h"

#include <stdio.h>

QnValue *qn_block_act(QnNet *net, QnValue *x, QnAct act)
{
    QnGraph *g = net->g;
    switch (act) {
    case QN_ACT_NONE: return x;
    case QN_ACT_RELU: return qn_relu(g, x);
    case QN_ACT_RELU6: return qn_relu6(g, x);
    case QN_ACT_LEAKY: return qn_leaky_relu(g, x, 0.1);
    case QN_ACT_SILU: return qn_silu(g, x);
    case QN_ACT_GELU: return qn_gelu(g, x);
    case QN_ACT_GELU_TANH: return qn_gelu_tanh(g, x);
    case QN_ACT_HARDSWISH: return qn_hardswish(g, x);
    case QN_ACT_SIGMOID: return qn_sigmoid(g, x);
    case QN_ACT_HARDSIGMOID: return qn_hardsigmoid(g, x);
    case QN_ACT_MISH: return qn_mish(g, x);
    }
    return x;
}

int64_t qn_block_dim(const QnValue *x, int i)
{
    const QnShape *s = &x->type.shape;
    i = i < 0 ? s->rank + i : i;
    return i >= 0 && i < s->rank ? s->dim[i] : 1;
}

void qn_block_push(QnNet *net, const char *prefix, int64_t i)
{
    char name[48];
    snprintf(name, sizeof name, "%s%lld", prefix, (long long)i);
    qn_net_push(net, name);
}

/* ---- convolutions ---- */

static QnValue *convolve(QnNet *net, QnValue *x, const QnConvNorm *s)
{
    QnGraph *g = net->g;
    int64_t groups = s->groups ? s->groups : 1, in = qn_block_dim(x, 1);
    int64_t stride = s->stride ? s->stride : 1, dilation = s->dilation ? s->dilation : 1;
    int64_t kh = s->kernel, kw = s->width ? s->width : s->kernel;
    int64_t ph = s->valid ? 0 : dilation * (kh / 2), pw = s->valid ? 0 : dilation * (kw / 2);
    QnInitSpec init = { QN_INIT_KIND_KAIMING_NORMAL, (double)(kh * kw * in / groups),
                        (double)(kh * kw * s->out / groups), 0 };
    QnConvAttr a = { .strides = { 2, { stride, stride } },
                     .pads = { 4, { ph, pw, ph, pw } },
                     .dilations = { 2, { dilation, dilation } },
                     .groups = groups };
    QnValue *bias = NULL;
    QnShape shape = QN_SHAPE(s->out, in / groups, kh, kw);
    QnValue *w = qn_net_param(net, "weight", &shape, &init, true);
    if (s->no_norm) {
        init.kind = QN_INIT_KIND_ZEROS;
        bias = qn_net_param(net, "bias", &QN_SHAPE(s->out), &init, false);
    }
    return qn_conv(g, x, w, bias, &a);
}

QnValue *qn_block_conv(QnNet *net, const char *name, QnValue *x, const QnConvNorm *spec)
{
    if (qn_value_is_poison(x))
        return x;
    qn_net_push(net, name);
    qn_net_push(net, "conv");
    x = convolve(net, x, spec);
    qn_net_pop(net);
    if (!spec->no_norm)
        x = qn_nn_batch_norm(net, "bn", x);
    x = qn_block_act(net, x, spec->act);
    qn_net_pop(net);
    return x;
}

QnValue *qn_block_norm_conv(QnNet *net, const char *name, QnValue *x, const QnConvNorm *spec)
{
    if (qn_value_is_poison(x))
        return x;
    qn_net_push(net, name);
    x = qn_block_act(net, qn_nn_batch_norm(net, "bn", x), spec->act);
    qn_net_push(net, "conv");
    x = convolve(net, x, spec);
    qn_net_pop(net);
    qn_net_pop(net);
    return x;
}

QnValue *qn_block_residual(QnNet *net, QnValue *x, const QnResidual *s)
{
    int64_t stride = s->stride ? s->stride : 1;
    QnValue *y = x, *around = s->around;
    QnConvNorm in = { .out = s->inner, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm mid = { .out = s->inner ? s->inner : s->out,
                       .kernel = 3,
                       .stride = stride,
                       .groups = s->groups,
                       .act = QN_ACT_RELU };
    QnConvNorm last = { .out = s->out, .kernel = s->inner ? 1 : 3 };
    if (s->inner)
        y = qn_block_conv(net, "conv1", y, &in);
    y = qn_block_conv(net, "conv2", y, &mid);
    if (s->squeeze)
        y = qn_block_squeeze(net, "se", y, s->squeeze, QN_ACT_RELU, QN_ACT_SIGMOID);
    y = qn_block_conv(net, "conv3", y, &last);
    if (!around && (stride != 1 || qn_block_dim(x, 1) != s->out)) {
        QnConvNorm fit = { .out = s->out, .kernel = 1, .stride = stride };
        around = qn_block_conv(net, "downsample", x, &fit);
    }
    return qn_relu(net->g, qn_add(net->g, y, around ? around : x));
}

QnValue *qn_block_max_pool(QnNet *net, QnValue *x, int64_t kernel, int64_t stride, int64_t pad)
{
    QnPoolAttr a = { .kernel = { 2, { kernel, kernel } },
                     .strides = { 2, { stride, stride } },
                     .pads = { 4, { pad, pad, pad, pad } } };
    return qn_max_pool(net->g, x, &a);
}

QnValue *qn_block_avg_pool(QnNet *net, QnValue *x, int64_t kernel, int64_t stride, int64_t pad)
{
    QnPoolAttr a = { .kernel = { 2, { kernel, kernel } },
                     .strides = { 2, { stride, stride } },
                     .pads = { 4, { pad, pad, pad, pad } },
                     .count_include_pad = true };
    return qn_avg_pool(net->g, x, &a);
}

QnValue *qn_block_halve(QnNet *net, QnValue *x)
{
    QnPoolAttr a = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 2, 2 } }, .ceil_mode = true };
    return qn_avg_pool(net->g, x, &a);
}

QnValue *qn_block_multiple(QnNet *net, QnValue *x, int64_t side)
{
    int64_t h = qn_block_dim(x, 2), w = qn_block_dim(x, 3);
    if (qn_value_is_poison(x) || (h % side == 0 && w % side == 0))
        return x;
    qn_fail(QN_ESHAPE, "images of %lld x %lld: this model takes multiples of %lld pixels",
            (long long)h, (long long)w, (long long)side);
    return qn_graph_poison(net->g);
}

QnValue *qn_block_upsample(QnNet *net, QnValue *x, int64_t times, bool linear)
{
    QnResizeAttr a = { .size = { 2, { times * qn_block_dim(x, 2), times * qn_block_dim(x, 3) } },
                       .mode = linear ? QN_RESIZE_LINEAR : QN_RESIZE_NEAREST };
    return qn_value_is_poison(x) ? x : qn_resize(net->g, x, &a);
}

QnValue *qn_block_squeeze(QnNet *net, const char *name, QnValue *x, int64_t hidden, QnAct act,
                          QnAct gate)
{
    QnConvSpec down = { .out = hidden, .kernel = 1, .bias = true };
    QnConvSpec up = { .out = qn_block_dim(x, 1), .kernel = 1, .bias = true };
    if (qn_value_is_poison(x))
        return x;
    qn_net_push(net, name);
    QnValue *s = qn_nn_conv(net, "reduce", qn_global_avg_pool(net->g, x), &down);
    s = qn_nn_conv(net, "expand", qn_block_act(net, s, act), &up);
    qn_net_pop(net);
    return qn_mul(net->g, x, qn_block_act(net, s, gate));
}

QnValue *qn_block_inverted(QnNet *net, QnValue *x, const QnInverted *s)
{
    int64_t in = qn_block_dim(x, 1), stride = s->stride ? s->stride : 1;
    QnValue *y = x;
    QnConvNorm wide = { .out = s->hidden, .kernel = 1, .act = s->act };
    QnConvNorm deep = {
        .out = s->hidden, .kernel = s->kernel, .stride = stride, .groups = s->hidden, .act = s->act
    };
    QnConvNorm full = { .out = s->hidden, .kernel = s->kernel, .stride = stride, .act = s->act };
    bool widen = s->hidden != in || s->always;
    if (s->fused && !widen) { /* the full convolution is all */
        full.out = s->out;
        y = qn_block_conv(net, "conv", y, &full);
    } else {
        if (s->fused)
            y = qn_block_conv(net, "conv_exp", y, &full);
        else if (widen)
            y = qn_block_conv(net, "conv_pw", y, &wide);
        if (!s->fused)
            y = qn_block_conv(net, "conv_dw", y, &deep);
        if (s->squeeze)
            y = qn_block_squeeze(net, "se", y, s->squeeze, s->squeeze_act ? s->squeeze_act : s->act,
                                 s->gate ? s->gate : QN_ACT_SIGMOID);
        y = qn_block_conv(net, "conv_pwl", y, &(QnConvNorm){ .out = s->out, .kernel = 1 });
    }
    return stride == 1 && s->out == in ? qn_add(net->g, y, x) : y;
}

QnValue *qn_block_classify(QnNet *net, const char *name, QnValue *x, double dropout)
{
    if (qn_value_is_poison(x))
        return x;
    x = qn_flatten(net->g, qn_global_avg_pool(net->g, x), 1);
    return qn_nn_linear(net, name, qn_nn_dropout(net, x, dropout), 1000, true);
}

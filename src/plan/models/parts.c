#include "plan/models/parts.h"

#include <stdio.h>

QnValue *qn_leaky_tenth(QnGraph *g, QnValue *x)
{
    return qn_leaky_relu(g, x, 0.1);
}

QnValue *qn_leaky_hundredth(QnGraph *g, QnValue *x)
{
    return qn_leaky_relu(g, x, 0.01);
}

QnValue *qn_part_picture(QnNet *net, const QnStepInput *in)
{
    QnStepInput p = *in;
    if (p.width == QN_COCO_WIDTH)
        p.width = p.height * 7 / 5;
    p.height = (p.height + 31) / 32 * 32;
    p.width = (p.width + 31) / 32 * 32;
    return qn_step_image(net, &p);
}

QnValue *qn_part_sides(QnNet *net, const QnStepInput *in, int64_t multiple, int64_t least)
{
    const int64_t side[] = { in->height, in->width, in->depth ? in->depth : in->height };
    char depth[32] = "", multiples[64] = "";
    for (int i = 0; i < QN_COUNT(side); i++) {
        if (side[i] % multiple == 0 && side[i] >= least)
            continue;
        if (in->depth)
            snprintf(depth, sizeof depth, "%lld x ", (long long)in->depth);
        if (multiple > 1)
            snprintf(multiples, sizeof multiples, "multiples of %lld pixels, ",
                     (long long)multiple);
        qn_fail(QN_ESHAPE, "images of %s%lld x %lld: this model takes %sat least %lld", depth,
                (long long)in->height, (long long)in->width, multiples,
                (long long)QN_MAX(least, multiple));
        return qn_graph_poison(net->g);
    }
    return qn_step_image(net, in);
}

QnValue *qn_part_join(QnNet *net, QnValue *a, QnValue *b)
{
    return qn_concat(net->g, (QnValue *[]){ a, b }, 2, 1);
}

QnValue *qn_part_resize(QnNet *net, QnValue *x, int64_t height, int64_t width, bool linear)
{
    QnResizeAttr a = { .size = { 2, { height, width } },
                       .mode = linear ? QN_RESIZE_LINEAR : QN_RESIZE_NEAREST,
                       .coord = linear ? QN_RESIZE_HALF_PIXEL : QN_RESIZE_ASYMMETRIC,
                       .round = QN_RESIZE_FLOOR };
    return qn_resize(net->g, x, &a);
}

static QnInts repeated(int n, int64_t value)
{
    QnInts v = { .n = n };
    for (int i = 0; i < n; i++)
        v.v[i] = value;
    return v;
}

static const QnInitSpec zeros = { .kind = QN_INIT_KIND_ZEROS },
                        ones = { .kind = QN_INIT_KIND_ONES };

/* What is frozen is no parameter of a step of training; else it counts as one. */
static QnValue *weights(QnNet *net, const char *name, const QnShape *s, const QnInitSpec *init,
                        bool decay, bool frozen)
{
    if (frozen && net->training)
        return qn_net_buffer(net, name, s, 1);
    return qn_net_param(net, name, s, init, decay);
}

QnValue *qn_part_double(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t kernel)
{
    if (qn_value_is_poison(x))
        return x;
    int axes = x->type.shape.rank - 2;
    QnShape w = { .rank = axes + 2, .dim = { qn_block_dim(x, 1), out } };
    double fan = (double)out;
    for (int i = 0; i < axes; i++) {
        w.dim[2 + i] = kernel;
        fan *= (double)kernel;
    }
    QnInitSpec init = { QN_INIT_KIND_KAIMING_UNIFORM, fan, fan, 0 };
    QnConvAttr a = { .strides = repeated(axes, 2),
                     .pads = repeated(2 * axes, (kernel - 1) / 2),
                     .groups = 1 };
    qn_net_push(net, name);
    QnValue *weight = qn_net_param(net, "weight", &w, &init, true);
    QnValue *bias = qn_net_param(net, "bias", &QN_SHAPE(out), &zeros, false);
    qn_net_pop(net);
    return qn_conv_transpose(net->g, x, weight, bias, &a, repeated(axes, kernel == 3));
}

QnShared qn_part_share(QnNet *net, const char *name, int64_t in, int64_t out, int64_t kernel)
{
    static const QnInitSpec normal = { .kind = QN_INIT_KIND_NORMAL, .scale = 0.01 };
    QnShared s = { .conv = { .pads = repeated(4, kernel / 2), .groups = 1 } };
    qn_net_push(net, name);
    s.weight = qn_net_param(net, "weight", &QN_SHAPE(out, in, kernel, kernel), &normal, true);
    s.bias = qn_net_param(net, "bias", &QN_SHAPE(out), &zeros, false);
    qn_net_pop(net);
    return s;
}

QnValue *qn_part_apply(QnNet *net, const QnShared *s, QnValue *x)
{
    return qn_conv(net->g, x, s->weight, s->bias, &s->conv);
}

static QnValue *convolve(QnNet *net, QnValue *x, const QnPart *p)
{
    int axes = x->type.shape.rank - 2;
    int64_t kernel = p->kernel ? p->kernel : 1, groups = p->groups ? p->groups : 1;
    int64_t dilation = p->dilation ? p->dilation : 1;
    QnShape w = { .rank = axes + 2, .dim = { p->out, qn_block_dim(x, 1) / groups } };
    double area = 1;
    for (int i = 0; i < axes; i++) {
        w.dim[2 + i] = kernel;
        area *= (double)kernel;
    }
    QnInitSpec init = { QN_INIT_KIND_KAIMING_NORMAL, area * (double)w.dim[1],
                        area * (double)p->out / (double)groups, 0 };
    QnConvAttr a = { .strides = repeated(axes, p->stride ? p->stride : 1),
                     .pads = repeated(2 * axes, p->valid ? 0 : (kernel - 1) * dilation / 2),
                     .dilations = repeated(axes, dilation),
                     .groups = groups };
    QnValue *weight = weights(net, "weight", &w, &init, true, p->frozen);
    QnValue *bias =
        p->bias ? weights(net, "bias", &QN_SHAPE(p->out), &zeros, false, p->frozen) : NULL;
    return qn_conv(net->g, x, weight, bias, &a);
}

static QnValue *norm(QnNet *net, QnValue *x, QnPartNorm kind)
{
    QnShape s = QN_SHAPE(qn_block_dim(x, 1));
    if (kind == QN_PART_PLAIN)
        return x;
    if (kind == QN_PART_BATCH)
        return qn_nn_batch_norm(net, "norm", x);
    bool given = kind == QN_PART_GIVEN;
    qn_net_push(net, "norm");
    QnValue *scale = weights(net, "weight", &s, &ones, false, given);
    QnValue *shift = weights(net, "bias", &s, &zeros, false, given);
    if (given) {
        QnValue *mean = qn_net_buffer(net, "running_mean", &s, 0);
        QnValue *var = qn_net_buffer(net, "running_var", &s, 1);
        x = qn_batch_norm_inference(net->g, x, scale, shift, mean, var, 1e-5);
    } else {
        x = qn_instance_norm(net->g, x, scale, shift, 1e-5);
    }
    qn_net_pop(net);
    return x;
}

QnValue *qn_part(QnNet *net, const char *name, QnValue *x, const QnPart *p)
{
    if (qn_value_is_poison(x))
        return x;
    qn_net_push(net, name);
    x = norm(net, convolve(net, x, p), p->norm);
    qn_net_pop(net);
    return p->act ? p->act(net->g, x) : x;
}

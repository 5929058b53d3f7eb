#include "nn/net.h"

#include <string.h>

void qn_net_init(QnNet *net, QnGraph *g, bool training)
{
    *net = (QnNet){ .g = g, .training = training, .dtype = QN_DTYPE_F32 };
}

void qn_net_fini(QnNet *net)
{
    qn_free(net->params);
    net->params = NULL;
    net->n_params = net->cap_params = 0;
}

QnNet *qn_net_new(QnGraph *g, bool training)
{
    QnNet *net = qn_alloc(sizeof *net);
    if (net)
        qn_net_init(net, g, training);
    return net;
}

void qn_net_free(QnNet *net)
{
    if (net)
        qn_net_fini(net);
    qn_free(net);
}

void qn_net_set_key(QnNet *net, QnValue *key)
{
    net->key = key;
}

int64_t qn_net_param_count(const QnNet *net)
{
    return net->n_params;
}

QnValue *qn_net_param_at(const QnNet *net, int64_t i)
{
    return net->params[i].state;
}

void qn_net_push(QnNet *net, const char *name)
{
    if (!name) {
        qn_fail(QN_EARG, "a layer in '%s' has no name", net->scope);
        qn_graph_poison(net->g);
        return;
    }
    size_t used = strlen(net->scope), n = strlen(name);
    if (used + n + 2 > sizeof net->scope) {
        qn_fail(QN_EARG, "the name '%s.%s' is over %zu characters", net->scope, name,
                sizeof net->scope - 2);
        qn_graph_poison(net->g);
        return;
    }
    if (used)
        net->scope[used++] = '.';
    memcpy(net->scope + used, name, n + 1);
    memcpy(net->g->scope, net->scope, sizeof net->scope);
}

void qn_net_pop(QnNet *net)
{
    char *dot = strrchr(net->scope, '.');
    *(dot ? dot : net->scope) = '\0';
    memcpy(net->g->scope, net->scope, sizeof net->scope);
}

static QnValue *add_state(QnNet *net, const char *name, const QnShape *shape, QnStateAttr *a)
{
    a->name =
        qn_arena_printf(net->g->arena, "%s%s%s%s", a->trainable && net->prefix ? net->prefix : "",
                        net->scope, net->scope[0] ? "." : "", name);
    if (!a->name)
        return qn_graph_poison(net->g);
    a->dtype = net->dtype;
    a->dims.n = shape->rank;
    memcpy(a->dims.d, shape->dim, sizeof a->dims.d);
    return qn_state(net->g, a);
}

QnValue *qn_net_param(QnNet *net, const char *name, const QnShape *shape, const QnInitSpec *init,
                      bool decay)
{
    QnStateAttr a = { .trainable = true };
    qn_init_apply(init, &a);
    QnValue *v = add_state(net, name, shape, &a);
    if (qn_value_is_poison(v))
        return v;
    if (QN_GROW(net->params, net->cap_params, net->n_params) != QN_OK)
        return qn_graph_poison(net->g);
    net->params[net->n_params++] =
        (QnParam){ .state = v, .name = qn_node_label(v->node), .decay = decay };
    return v;
}

QnValue *qn_net_buffer(QnNet *net, const char *name, const QnShape *shape, double value)
{
    QnStateAttr a = { .init = QN_INIT_CONSTANT, .a = value };
    return add_state(net, name, shape, &a);
}

/* ---- layers ---- */

QnValue *qn_nn_linear(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias)
{
    if (qn_value_is_poison(x))
        return qn_graph_poison(net->g);
    const QnShape *s = &x->type.shape;
    qn_net_push(net, name);
    int64_t in = s->rank ? s->dim[s->rank - 1] : 0;
    if (in <= 0 || out <= 0) {
        qn_fail(QN_ESHAPE, "linear: needs a last axis of known length and out > 0");
        qn_net_pop(net);
        return qn_graph_poison(net->g);
    }
    QnInitSpec init = { QN_INIT_KIND_KAIMING_UNIFORM, (double)in, (double)out, 0 };
    QnValue *w = qn_net_param(net, "weight", &QN_SHAPE(out, in), &init, true);
    QnValue *b = bias ? qn_net_param(net, "bias", &QN_SHAPE(out), &init, false) : NULL;
    QnValue *y = qn_matmul(net->g, x, w, b, false, true);
    qn_net_pop(net);
    return y;
}

static QnInts repeated(int n, int64_t v)
{
    QnInts r = { .n = n };
    for (int i = 0; i < n; i++)
        r.v[i] = v;
    return r;
}

QnValue *qn_nn_conv(QnNet *net, const char *name, QnValue *x, const QnConvSpec *spec)
{
    if (qn_value_is_poison(x))
        return qn_graph_poison(net->g);
    const QnShape *s = &x->type.shape;
    int64_t groups = spec->groups ? spec->groups : 1;
    int axes = s->rank - 2;
    qn_net_push(net, name);
    if (axes < 1 || axes > 3 || s->dim[1] <= 0 || s->dim[1] % groups || spec->out % groups) {
        char text[QN_TYPE_TEXT_BYTES];
        qn_fail(QN_ESHAPE,
                "conv: x is %s, out %lld, groups %lld; needs (N,C,spatial) with 1 to 3 "
                "spatial axes, C and out multiples of groups",
                qn_shape_text(s, text), (long long)spec->out, (long long)groups);
        qn_net_pop(net);
        return qn_graph_poison(net->g);
    }
    QnShape w = { .rank = s->rank, .dim = { spec->out, s->dim[1] / groups } };
    double area = 1;
    for (int i = 0; i < axes; i++) {
        w.dim[2 + i] = spec->kernel;
        area *= (double)spec->kernel;
    }
    QnInitSpec init = { spec->bias ? QN_INIT_KIND_KAIMING_UNIFORM : QN_INIT_KIND_KAIMING_NORMAL,
                        area * (double)w.dim[1], area * (double)spec->out / (double)groups, 0 };
    QnConvAttr attr = { .strides = repeated(axes, spec->stride ? spec->stride : 1),
                        .pads = repeated(2 * axes, spec->pad),
                        .dilations = repeated(axes, spec->dilation ? spec->dilation : 1),
                        .groups = groups };
    QnValue *weight = qn_net_param(net, "weight", &w, &init, true);
    QnValue *bias =
        spec->bias ? qn_net_param(net, "bias", &QN_SHAPE(spec->out), &init, false) : NULL;
    QnValue *y = qn_conv(net->g, x, weight, bias, &attr);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_batch_norm(QnNet *net, const char *name, QnValue *x)
{
    if (qn_value_is_poison(x) || x->type.shape.rank < 2) {
        qn_fail(QN_ESHAPE, "batch_norm: x needs a channel axis 1");
        return qn_graph_poison(net->g);
    }
    QnShape c = QN_SHAPE(x->type.shape.dim[1]);
    qn_net_push(net, name);
    QnValue *scale =
        qn_net_param(net, "weight", &c, &(QnInitSpec){ QN_INIT_KIND_ONES, 0, 0, 0 }, false);
    QnValue *bias =
        qn_net_param(net, "bias", &c, &(QnInitSpec){ QN_INIT_KIND_ZEROS, 0, 0, 0 }, false);
    QnValue *mean = qn_net_buffer(net, "running_mean", &c, 0);
    QnValue *var = qn_net_buffer(net, "running_var", &c, 1);
    QnValue *y = net->training ? qn_batch_norm_train(net->g, x, scale, bias, mean, var, 0.1, 1e-5)
                               : qn_batch_norm_inference(net->g, x, scale, bias, mean, var, 1e-5);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_dropout(QnNet *net, QnValue *x, double p)
{
    if (!net->training || p <= 0)
        return x;
    if (!net->key) {
        qn_fail(QN_EARG, "dropout: the net has no key input");
        return qn_graph_poison(net->g);
    }
    return qn_dropout(net->g, x, net->key, p);
}

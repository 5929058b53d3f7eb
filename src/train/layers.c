#include "train/layers.h"

#include <stdio.h>
#include <string.h>

#define KNOWN(map, ...)                                                                            \
    qn_yaml_check_keys((map), (const char *const[]){ __VA_ARGS__ },                                \
                       QN_COUNT(((const char *const[]){ __VA_ARGS__ })))

/* ---- activations ---- */

typedef struct Activation {
    const char *name;
    QnValue *(*apply)(QnGraph *g, QnValue *x);
} Activation;

static QnValue *softmax_last(QnGraph *g, QnValue *x)
{
    return qn_softmax(g, x, -1);
}

static const Activation activations[] = {
    { "relu", qn_relu }, { "gelu", qn_gelu },           { "gelu_tanh", qn_gelu_tanh },
    { "silu", qn_silu }, { "tanh", qn_tanh },           { "sigmoid", qn_sigmoid },
    { "mish", qn_mish }, { "hardswish", qn_hardswish }, { "softplus", qn_softplus },
    { "selu", qn_selu }, { "softmax", softmax_last },
};

static const Activation *find_activation(const char *name)
{
    for (int i = 0; i < QN_COUNT(activations); i++) {
        if (!strcmp(activations[i].name, name))
            return &activations[i];
    }
    return NULL;
}

QnStatus qn_layers_activation(QnGraph *g, const QnYaml *place, const char *name, QnValue *x,
                              QnValue **y)
{
    const Activation *a = find_activation(name);
    if (!a)
        return qn_yaml_fail(place, "no activation '%s'; try relu, gelu, silu or tanh", name);
    *y = a->apply(g, x);
    return QN_OK;
}

/* ---- layers: `spec` is what stands behind the colon, NULL for a bare word ---- */

typedef struct Context {
    QnNet *net;
    const QnModelIo *io;
    const QnYaml *item; /* for messages */
    const char *name;   /* scope of the layer's parameters */
} Context;

/* The layer's main number: the scalar behind the colon, or `key` of the map. */
static QnStatus main_int(const QnYaml *spec, const char *key, bool required, int64_t *out)
{
    if (spec && spec->kind == QN_YAML_SCALAR)
        return qn_yaml_as_int(spec, 1, 1 << 24, out);
    return qn_yaml_int(spec, key, required, 1, 1 << 24, out);
}

static QnStatus layer_conv(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    QnConvSpec s = {
        .kernel = 3, .stride = 1, .dilation = 1, .groups = 1, .pad = -1, .bias = true
    };
    QN_TRY(main_int(spec, "out", true, &s.out));
    if (spec->kind == QN_YAML_MAP) {
        QN_TRY(KNOWN(spec, "out", "kernel", "stride", "pad", "dilation", "groups", "bias"));
        QN_TRY(qn_yaml_int(spec, "kernel", false, 1, 1024, &s.kernel));
        QN_TRY(qn_yaml_int(spec, "stride", false, 1, 1024, &s.stride));
        QN_TRY(qn_yaml_int(spec, "pad", false, 0, 1024, &s.pad));
        QN_TRY(qn_yaml_int(spec, "dilation", false, 1, 1024, &s.dilation));
        QN_TRY(qn_yaml_int(spec, "groups", false, 1, 1 << 24, &s.groups));
        QN_TRY(qn_yaml_bool(spec, "bias", false, &s.bias));
    }
    if (s.pad < 0)
        s.pad = s.dilation * (s.kernel - 1) / 2; /* as large out as in, at stride 1 */
    *y = qn_nn_conv(c->net, c->name, x, &s);
    return QN_OK;
}

static QnStatus layer_linear(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    int64_t out = 0;
    bool bias = true;
    const char *word = spec && spec->kind == QN_YAML_MAP ? NULL : spec ? spec->text : NULL;
    if (spec && spec->kind == QN_YAML_MAP) {
        QN_TRY(KNOWN(spec, "out", "bias"));
        QN_TRY(qn_yaml_bool(spec, "bias", false, &bias));
        const QnYaml *node = qn_yaml_find(spec, "out");
        word = node && node->kind == QN_YAML_SCALAR ? node->text : NULL;
    }
    if (word && !strcmp(word, "outputs"))
        out = c->io->outputs;
    else
        QN_TRY(main_int(spec, "out", true, &out));
    *y = qn_nn_linear(c->net, c->name, x, out, bias);
    return QN_OK;
}

static QnStatus layer_pool(Context *c, const QnYaml *spec, QnValue *x, bool max, QnValue **y)
{
    int64_t kernel = 2, stride = 0, pad = 0;
    QN_TRY(main_int(spec, "kernel", false, &kernel));
    if (spec && spec->kind == QN_YAML_MAP) {
        QN_TRY(KNOWN(spec, "kernel", "stride", "pad"));
        QN_TRY(qn_yaml_int(spec, "stride", false, 1, 1024, &stride));
        QN_TRY(qn_yaml_int(spec, "pad", false, 0, 1024, &pad));
    }
    QnPoolAttr a = { 0 };
    int axes = QN_MAX(x->type.shape.rank - 2, 0);
    a.kernel.n = a.strides.n = axes;
    a.pads.n = 2 * axes;
    for (int i = 0; i < axes; i++) {
        a.kernel.v[i] = kernel;
        a.strides.v[i] = stride ? stride : kernel;
        a.pads.v[i] = a.pads.v[axes + i] = pad;
    }
    *y = max ? qn_max_pool(c->net->g, x, &a) : qn_avg_pool(c->net->g, x, &a);
    return QN_OK;
}

static QnStatus layer_max_pool(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    return layer_pool(c, spec, x, true, y);
}

static QnStatus layer_avg_pool(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    return layer_pool(c, spec, x, false, y);
}

static QnStatus layer_global_avg_pool(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    QnInts axes = { 0 };
    (void)spec;
    for (int i = 2; i < x->type.shape.rank; i++)
        axes.v[axes.n++] = i;
    *y = axes.n ? qn_mean(c->net->g, x, axes, false) : x;
    return QN_OK;
}

static QnStatus layer_flatten(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    (void)spec;
    *y = qn_flatten(c->net->g, x, 1);
    return QN_OK;
}

static QnStatus layer_batch_norm(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    (void)spec;
    *y = qn_nn_batch_norm(c->net, c->name, x);
    return QN_OK;
}

static QnStatus layer_dropout(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    double p = 0.5;
    if (spec)
        QN_TRY(qn_yaml_as_real(spec, 0, 0.99, &p));
    *y = qn_nn_dropout(c->net, x, p);
    return QN_OK;
}

/* y = x + layers(x); where the shapes differ, x passes a 1x1 convolution of the right stride. */
static QnStatus layer_residual(Context *c, const QnYaml *spec, QnValue *x, QnValue **y)
{
    if (!spec || spec->kind != QN_YAML_LIST)
        return qn_yaml_fail(c->item, "residual: expected a list of layers");
    QnValue *z;
    qn_net_push(c->net, c->name);
    QN_TRY(qn_layers_build(c->net, spec, c->io, x, &z));
    if (!qn_value_is_poison(z) && !qn_shape_is_equal(&z->type.shape, &x->type.shape)) {
        const QnShape *a = &x->type.shape, *b = &z->type.shape;
        if (a->rank < 3 || b->rank != a->rank || b->dim[2] == 0)
            return qn_yaml_fail(c->item, "residual: the layers change the rank");
        QnConvSpec s = { .out = b->dim[1],
                         .kernel = 1,
                         .stride = (a->dim[2] + b->dim[2] - 1) / b->dim[2] };
        x = qn_nn_conv(c->net, "shortcut", x, &s);
        x = qn_nn_batch_norm(c->net, "shortcut_norm", x);
    }
    qn_net_pop(c->net);
    *y = qn_add(c->net->g, x, z);
    return QN_OK;
}

typedef struct Layer {
    const char *name;
    QnStatus (*build)(Context *c, const QnYaml *spec, QnValue *x, QnValue **y);
    bool needs_spec;
} Layer;

static const Layer layers[] = {
    { "conv", layer_conv, true },
    { "linear", layer_linear, true },
    { "max_pool", layer_max_pool, false },
    { "avg_pool", layer_avg_pool, false },
    { "global_avg_pool", layer_global_avg_pool, false },
    { "flatten", layer_flatten, false },
    { "batch_norm", layer_batch_norm, false },
    { "dropout", layer_dropout, false },
    { "residual", layer_residual, true },
};

static QnStatus build_one(Context *c, const char *kind, const QnYaml *spec, QnValue *x, QnValue **y)
{
    for (int i = 0; i < QN_COUNT(layers); i++) {
        if (strcmp(layers[i].name, kind))
            continue;
        if (layers[i].needs_spec && !spec)
            return qn_yaml_fail(c->item, "%s needs its size, e.g. %s: 32", kind, kind);
        return layers[i].build(c, spec, x, y);
    }
    const Activation *a = find_activation(kind);
    if (!a)
        return qn_yaml_fail(c->item,
                            "no layer '%s'; there are conv, linear, max_pool, avg_pool, "
                            "global_avg_pool, flatten, batch_norm, dropout, residual and "
                            "activations such as relu",
                            kind);
    *y = a->apply(c->net->g, x);
    return QN_OK;
}

QnStatus qn_layers_build(QnNet *net, const QnYaml *list, const QnModelIo *io, QnValue *x,
                         QnValue **y)
{
    for (const QnYaml *item = list->first; item; item = item->next) {
        if (item->kind == QN_YAML_LIST || (item->kind == QN_YAML_MAP && item->count != 1))
            return qn_yaml_fail(item, "expected a layer, e.g. relu or {conv: {out: 32}}");
        const QnYaml *spec = item->kind == QN_YAML_MAP ? item->first : NULL;
        const char *kind = spec ? spec->key : item->text;
        char name[64];
        snprintf(name, sizeof name, "%lld_%.48s", (long long)item->index, kind);
        Context c = { net, io, item, name };
        QN_TRY(build_one(&c, kind, spec, x, &x));
        QN_TRY(qn_model_check(net->g, item));
    }
    *y = x;
    return QN_OK;
}

#include "train/model.h"
#include "train/layers.h"

#include <stdio.h>
#include <string.h>

#define KNOWN(map, ...)                                                                            \
    qn_yaml_check_keys((map), (const char *const[]){ __VA_ARGS__ },                                \
                       QN_COUNT(((const char *const[]){ __VA_ARGS__ })))

static QnStatus build_linear(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x,
                             QnValue **y)
{
    QN_TRY(KNOWN(m, "name"));
    *y = qn_nn_linear(net, "fc", qn_flatten(net->g, x, 1), io->outputs, true);
    return QN_OK;
}

static QnStatus build_mlp(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y)
{
    int64_t hidden[16] = { 512 };
    int n = 1;
    double dropout = 0;
    const char *activation = "relu";
    QN_TRY(KNOWN(m, "name", "hidden", "activation", "dropout"));
    QN_TRY(qn_yaml_ints(m, "hidden", false, 1, 1 << 24, hidden, QN_COUNT(hidden), &n));
    QN_TRY(qn_yaml_string(m, "activation", false, &activation));
    QN_TRY(qn_yaml_real(m, "dropout", false, 0, 0.99, &dropout));
    x = qn_flatten(net->g, x, 1);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i + 1);
        x = qn_nn_linear(net, name, x, hidden[i], true);
        QN_TRY(qn_layers_activation(net->g, qn_yaml_find(m, "activation"), activation, x, &x));
        x = qn_nn_dropout(net, x, dropout);
    }
    *y = qn_nn_linear(net, "out", x, io->outputs, true);
    return QN_OK;
}

typedef struct Model {
    const char *name, *doc;
    QnStatus (*build)(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y);
} Model;

static const Model models[] = {
    { "linear", "one linear layer: linear or logistic regression", build_linear },
    { "mlp", "hidden: [512], activation: relu, dropout: 0", build_mlp },
};

const char *qn_model_help(void)
{
    return "linear, mlp, or layers: [...]";
}

static QnStatus unknown_model(const QnYaml *m, const char *name)
{
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < QN_COUNT(models); i++) {
        int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", models[i].name);
        used += QN_MIN((size_t)n, sizeof list - used);
    }
    return qn_yaml_fail(qn_yaml_find(m, "name"), "no model '%s'; there are %s, or give layers",
                        name, list);
}

static QnStatus build(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y)
{
    const char *name = NULL;
    QnYaml *layers = NULL;
    QN_TRY(qn_yaml_list(m, "layers", false, &layers));
    QN_TRY(qn_yaml_string(m, "name", layers == NULL, &name));
    if (layers) {
        QN_TRY(KNOWN(m, "name", "layers"));
        return qn_layers_build(net, layers, io, x, y);
    }
    for (int i = 0; i < QN_COUNT(models); i++) {
        if (!strcmp(models[i].name, name))
            return models[i].build(net, m, io, x, y);
    }
    return unknown_model(m, name);
}

QnStatus qn_model_build(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y)
{
    QN_TRY(build(net, m, io, x, y));
    if (qn_graph_check(net->g) != QN_OK) {
        char text[QN_ERROR_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", qn_error_last()->text);
        return qn_yaml_fail(m, "%s", text);
    }
    const QnShape *s = &(*y)->type.shape;
    if (s->rank != 2 || s->dim[1] != io->outputs) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_yaml_fail(m, "the model gives %s, the data needs (N, %lld)",
                            qn_shape_text(s, text), (long long)io->outputs);
    }
    return QN_OK;
}

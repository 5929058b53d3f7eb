#include "train/model.h"
#include "nn/models.h"
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

/* The models below look at images. */
static QnStatus check_images(const QnYaml *m, const QnValue *x, int64_t least)
{
    const QnShape *s = &x->type.shape;
    char text[QN_TYPE_TEXT_BYTES];
    if (s->rank == 4 && s->dim[2] >= least && s->dim[3] >= least)
        return QN_OK;
    return qn_yaml_fail(m,
                        "the data is %s, this model needs images (N,C,H,W) of at least %lld "
                        "pixels a side",
                        qn_shape_text(s, text), (long long)least);
}

static QnStatus build_lenet(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x,
                            QnValue **y)
{
    QN_TRY(KNOWN(m, "name"));
    QN_TRY(check_images(m, x, 12));
    *y = qn_nn_lenet(net, x, io->outputs);
    return QN_OK;
}

static QnStatus build_vgg(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y)
{
    int64_t depth = 11;
    QnVggSpec spec = { .batch_norm = true, .small = true, .outputs = io->outputs, .dropout = 0.5 };
    QN_TRY(KNOWN(m, "name", "depth", "batch_norm", "small", "dropout"));
    QN_TRY(qn_yaml_int(m, "depth", false, 1, 1000, &depth));
    QN_TRY(qn_yaml_bool(m, "batch_norm", false, &spec.batch_norm));
    QN_TRY(qn_yaml_bool(m, "small", false, &spec.small));
    QN_TRY(qn_yaml_real(m, "dropout", false, 0, 0.99, &spec.dropout));
    QN_TRY(check_images(m, x, 32));
    spec.depth = (int)depth;
    *y = qn_nn_vgg(net, x, &spec);
    return QN_OK;
}

static QnStatus build_resnet(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x,
                             QnValue **y)
{
    int64_t depth = 18;
    QnResnetSpec spec = { .small = true, .width = 64, .outputs = io->outputs };
    QN_TRY(KNOWN(m, "name", "depth", "small", "width"));
    QN_TRY(qn_yaml_int(m, "depth", false, 1, 1000, &depth));
    QN_TRY(qn_yaml_bool(m, "small", false, &spec.small));
    QN_TRY(qn_yaml_int(m, "width", false, 1, 4096, &spec.width));
    QN_TRY(check_images(m, x, 8));
    spec.depth = (int)depth;
    *y = qn_nn_resnet(net, x, &spec);
    return QN_OK;
}

static QnStatus gpt2_spec(const QnYaml *m, const QnModelIo *io, QnGptSpec *spec)
{
    static const char *const sizes[] = { "tiny", "small", "medium", "large", "xl" };
    int size = 0;
    QN_TRY(qn_yaml_choice(m, "size", false, sizes, QN_COUNT(sizes), &size));
    qn_nn_gpt2_size(sizes[size], spec);
    spec->vocab = io->outputs;
    spec->window = io->window;
    QN_TRY(qn_yaml_int(m, "layers", false, 1, 1000, &spec->layers));
    QN_TRY(qn_yaml_int(m, "heads", false, 1, 1000, &spec->heads));
    QN_TRY(qn_yaml_int(m, "width", false, 1, 1 << 20, &spec->width));
    QN_TRY(qn_yaml_bool(m, "tied", false, &spec->tied));
    QN_TRY(qn_yaml_bool(m, "bias", false, &spec->bias));
    QN_TRY(qn_yaml_real(m, "dropout", false, 0, 0.99, &spec->dropout));
    if (spec->width % spec->heads)
        return qn_yaml_fail(m, "a width of %lld does not fall into %lld heads",
                            (long long)spec->width, (long long)spec->heads);
    return QN_OK;
}

static QnStatus build_gpt2(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x,
                           QnValue **y)
{
    QnGptSpec spec;
    QN_TRY(KNOWN(m, "name", "size", "layers", "heads", "width", "tied", "bias", "dropout"));
    QN_TRY(gpt2_spec(m, io, &spec));
    if (x->type.dtype != QN_DTYPE_I64 || x->type.shape.rank != 2)
        return qn_yaml_fail(m, "gpt2 needs text: tokens (N,T)");
    const QnShape *s = &x->type.shape;
    QnShape rows = QN_SHAPE(qn_dim_mul(net->g, s->dim[0], s->dim[1]), spec.vocab);
    *y = qn_reshape(net->g, qn_nn_gpt2(net, x, &spec), &rows);
    return QN_OK;
}

typedef struct Model {
    const char *name, *doc;
    QnStatus (*build)(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y);
    const QnNameMap *names; /* or NULL */
} Model;

static const Model models[] = {
    { "linear", "one linear layer: linear or logistic regression", build_linear, NULL },
    { "mlp", "hidden: [512], activation: relu, dropout: 0", build_mlp, NULL },
    { "lenet", "LeNet-5 with ReLU, for images of 28 pixels", build_lenet, NULL },
    { "vgg", "depth: 11 (13, 16, 19), batch_norm: true, small: true, dropout: 0.5", build_vgg,
      &qn_names_vgg },
    { "resnet", "depth: 18 (34, 50, 101, 152), small: true, width: 64", build_resnet,
      &qn_names_resnet },
    { "gpt2", "size: tiny (small ... xl), layers, heads, width, tied, bias, dropout: 0", build_gpt2,
      &qn_names_gpt2 },
};

const char *qn_model_help(void)
{
    return "linear, mlp, lenet, vgg, resnet, gpt2, or layers: [...]";
}

const QnNameMap *qn_model_names(const QnYaml *m)
{
    const QnYaml *name = qn_yaml_find(m, "name");
    for (int i = 0; name && name->kind == QN_YAML_SCALAR && i < QN_COUNT(models); i++)
        if (!strcmp(models[i].name, name->text))
            return models[i].names;
    return NULL;
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
    const QnYaml *node = qn_yaml_find(m, "layers"); /* a list, or a named model's number of them */
    if (node && node->kind != QN_YAML_SCALAR)
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

QnStatus qn_model_check(QnGraph *g, const QnYaml *place)
{
    char text[QN_ERROR_TEXT_BYTES];
    QnStatus st = qn_graph_check(g);
    if (st == QN_OK || st == QN_ENOMEM) /* that is not the recipe's fault */
        return st;
    snprintf(text, sizeof text, "%s", qn_error_last()->text);
    return qn_yaml_fail(place, "%s", text);
}

QnStatus qn_model_build(QnNet *net, const QnYaml *m, const QnModelIo *io, QnValue *x, QnValue **y)
{
    QN_TRY(build(net, m, io, x, y));
    QN_TRY(qn_model_check(net->g, m));
    const QnShape *s = &(*y)->type.shape;
    if (s->rank != 2 || s->dim[1] != io->outputs) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_yaml_fail(m, "the model gives %s, the data needs (N, %lld)",
                            qn_shape_text(s, text), (long long)io->outputs);
    }
    return QN_OK;
}

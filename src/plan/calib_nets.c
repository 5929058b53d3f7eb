#include "plan/calib_nets.h"

#include "ops/ops.h"

#include <stdio.h>

/* ---- towers of convolutions: size = channels, blocks, whether a large stem ---- */

static QnValue *conv_norm(QnNet *net, const char *name, QnValue *x, const QnConvSpec *spec)
{
    qn_net_push(net, name);
    x = qn_nn_conv(net, "conv", x, spec);
    x = qn_nn_batch_norm(net, "norm", x);
    qn_net_pop(net);
    return x;
}

static QnValue *classify(QnNet *net, QnValue *x)
{
    x = qn_flatten(net->g, qn_global_avg_pool(net->g, x), 1);
    return qn_nn_linear(net, "classes", x, 10, true);
}

/* A stem, blocks of a 3x3 and a 1x1 convolution with a way around them, a pool, twice the channels
 * at half the side. */
static QnValue *tower(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t c = m->size[0];
    char name[16];
    (void)layers;
    QnConvSpec stem = { .out = c, .kernel = 3, .pad = 1 };
    if (m->size[2]) /* of large images */
        stem = (QnConvSpec){ .out = c, .kernel = 7, .pad = 3, .stride = 2 };
    x = qn_relu(g, conv_norm(net, "stem", x, &stem));
    if (m->size[2])
        x = qn_max_pool(g, x,
                        &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                                       .strides = { 2, { 2, 2 } },
                                       .pads = { 4, { 1, 1, 1, 1 } } });
    for (int64_t i = 0; i < m->size[1]; i++) {
        snprintf(name, sizeof name, "block%d", (int)i);
        qn_net_push(net, name);
        QnValue *y = conv_norm(net, "a", x, &(QnConvSpec){ .out = c, .kernel = 3, .pad = 1 });
        y = conv_norm(net, "b", qn_relu(g, y), &(QnConvSpec){ .out = c, .kernel = 1 });
        x = qn_relu(g, qn_add(g, x, y));
        qn_net_pop(net);
    }
    x = qn_max_pool(g, x, &(QnPoolAttr){ .kernel = { 2, { 2, 2 } }, .strides = { 2, { 2, 2 } } });
    x = conv_norm(net, "wide", x, &(QnConvSpec){ .out = 2 * c, .kernel = 3, .pad = 1 });
    x = conv_norm(net, "down", qn_relu(g, x),
                  &(QnConvSpec){ .out = 2 * c, .kernel = 3, .pad = 1, .stride = 2 });
    return classify(net, qn_relu(g, x));
}

/* The same without norms, with a bias and larger kernels: nets of the older kind. */
static QnValue *plain(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t c = m->size[0];
    (void)layers;
    x = qn_nn_conv(net, "a", x, &(QnConvSpec){ .out = c, .kernel = 5, .pad = 2, .bias = true });
    x = qn_max_pool(g, qn_relu(g, x), &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } });
    x = qn_nn_conv(net, "b", x, &(QnConvSpec){ .out = 2 * c, .kernel = 3, .pad = 1, .bias = true });
    x = qn_max_pool(g, qn_relu(g, x), &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } });
    x = qn_relu(g, qn_nn_linear(net, "c", qn_flatten(g, x, 1), 16 * c, true));
    return qn_nn_linear(net, "classes", x, 10, true);
}

/* Convolutions, each with a norm and a pool behind it, at half the side and half as many channels
 * more a time: small nets on small images. */
static QnValue *pooled(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    int64_t c = m->size[0];
    char name[16];
    (void)layers;
    for (int64_t i = 0; i < m->size[1]; i++, c += c / 2) {
        snprintf(name, sizeof name, "stage%d", (int)i);
        x = conv_norm(net, name, x, &(QnConvSpec){ .out = c, .kernel = 3, .pad = 1 });
        x = qn_max_pool(net->g, qn_relu(net->g, x), &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } });
    }
    return classify(net, x);
}

/* Blocks that widen, filter each channel alone and narrow again. */
static QnValue *inverted(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t c = m->size[0];
    char name[16];
    (void)layers;
    x = qn_relu(g, conv_norm(net, "stem", x, &(QnConvSpec){ .out = c, .kernel = 3, .pad = 1 }));
    for (int64_t i = 0; i < m->size[1]; i++) {
        snprintf(name, sizeof name, "block%d", (int)i);
        qn_net_push(net, name);
        QnValue *y = conv_norm(net, "a", x, &(QnConvSpec){ .out = 4 * c, .kernel = 1 });
        y = conv_norm(net, "b", qn_relu(g, y),
                      &(QnConvSpec){ .out = 4 * c, .kernel = 3, .pad = 1, .groups = 4 * c });
        y = conv_norm(net, "c", qn_relu(g, y), &(QnConvSpec){ .out = c, .kernel = 1 });
        x = qn_add(g, x, y);
        qn_net_pop(net);
    }
    return classify(net, x);
}

/* ---- fully connected: size = width, layers ---- */

static QnValue *dense(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    char name[16];
    (void)layers;
    x = qn_flatten(net->g, x, 1);
    for (int64_t i = 0; i < m->size[1]; i++) {
        snprintf(name, sizeof name, "layer%d", (int)i);
        x = qn_relu(net->g, qn_nn_linear(net, name, x, m->size[0], true));
        if (m->size[2])
            x = qn_nn_dropout(net, x, 0.1);
    }
    return qn_nn_linear(net, "classes", x, 10, true);
}

/* ---- transformers: size = width, heads, layers, vocabulary ---- */

static QnValue *blocks(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGptSpec spec = { .width = m->size[0],
                       .heads = m->size[1],
                       .layers = m->size[2],
                       .vocab = m->size[3],
                       .window = x->type.shape.dim[1],
                       .dropout = m->size[4] ? 0.1 : 0 };
    (void)layers;
    return qn_nn_gpt2(net, x, &spec);
}

static const QnFamily towers = { .name = "tower", .image = 32, .build = tower },
                      plains = { .name = "plain", .image = 28, .channels = 1, .build = plain },
                      pooleds = { .name = "pooled", .image = 32, .channels = 1, .build = pooled },
                      inverteds = { .name = "inverted", .image = 32, .build = inverted },
                      denses = { .name = "dense", .image = 16, .build = dense },
                      tokens = { .name = "blocks", .sequence = 64, .build = blocks, .adam = true };

typedef struct Net {
    QnModel model;
    int64_t batch, image, sequence;
    bool infer;
} Net;

static const Net nets[] = {
    { { "tower 32", &towers, { 32, 2 } }, 16, 24, 0, false },
    { { "dense 512", &denses, { 512, 3 } }, 64, 20, 0, false },
    { { "blocks 192", &tokens, { 192, 6, 2, 300 } }, 8, 0, 96, false },
    { { "plain 24", &plains, { 24 } }, 48, 28, 0, false },
    { { "pooled 12", &pooleds, { 12, 4 } }, 32, 32, 0, false },
    { { "inverted 24", &inverteds, { 24, 2 } }, 16, 28, 0, false },
    { { "stem 48", &towers, { 48, 2, 1 } }, 4, 160, 0, false },
    { { "tower 128", &towers, { 128, 2 } }, 8, 14, 0, false },
    { { "dense 96", &denses, { 96, 3, 1 } }, 256, 16, 0, false },
    { { "pooled 32", &pooleds, { 32, 4 } }, 24, 32, 0, false },
    { { "blocks 96", &tokens, { 96, 3, 2, 80, 1 } }, 16, 0, 48, false },
    { { "tower 64", &towers, { 64, 2 } }, 8, 56, 0, false },
    { { "tower 256", &towers, { 256, 2 } }, 8, 14, 0, false },
    { { "dense 2048", &denses, { 2048, 2 } }, 32, 16, 0, false },
    { { "blocks 384", &tokens, { 384, 6, 2, 2000 } }, 4, 0, 192, false },
    { { "plain 8", &plains, { 8 } }, 128, 28, 0, false },
    { { "tower 16", &towers, { 16, 2 } }, 64, 28, 0, false },
    { { "tower 512", &towers, { 512, 1 } }, 16, 7, 0, false },
    { { "tower 384", &towers, { 384, 1 } }, 4, 10, 0, false },
    { { "inverted 64", &inverteds, { 64, 2 } }, 8, 14, 0, false },
    { { "dense 128", &denses, { 128, 2 } }, 16, 8, 0, false },
    { { "dense 1024", &denses, { 1024, 3, 1 } }, 512, 16, 0, false },
    { { "blocks 512", &tokens, { 512, 8, 1, 5000 } }, 4, 0, 128, false },
    { { "tower 96", &towers, { 96, 1 } }, 4, 96, 0, false },
    { { "tower 32, forward", &towers, { 32, 2 } }, 32, 32, 0, true },
    { { "dense 512, forward", &denses, { 512, 3 } }, 64, 16, 0, true },
    { { "tower 128, forward", &towers, { 128, 2 } }, 8, 28, 0, true },
    { { "blocks 256, forward", &tokens, { 256, 4, 2, 1000 } }, 4, 0, 128, true },
};

bool qn_calib_net(int i, const QnModel **model, QnCountRequest *request)
{
    if (i < 0 || i >= QN_COUNT(nets))
        return false;
    const Net *n = &nets[i];
    *model = &n->model;
    *request = (QnCountRequest){
        .train = !n->infer, .batch = n->batch, .image = n->image, .sequence = n->sequence
    };
    return true;
}

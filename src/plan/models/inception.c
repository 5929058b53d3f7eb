/* Nets of modules whose branches are joined: GoogLeNet (Szegedy et al. 2015, with batch norm, as
 * torchvision's), Inception v3 (2016) and v4 (2017). size: which net, whether training has the
 * auxiliary heads: the TensorFlow benchmarks train without them, torchvision with them. */
#include "plan/models/blocks.h"

typedef enum Way {
    SAME,  /* convolution that keeps the size */
    VALID, /* without zeros around */
    HALVE, /* without zeros, stride 2 */
    FORK,  /* 1x3 and 3x1, joined */
    MEAN,  /* pool that keeps the size */
    MAX,   /* likewise, by the largest */
    SHRINK /* pool of 3x3 by 2, by the largest */
} Way;

typedef struct Step {
    int64_t out, high, wide; /* wide 0: as high */
    Way way;
} Step;

typedef struct Module {
    Step branch[4][5];
} Module;

enum { END = -1 }; /* of a list of modules */

#define MEAN_THEN(out)                                                                             \
    {                                                                                              \
        { .way = MEAN, .high = 3 },                                                                \
        {                                                                                          \
            out, 1                                                                                 \
        }                                                                                          \
    }
#define POOL                                                                                       \
    {                                                                                              \
        {                                                                                          \
            .way = SHRINK, .high = 3                                                               \
        }                                                                                          \
    }

/* clang-format off */
#define V3_A(pooled) { { { { 64, 1 } }, { { 48, 1 }, { 64, 5 } },                                  \
                         { { 64, 1 }, { 96, 3 }, { 96, 3 } }, MEAN_THEN(pooled) } }
#define V3_C(c)      { { { { 192, 1 } }, { { c, 1 }, { c, 1, 7 }, { 192, 7, 1 } },                 \
                         { { c, 1 }, { c, 7, 1 }, { c, 1, 7 }, { c, 7, 1 }, { 192, 1, 7 } },       \
                         MEAN_THEN(192) } }
#define V3_E         { { { { 320, 1 } }, { { 384, 1 }, { 384, .way = FORK } },                     \
                         { { 448, 1 }, { 384, 3 }, { 384, .way = FORK } }, MEAN_THEN(192) } }
#define V4_A         { { { { 96, 1 } }, { { 64, 1 }, { 96, 3 } },                                  \
                         { { 64, 1 }, { 96, 3 }, { 96, 3 } }, MEAN_THEN(96) } }
#define V4_B         { { { { 384, 1 } }, { { 192, 1 }, { 224, 1, 7 }, { 256, 7, 1 } },             \
                         { { 192, 1 }, { 192, 7, 1 }, { 224, 1, 7 }, { 224, 7, 1 }, { 256, 1, 7 } }, \
                         MEAN_THEN(128) } }
#define V4_C         { { { { 256, 1 } }, { { 384, 1 }, { 256, .way = FORK } },                     \
                         { { 384, 1 }, { 448, 3, 1 }, { 512, 1, 3 }, { 256, .way = FORK } },       \
                         MEAN_THEN(256) } }
#define ONE(first, second, third, fourth, fifth, sixth)                                            \
    { { { { first, 1 } }, { { second, 1 }, { third, 3 } }, { { fourth, 1 }, { fifth, 3 } },        \
        { { .way = MAX, .high = 3 }, { sixth, 1 } } } }
#define LAST { { { { END } } } }

static const Module v3[] = {
    V3_A(32), V3_A(64), V3_A(64),
    { { { { 384, 3, 0, HALVE } }, { { 64, 1 }, { 96, 3 }, { 96, 3, 0, HALVE } }, POOL } },
    V3_C(128), V3_C(160), V3_C(160), V3_C(192),
    { { { { 192, 1 }, { 320, 3, 0, HALVE } },
        { { 192, 1 }, { 192, 1, 7 }, { 192, 7, 1 }, { 192, 3, 0, HALVE } }, POOL } },
    V3_E, V3_E, LAST,
};

static const Module v4[] = {
    { { POOL, { { 96, 3, 0, HALVE } } } },
    { { { { 64, 1 }, { 96, 3, 0, VALID } },
        { { 64, 1 }, { 64, 1, 7 }, { 64, 7, 1 }, { 96, 3, 0, VALID } } } },
    { { { { 192, 3, 0, HALVE } }, POOL } },
    V4_A, V4_A, V4_A, V4_A,
    { { { { 384, 3, 0, HALVE } }, { { 192, 1 }, { 224, 3 }, { 256, 3, 0, HALVE } }, POOL } },
    V4_B, V4_B, V4_B, V4_B, V4_B, V4_B, V4_B,
    { { { { 192, 1 }, { 192, 3, 0, HALVE } },
        { { 256, 1 }, { 256, 1, 7 }, { 320, 7, 1 }, { 320, 3, 0, HALVE } }, POOL } },
    V4_C, V4_C, V4_C, LAST,
};

/* The second 3x3 branch is 5x5 in the paper. */
static const Module v1[] = {
    ONE(64, 96, 128, 16, 32, 32), ONE(128, 128, 192, 32, 96, 64),
    { { { { .way = SHRINK, .high = 3 } } } },
    ONE(192, 96, 208, 16, 48, 64), ONE(160, 112, 224, 24, 64, 64), ONE(128, 128, 256, 24, 64, 64),
    ONE(112, 144, 288, 32, 64, 64), ONE(256, 160, 320, 32, 128, 128),
    { { { { .way = SHRINK, .high = 2 } } } },
    ONE(256, 160, 320, 32, 128, 128), ONE(384, 192, 384, 48, 128, 128), LAST,
};
/* clang-format on */

static QnValue *pool(QnNet *net, QnValue *x, const Step *s, bool ceil_mode)
{
    QnPoolAttr a = { .kernel = { 2, { s->high, s->high } },
                     .strides = { 2, { 2, 2 } },
                     .ceil_mode = ceil_mode };
    if (s->way == MEAN)
        return qn_block_avg_pool(net, x, s->high, 1, s->high / 2);
    if (s->way == MAX)
        return qn_block_max_pool(net, x, s->high, 1, s->high / 2);
    return qn_max_pool(net->g, x, &a);
}

static QnValue *fork(QnNet *net, QnValue *x, int64_t out)
{
    QnConvNorm flat = { .out = out, .kernel = 1, .width = 3, .act = QN_ACT_RELU };
    QnConvNorm tall = { .out = out, .kernel = 3, .width = 1, .act = QN_ACT_RELU };
    QnValue *parts[] = { qn_block_conv(net, "a", x, &flat), qn_block_conv(net, "b", x, &tall) };
    return qn_concat(net->g, parts, 2, 1);
}

static QnValue *step(QnNet *net, QnValue *x, const Step *s, bool ceil_mode)
{
    QnConvNorm conv = { .out = s->out,
                        .kernel = s->high,
                        .width = s->wide,
                        .stride = s->way == HALVE ? 2 : 1,
                        .valid = s->way == HALVE || s->way == VALID,
                        .act = QN_ACT_RELU };
    if (s->way == FORK)
        return fork(net, x, s->out);
    return s->out ? qn_block_conv(net, "c", x, &conv) : pool(net, x, s, ceil_mode);
}

static QnValue *module(QnNet *net, int number, QnValue *x, const Module *m, bool ceil_mode)
{
    QnValue *parts[4];
    int n = 0;
    qn_block_push(net, "mixed", number);
    for (; n < 4 && (m->branch[n][0].out || m->branch[n][0].high); n++) {
        const Step *s = m->branch[n];
        parts[n] = x;
        qn_block_push(net, "branch", n);
        for (int i = 0; i < 5 && (s[i].out || s[i].high); i++) {
            qn_block_push(net, "", i);
            parts[n] = step(net, parts[n], &s[i], ceil_mode);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return n == 1 ? parts[0] : qn_concat(net->g, parts, n, 1);
}

/* Scores from the middle of the net, which training adds to the loss. */
static QnValue *side_head(QnNet *net, QnValue *x)
{
    QnConvNorm narrow = { .out = 128, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm wide = { .out = 768, .kernel = 5, .valid = true, .act = QN_ACT_RELU };
    x = qn_block_conv(net, "aux_0", qn_block_avg_pool(net, x, 5, 3, 0), &narrow);
    return qn_block_classify(net, "aux_fc", qn_block_conv(net, "aux.1", x, &wide), 0);
}

static QnValue *side_head_v1(QnNet *net, const char *name, QnValue *x)
{
    QnGraph *g = net->g;
    QnConvNorm narrow = { .out = 128, .kernel = 1, .act = QN_ACT_RELU };
    qn_net_push(net, name);
    x = qn_adaptive_avg_pool(g, x, (QnInts){ 2, { 4, 4 } });
    x = qn_flatten(g, qn_block_conv(net, "conv", x, &narrow), 1);
    x = qn_relu(g, qn_nn_linear(net, "fc1", x, 1024, true));
    x = qn_nn_linear(net, "fc2", qn_nn_dropout(net, x, 0.7), 1000, true);
    qn_net_pop(net);
    return x;
}

/* ---- whole nets ---- */

typedef struct Net {
    const Module *modules;
    int side[2]; /* modules before which an auxiliary head reads; 0: none */
    double side_weight, dropout;
} Net;

enum { GOOGLENET, INCEPTION_V3, INCEPTION_V4 };

static const Net nets[] = {
    { v1, { 4, 7 }, 0.3, 0.2 },
    { v3, { 8 }, 0.4, 0.5 },
    { v4, { 15 }, 0.4, 0.2 },
};

static QnValue *stem(QnNet *net, int64_t which, QnValue *x)
{
    static const QnConvNorm convs[3][5] = {
        { { .out = 64, .kernel = 7, .stride = 2 },
          { .out = 64, .kernel = 1 },
          { .out = 192, .kernel = 3 } },
        { { .out = 32, .kernel = 3, .stride = 2, .valid = true },
          { .out = 32, .kernel = 3, .valid = true },
          { .out = 64, .kernel = 3 },
          { .out = 80, .kernel = 1 },
          { .out = 192, .kernel = 3, .valid = true } },
        { { .out = 32, .kernel = 3, .stride = 2, .valid = true },
          { .out = 32, .kernel = 3, .valid = true },
          { .out = 64, .kernel = 3 } },
    };
    static const int pool_after[3][2] = { { 0, 2 }, { 2, 4 }, { -1, -1 } };
    Step shrink = { .high = 3, .way = SHRINK };
    for (int i = 0; i < 5 && convs[which][i].out; i++) {
        QnConvNorm c = convs[which][i];
        c.act = QN_ACT_RELU;
        qn_block_push(net, "stem", i);
        x = qn_block_conv(net, "c", x, &c);
        qn_net_pop(net);
        if (i == pool_after[which][0] || i == pool_after[which][1])
            x = pool(net, x, &shrink, which == GOOGLENET);
    }
    return x;
}

static QnValue *net_step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t which = m->size[0];
    const Net *n = &nets[which];
    QnValue *side[2] = { 0 }, *x = stem(net, which, qn_step_image(net, in));
    int n_side = 0;
    (void)layers;
    for (int i = 0; n->modules[i].branch[0][0].out != END; i++) {
        if (in->train && m->size[1] && i && (i == n->side[0] || i == n->side[1])) {
            side[n_side] = which == GOOGLENET ? side_head_v1(net, n_side ? "aux2" : "aux1", x)
                                              : side_head(net, x);
            n_side++;
        }
        x = module(net, i, x, &n->modules[i], which == GOOGLENET);
    }
    x = qn_block_classify(net, "fc", x, n->dropout);
    if (!in->train)
        return x;
    QnValue *loss = qn_step_cross_entropy(net, "y", x);
    for (int i = 0; i < n_side; i++) {
        QnValue *more = qn_step_cross_entropy(net, i ? "y_aux2" : "y_aux1", side[i]);
        loss = qn_add(g, loss, qn_mul_scalar(g, more, n->side_weight));
    }
    return loss;
}

static const QnFamily family = { .name = "inception", .image = 299, .step = net_step };

#define TORCHVISION "torchvision 0.19, without the auxiliary heads"

static const QnModel models[] = {
    { "inception_v3", &family, { INCEPTION_V3 }, 23.835, "timm 1.0, torchvision 0.19", 5.713 },
    { "inception_v3_aux", &family, { INCEPTION_V3, 1 }, 23.835, TORCHVISION, 5.713 },
    { "inception_v4", &family, { INCEPTION_V4 }, 42.680, "timm 1.0", 12.28 },
    { "inception_v4_aux", &family, { INCEPTION_V4, 1 }, 42.680, "timm 1.0", 12.28 },
    { "googlenet", &family, { GOOGLENET }, 6.625, "torchvision 0.19", 1.498, 224 },
    { "googlenet_aux", &family, { GOOGLENET, 1 }, 6.625, TORCHVISION, 1.498, 224 },
};

const QnModelList qn_models_inception = { models, QN_COUNT(models) };

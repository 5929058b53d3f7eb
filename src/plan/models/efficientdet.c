/* EfficientDet (Tan et al. 2020): EfficientNet, pyramids that go down and up, separable heads. */
#include "plan/models/parts.h"

enum { LEVELS = 5, CLASSES = 90, ANCHORS = 9 };

/* size: channels of the pyramid, pyramids, convolutions of a head, width and depth of the base in
 * hundredths. */
enum { CHANNELS, PYRAMIDS, REPEATS, BASE_WIDTH, BASE_DEPTH };

/* ---- the base ---- */

/* Channels in eights, never more than a tenth below. */
static int64_t widened(const QnModel *m, int64_t channels)
{
    int64_t exact = channels * m->size[BASE_WIDTH], eights = (exact + 400) / 800 * 8;
    return 10 * 100 * eights < 9 * exact ? eights + 8 : eights;
}

static int64_t deepened(const QnModel *m, int64_t blocks)
{
    return (blocks * m->size[BASE_DEPTH] + 99) / 100;
}

/* Features of an 8th, 16th and 32nd of the image's side. */
static void add_base(QnNet *net, const QnModel *m, QnValue *x, QnValue *level[3])
{
    static const struct {
        int64_t wider, out, blocks, stride, kernel;
    } stages[] = {
        { 1, 16, 1, 1, 3 },  { 6, 24, 2, 2, 3 },  { 6, 40, 2, 2, 5 },  { 6, 80, 3, 2, 3 },
        { 6, 112, 3, 1, 5 }, { 6, 192, 4, 2, 5 }, { 6, 320, 1, 1, 3 },
    };
    QnConvNorm stem = { .out = widened(m, 32), .kernel = 3, .stride = 2, .act = QN_ACT_SILU };
    x = qn_block_conv(net, "stem", x, &stem);
    for (int s = 0; s < QN_COUNT(stages); s++) {
        qn_block_push(net, "stage", s);
        for (int64_t i = 0; i < deepened(m, stages[s].blocks); i++) {
            int64_t in = qn_block_dim(x, 1);
            QnInverted spec = { .hidden = stages[s].wider * in,
                                .out = widened(m, stages[s].out),
                                .kernel = stages[s].kernel,
                                .stride = i ? 1 : stages[s].stride,
                                .squeeze = QN_MAX(in / 4, 1),
                                .act = QN_ACT_SILU };
            qn_block_push(net, "block", i);
            x = qn_block_inverted(net, x, &spec);
            qn_net_pop(net);
        }
        qn_net_pop(net);
        if (s == 2 || s == 4 || s == 6)
            level[s / 2 - 1] = x;
    }
}

/* ---- pyramids ---- */

static QnValue *narrow(QnNet *net, const char *name, const QnModel *m, QnValue *x)
{
    if (qn_block_dim(x, 1) == m->size[CHANNELS])
        return x;
    QnPart p = { .out = m->size[CHANNELS], .norm = QN_PART_BATCH, .bias = true };
    return qn_part(net, name, x, &p);
}

/* Depthwise and 1x1 convolution. */
static QnValue *separable(QnNet *net, QnValue *x, int64_t out)
{
    int64_t in = qn_block_dim(x, 1);
    x = qn_part(net, "depthwise", x, &(QnPart){ .out = in, .kernel = 3, .groups = in });
    return qn_part(net, "pointwise", x, &(QnPart){ .out = out, .bias = true });
}

/* A node: features weighted by trained shares that sum to 1, then a separable convolution. */
static QnValue *node(QnNet *net, const QnModel *m, QnValue *const *x, int n)
{
    static const QnInitSpec ones = { .kind = QN_INIT_KIND_ONES };
    QnGraph *g = net->g;
    QnValue *sum = NULL;
    QnValue *shares = qn_relu(g, qn_net_param(net, "shares", &QN_SHAPE(n), &ones, false));
    shares = qn_div(g, shares, qn_add_scalar(g, qn_sum(g, shares, (QnInts){ 0 }, true), 1e-4));
    for (int i = 0; i < n; i++) {
        QnValue *share =
            qn_reshape(g, qn_slice_axis(g, shares, 0, i, i + 1), &QN_SHAPE(1, 1, 1, 1));
        QnValue *part = qn_mul(g, x[i], share);
        sum = sum ? qn_add(g, sum, part) : part;
    }
    sum = separable(net, qn_silu(g, sum), m->size[CHANNELS]);
    return qn_nn_batch_norm(net, "norm", sum);
}

static QnValue *half(QnNet *net, QnValue *x)
{
    return qn_block_max_pool(net, x, 3, 2, 1);
}

static QnValue *as_large_as(QnNet *net, QnValue *x, const QnValue *as)
{
    return qn_part_resize(net, x, qn_block_dim(as, 2), qn_block_dim(as, 3), false);
}

/* level in and out. Features of the base are narrowed anew for each node that takes them. */
static void add_pyramid(QnNet *net, const QnModel *m, QnValue **level)
{
    QnValue *down[LEVELS], *up = NULL;
    down[LEVELS - 1] = level[LEVELS - 1];
    for (int i = LEVELS - 2; i >= 0; i--) {
        qn_block_push(net, "down", i);
        QnValue *x = narrow(net, "narrow", m, level[i]);
        down[i] = node(net, m, (QnValue *[]){ x, as_large_as(net, down[i + 1], x) }, 2);
        qn_net_pop(net);
    }
    level[0] = up = down[0];
    for (int i = 1; i < LEVELS; i++) {
        qn_block_push(net, "up", i);
        QnValue *x = narrow(net, "narrow", m, level[i]), *below = half(net, up);
        bool last = i == LEVELS - 1;
        up = last ? node(net, m, (QnValue *[]){ x, below }, 2)
                  : node(net, m, (QnValue *[]){ x, down[i], below }, 3);
        level[i] = up;
        qn_net_pop(net);
    }
}

/* ---- heads: weights are those of all levels, norms are not ---- */

typedef struct Shared {
    QnValue *deep, *point, *bias;
    int64_t width;
} Shared;

static Shared share(QnNet *net, int64_t in, int64_t out)
{
    static const QnInitSpec normal = { .kind = QN_INIT_KIND_NORMAL, .scale = 0.01 },
                            zeros = { .kind = QN_INIT_KIND_ZEROS };
    return (Shared){ qn_net_param(net, "depthwise", &QN_SHAPE(in, 1, 3, 3), &normal, true),
                     qn_net_param(net, "pointwise", &QN_SHAPE(out, in, 1, 1), &normal, true),
                     qn_net_param(net, "bias", &QN_SHAPE(out), &zeros, false), in };
}

static QnValue *apply(QnNet *net, const Shared *s, QnValue *x)
{
    QnConvAttr deep = { .pads = { 4, { 1, 1, 1, 1 } }, .groups = s->width };
    x = qn_conv(net->g, x, s->deep, NULL, &deep);
    return qn_conv(net->g, x, s->point, s->bias, &(QnConvAttr){ .groups = 1 });
}

/* Rows of all anchors, (N,anchors,each). */
static QnValue *add_head(QnNet *net, const char *name, const QnModel *m, QnValue *const *level,
                         int64_t each)
{
    enum { MOST = 8 };
    QnValue *rows[LEVELS];
    Shared s[MOST];
    int n = (int)QN_MIN(m->size[REPEATS], MOST - 1);
    qn_net_push(net, name);
    for (int i = 0; i <= n; i++) {
        qn_block_push(net, "conv", i);
        s[i] = share(net, m->size[CHANNELS], i < n ? m->size[CHANNELS] : ANCHORS * each);
        qn_net_pop(net);
    }
    for (int k = 0; k < LEVELS; k++) {
        QnValue *x = level[k];
        qn_block_push(net, "level", k);
        for (int i = 0; i < n; i++) {
            qn_block_push(net, "norm", i);
            x = qn_silu(net->g, qn_nn_batch_norm(net, "norm", apply(net, &s[i], x)));
            qn_net_pop(net);
        }
        rows[k] = qn_part_rows(net, apply(net, &s[n], x), each);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return qn_concat(net->g, rows, LEVELS, 1);
}

static QnValue *build(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *level[LEVELS];
    (void)layers;
    add_base(net, m, qn_step_image(net, in), level);
    level[3] = half(net, narrow(net, "level3", m, level[2]));
    level[4] = half(net, level[3]);
    for (int64_t i = 0; i < m->size[PYRAMIDS]; i++) {
        qn_block_push(net, "pyramid", i);
        add_pyramid(net, m, level);
        qn_net_pop(net);
    }
    QnValue *scores = add_head(net, "classes", m, level, CLASSES);
    QnValue *boxes = add_head(net, "boxes", m, level, 4);
    if (in->train)
        return qn_add(g, qn_part_focal_loss(net, "wanted", scores),
                      qn_part_box_loss(net, "box", boxes));
    QnValue *best[2], *all = qn_flatten(g, scores, 1);
    if (qn_value_is_poison(all))
        return all;
    qn_topk(g, all, QN_MIN(5000, qn_block_dim(all, 1)), 1, true, best);
    qn_graph_output(g, "boxes", boxes);
    return qn_sigmoid(g, best[0]);
}

/* Launches: targets of each image, and sorting out its 5000 best boxes. */
static const QnFamily family = { .name = "efficientdet",
                                 .image = 512,
                                 .batch = 32,
                                 .step = build,
                                 .train_launches = 40,
                                 .infer_launches = 40 };

#define TAN "Tan et al. 2020, table 2"

static const QnModel models[] = {
    { "efficientdet_d0", &family, { 64, 3, 3, 100, 100 }, 3.88, TAN },
    { "efficientdet_d1", &family, { 88, 4, 3, 100, 110 }, 6.6, TAN, 0, 640 },
    { "efficientdet_d2", &family, { 112, 5, 3, 110, 120 }, 8.1, TAN, 0, 768 },
    { "efficientdet_d3", &family, { 160, 6, 4, 120, 140 }, 12, TAN, 0, 896 },
    { "efficientdet_d4", &family, { 224, 7, 4, 140, 180 }, 20.7, TAN, 0, 1024 },
    { "efficientdet_d5", &family, { 288, 7, 4, 160, 220 }, 33.7, TAN, 0, 1280 },
};

const QnModelList qn_models_efficientdet = { models, QN_COUNT(models) };

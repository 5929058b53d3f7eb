/* Detectors of one pass whose heads sit on ever smaller features: SSD (Liu et al. 2016). */
#include "plan/models/parts.h"

enum { LEVELS = 6, CLASSES = 81 };

/* Scores and boxes of all levels, (N,k,anchors). */
typedef struct Heads {
    QnValue *scores, *boxes;
} Heads;

typedef struct HeadSpec {
    int64_t classes, kernel;
    int64_t anchors[LEVELS]; /* at each place of a level */
} HeadSpec;

static QnValue *head(QnNet *net, const char *name, QnValue *x, int64_t each, int64_t anchors,
                     int64_t kernel)
{
    QnPart p = { .out = each * anchors, .kernel = kernel, .bias = true };
    x = qn_part(net, name, x, &p);
    int64_t places = qn_block_dim(x, 2) * qn_block_dim(x, 3);
    return qn_reshape(net->g, x, &QN_SHAPE(qn_block_dim(x, 0), each, anchors * places));
}

static Heads add_heads(QnNet *net, QnValue *const *level, const HeadSpec *s)
{
    QnValue *scores[LEVELS], *boxes[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        qn_block_push(net, "head", i);
        boxes[i] = head(net, "boxes", level[i], 4, s->anchors[i], s->kernel);
        scores[i] = head(net, "classes", level[i], s->classes, s->anchors[i], s->kernel);
        qn_net_pop(net);
    }
    return (Heads){ qn_concat(net->g, scores, LEVELS, 2), qn_concat(net->g, boxes, LEVELS, 2) };
}

/* Of all anchors that hold something, and of thrice as many others, those with the greatest loss.
 */
static QnValue *mined_loss(QnNet *net, const Heads *h)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(h->scores, 0), anchors = qn_block_dim(h->scores, 2),
            classes = qn_block_dim(h->scores, 1);
    QnValue *rows =
        qn_reshape(g, qn_swap_axes(g, h->scores, 1, 2), &QN_SHAPE(n * anchors, classes));
    QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(n * anchors));
    QnValue *each = qn_cross_entropy(g, rows, labels, 0, -100, QN_REDUCTION_NONE);
    each = qn_reshape(g, each, &QN_SHAPE(n, anchors));
    QnValue *most = qn_input(g, "most", QN_DTYPE_I64, &QN_SHAPE(n, 1));
    QnValue *rank = qn_argsort(g, qn_argsort(g, each, 1, true), 1, false);
    QnValue *counts = qn_cast(g, qn_less(g, rank, most), QN_DTYPE_F32);
    QnValue *loss = qn_sum(g, qn_mul(g, each, counts), (QnInts){ 0 }, false);
    return qn_add(g, loss, qn_part_box_loss(net, "wanted", h->boxes));
}

static QnValue *finish(QnNet *net, const QnStepInput *in, const Heads *h)
{
    if (in->train)
        return mined_loss(net, h);
    qn_graph_output(net->g, "boxes", h->boxes);
    return qn_softmax(net->g, h->scores, 1);
}

/* ---- on a residual net without its last stage, as NVIDIA's and MLPerf's. size: depth, channels of
 * the base, whether what follows it has norms ---- */

static QnValue *on_resnet(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const HeadSpec spec = { CLASSES, 3, { 4, 6, 6, 6, 4, 4 } };
    static const int64_t out[] = { 512, 512, 256, 256, 256 },
                         narrow[] = { 256, 256, 128, 128, 128 };
    QnBase base = { .depth = (int)m->size[0], .stages = 3, .keep_third = true };
    QnValue *features[4], *level[LEVELS];
    bool norms = m->size[1] != 0;
    (void)layers;
    qn_part_base(net, qn_part_sides(net, in, 1, 257), &base, features);
    level[0] = features[2];
    for (int i = 0; i < LEVELS - 1; i++) {
        QnPart first = { .out = narrow[i],
                         .norm = norms ? QN_PART_BATCH : QN_PART_PLAIN,
                         .bias = !norms,
                         .act = qn_relu };
        QnPart second = first;
        second.out = out[i];
        second.kernel = 3;
        second.stride = i < 3 ? 2 : 1;
        second.valid = i >= 3;
        qn_block_push(net, "more", i);
        level[i + 1] = qn_part(net, "second", qn_part(net, "first", level[i], &first), &second);
        qn_net_pop(net);
    }
    Heads h = add_heads(net, level, &spec);
    return finish(net, in, &h);
}

/* ---- on MobileNet, as TensorFlow's. size: version, kernel of the heads ---- */

static QnValue *separable(QnNet *net, QnValue *x, int64_t out, int64_t stride)
{
    QnConvNorm deep = { .out = qn_block_dim(x, 1),
                        .kernel = 3,
                        .stride = stride,
                        .groups = qn_block_dim(x, 1),
                        .act = QN_ACT_RELU6 };
    x = qn_block_conv(net, "depthwise", x, &deep);
    return qn_block_conv(net, "pointwise", x,
                         &(QnConvNorm){ .out = out, .kernel = 1, .act = QN_ACT_RELU6 });
}

/* MobileNet (Howard et al. 2017); level: after its 11th and its 13th convolution. */
static void mobilenet1(QnNet *net, QnValue *x, QnValue **level)
{
    static const int64_t out[] = {
        64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024
    };
    static const int64_t stride[] = { 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1 };
    x = qn_block_conv(net, "first", x,
                      &(QnConvNorm){ .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_RELU6 });
    for (int i = 0; i < QN_COUNT(out); i++) {
        qn_block_push(net, "conv", i + 1);
        x = separable(net, x, out[i], stride[i]);
        qn_net_pop(net);
        if (i == 10)
            level[0] = x;
    }
    level[1] = x;
}

/* MobileNetV2 (Sandler et al. 2018); level: the wide side of its 14th block, and its end. */
static void mobilenet2(QnNet *net, QnValue *x, QnValue **level)
{
    static const int64_t wider[] = { 1, 6, 6, 6, 6, 6, 6 },
                         out[] = { 16, 24, 32, 64, 96, 160, 320 };
    static const int64_t times[] = { 1, 2, 3, 4, 3, 3, 1 }, stride[] = { 1, 2, 2, 2, 1, 2, 1 };
    QnConvNorm wide = { .kernel = 1, .act = QN_ACT_RELU6 };
    x = qn_block_conv(net, "first", x,
                      &(QnConvNorm){ .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_RELU6 });
    for (int s = 0; s < QN_COUNT(out); s++) {
        for (int64_t i = 0; i < times[s]; i++) {
            QnInverted spec = { .hidden = wider[s] * qn_block_dim(x, 1),
                                .out = out[s],
                                .kernel = 3,
                                .stride = i ? 1 : stride[s],
                                .act = QN_ACT_RELU6 };
            qn_block_push(net, "block", 10 * s + i);
            if (s == 5 && i == 0) {
                /* the heads take the widened features; the block widens its input again */
                wide.out = spec.hidden;
                level[0] = qn_block_conv(net, "head", x, &wide);
            }
            x = qn_block_inverted(net, x, &spec);
            qn_net_pop(net);
        }
    }
    wide.out = 1280;
    level[1] = qn_block_conv(net, "last", x, &wide);
}

static QnValue *on_mobilenet(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const int64_t out[] = { 512, 256, 256, 128 };
    HeadSpec spec = { 91, m->size[1], { 3, 6, 6, 6, 6, 6 } };
    QnValue *level[LEVELS], *x = qn_step_image(net, in);
    (void)layers;
    (m->size[0] == 1 ? mobilenet1 : mobilenet2)(net, x, level);
    for (int i = 0; i < QN_COUNT(out); i++) {
        QnConvNorm narrow = { .out = out[i] / 2, .kernel = 1, .act = QN_ACT_RELU6 };
        QnConvNorm half = { .out = out[i], .kernel = 3, .stride = 2, .act = QN_ACT_RELU6 };
        qn_block_push(net, "more", i);
        x = qn_block_conv(net, "narrow", level[i + 1], &narrow);
        level[i + 2] = qn_block_conv(net, "half", x, &half);
        qn_net_pop(net);
    }
    Heads h = add_heads(net, level, &spec);
    return finish(net, in, &h);
}

static const QnFamily resnets = { .name = "ssd", .image = 300, .batch = 32, .step = on_resnet };
static const QnFamily mobilenets = {
    .name = "ssd", .image = 300, .batch = 32, .step = on_mobilenet
};

static const QnModel models[] = {
    { "ssd300_resnet50", &resnets, { 50, 1 } },
    { "ssd300_resnet34", &resnets, { 34, 0 } },
    { "ssd_mobilenet_v1", &mobilenets, { 1, 1 }, 6.8, "Howard et al. 2017, table 13" },
    { "ssd_mobilenet_v2", &mobilenets, { 2, 3 } },
};

const QnModelList qn_models_ssd = { models, QN_COUNT(models) };

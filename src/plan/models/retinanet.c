/* Detectors of one pass whose shared heads sit on a feature pyramid: RetinaNet (Lin et al. 2017).
 */
#include "plan/models/parts.h"

enum { FROM_TOP_FEATURE = 1, STRIDE_FIRST = 2, NORMS = 4, KEEPS_NORMS = 8 };
enum { LEVELS = 5, WIDTH = 256 };

/* size: depth, groups, their width, classes, anchors at each place, the flags above, how much of
 * the base is frozen. */
static void pyramid(QnNet *net, const QnModel *m, QnValue *x, QnValue **level)
{
    QnBase base = { .depth = (int)m->size[0],
                    .groups = m->size[1],
                    .group_width = m->size[2],
                    .given_norms = !(m->size[5] & KEEPS_NORMS),
                    .stride_first = (m->size[5] & STRIDE_FIRST) != 0,
                    .frozen = (int)m->size[6] };
    QnPart half = { .out = WIDTH,
                    .kernel = 3,
                    .stride = 2,
                    .bias = true,
                    .norm = m->size[5] & NORMS ? QN_PART_BATCH : QN_PART_PLAIN };
    QnValue *features[4];
    qn_part_base(net, x, &base, features);
    qn_part_pyramid(net, features + 1, 3, WIDTH, level);
    level[3] =
        qn_part(net, "level3", m->size[5] & FROM_TOP_FEATURE ? features[3] : level[2], &half);
    level[4] = qn_part(net, "level4", qn_relu(net->g, level[3]), &half);
}

/* Four convolutions and a last one, shared by the levels; their norms are not. */
typedef struct Tower {
    QnShared conv[5];
} Tower;

static Tower tower(QnNet *net, const char *name, int64_t out)
{
    Tower t;
    qn_net_push(net, name);
    for (int i = 0; i < 5; i++) {
        qn_block_push(net, "conv", i);
        t.conv[i] = qn_part_share(net, "shared", WIDTH, i < 4 ? WIDTH : out, 3);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return t;
}

static QnValue *climb(QnNet *net, const char *name, const Tower *t, QnValue *x, bool norms)
{
    qn_net_push(net, name);
    for (int i = 0; i < 5; i++) {
        qn_block_push(net, "conv", i);
        x = qn_part_apply(net, &t->conv[i], x);
        if (i < 4) {
            x = norms ? qn_nn_batch_norm(net, "norm", x) : x;
            x = qn_relu(net->g, x);
        }
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return x;
}

/* The thousand best places of each level, and their boxes. */
static QnValue *keep_best(QnNet *net, QnValue *scores)
{
    QnValue *best[2], *all = qn_flatten(net->g, qn_sigmoid(net->g, scores), 1);
    int64_t n = qn_block_dim(all, 1);
    if (qn_value_is_poison(all))
        return all;
    qn_topk(net->g, all, QN_MIN(n, 1000), 1, true, best);
    return best[0];
}

static QnValue *build(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *level[LEVELS], *scores[LEVELS], *boxes[LEVELS], *best[LEVELS];
    int64_t classes = m->size[3], anchors = m->size[4];
    bool norms = (m->size[5] & NORMS) != 0;
    (void)layers;
    pyramid(net, m, qn_part_picture(net, in), level);
    Tower find = tower(net, "classes", classes * anchors), fit = tower(net, "boxes", 4 * anchors);
    for (int i = 0; i < LEVELS; i++) {
        qn_block_push(net, "at", i);
        scores[i] = qn_part_rows(net, climb(net, "classes", &find, level[i], norms), classes);
        boxes[i] = qn_part_rows(net, climb(net, "boxes", &fit, level[i], norms), 4);
        qn_net_pop(net);
        best[i] = in->train ? NULL : keep_best(net, scores[i]);
    }
    QnValue *box = qn_concat(g, boxes, LEVELS, 1);
    if (!in->train) {
        qn_graph_output(g, "boxes", box);
        return qn_concat(g, best, LEVELS, 1);
    }
    QnValue *score = qn_concat(g, scores, LEVELS, 1);
    qn_part_match(net, in->batch, qn_block_dim(box, 1), 8);
    return qn_add(g, qn_part_focal_loss(net, "wanted", score), qn_part_box_loss(net, "box", box));
}

/* Launches: each image's anchors get their targets by about 40 small kernels in training, and its
 * best boxes are decoded, sorted and thinned out by as many after a pass forward. TensorFlow's
 * code assigns targets by about 150, and thins out class by class: 90 times about 5. */
static const QnFamily openimages = { .name = "retinanet",
                                     .image = 800,
                                     .batch = 16,
                                     .adam = true,
                                     .step = build,
                                     .train_launches = 40,
                                     .infer_launches = 40 };
static const QnFamily detectron = { .name = "retinanet",
                                    .image = 800,
                                    .width = QN_COCO_WIDTH,
                                    .batch = 2,
                                    .step = build,
                                    .train_launches = 40,
                                    .infer_launches = 40 };
static const QnFamily tensorflow = { .name = "ssd",
                                     .image = 320,
                                     .batch = 32,
                                     .step = build,
                                     .train_launches = 150,
                                     .infer_launches = 90 * 5 };

enum { MSRA = FROM_TOP_FEATURE | STRIDE_FIRST };

static const QnModel models[] = {
    { "retinanet_resnext50", &openimages, { 50, 32, 4, 264, 9, 0, 2 } },
    { "retinanet_R50_1x", &detectron, { 50, 1, 64, 80, 9, MSRA, 2 }, 37.74, "MMDetection 2" },
    { "retinanet_R50_3x", &detectron, { 50, 1, 64, 80, 9, MSRA, 2 }, 37.74, "MMDetection 2" },
    { "retinanet_R101_3x", &detectron, { 101, 1, 64, 80, 9, MSRA, 2 }, 56.74, "MMDetection 2" },
    { "ssd320_resnet50_fpn", &tensorflow, { 50, 1, 64, 90, 6, NORMS | KEEPS_NORMS, 0 } },
};

const QnModelList qn_models_retinanet = { models, QN_COUNT(models) };

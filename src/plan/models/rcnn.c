/* Detectors of two passes: regions are proposed, then looked at one by one. Faster R-CNN (Ren et
 * al. 2015), on a feature pyramid (Lin et al. 2017), Mask R-CNN and its heads for keypoints (He et
 * al. 2017), as Detectron2 and maskrcnn-benchmark build them. */
#include "plan/models/parts.h"

typedef enum Kind {
    PYRAMID, /* regions from five levels */
    C4,      /* from the third stage; the fourth one looks at each region */
    DC5,     /* from the fourth stage, dilated */
} Kind;

enum { STRIDE_FIRST = 1, MASKS = 2, KEYPOINTS = 4, NO_HEADS = 8, NO_PROPOSALS = 16 };
enum { LEVELS = 5, WIDTH = 256, BOXES = 8 /* a picture of COCO holds 7.3 */ };
/* Regions of an image that are looked at, in training and else; of which are outlined: in training
 * those on an object, about half of the quarter that may be, or on a person; else the detections
 * that are left. The latter two are what Detectron2's times with and without these heads differ
 * by. */
enum { TRAINED = 512, LOOKED_AT = 1000, ON_OBJECT = 64, ON_PERSON = 30, DETECTIONS = 55 };

/* size: depth, groups, their width, kind, classes, the flags above, detections if not those. */
typedef struct Detector {
    QnNet *net;
    const QnStepInput *in;
    QnBase base;
    Kind kind;
    int64_t classes, flags, detections;
    QnValue *level[LEVELS];
    int n_levels;
    QnValue *loss; /* so far; NULL: none */
} Detector;

static void add_loss(Detector *d, QnValue *loss)
{
    d->loss = d->loss ? qn_add(d->net->g, d->loss, loss) : loss;
}

static QnValue *sum_of(Detector *d, QnValue *rows, const char *name)
{
    int64_t classes = qn_block_dim(rows, -1), n = qn_block_dim(rows, 0);
    QnValue *labels = qn_input(d->net->g, name, QN_DTYPE_I64, &QN_SHAPE(n));
    return qn_cross_entropy(d->net->g, qn_reshape(d->net->g, rows, &QN_SHAPE(n, classes)), labels,
                            0, -100, QN_REDUCTION_MEAN);
}

static void add_features(Detector *d)
{
    QnValue *features[4];
    d->base.stages = d->kind == C4 ? 3 : 4;
    d->base.dilate_last = d->kind == DC5;
    qn_part_base(d->net, qn_part_picture(d->net, d->in), &d->base, features);
    d->n_levels = 1;
    d->level[0] = features[d->base.stages - 1];
    if (d->kind != PYRAMID)
        return;
    qn_part_pyramid(d->net, features, 4, WIDTH, d->level);
    d->level[4] = qn_block_max_pool(d->net, d->level[3], 1, 2, 0);
    d->n_levels = LEVELS;
}

/* ---- proposals ---- */

/* Boxes by what is predicted for their anchors, all of them, then the best `most`. */
static void propose(Detector *d, int level, QnValue *scores, QnValue *boxes)
{
    QnGraph *g = d->net->g;
    int64_t n = d->in->batch, rows = qn_block_dim(boxes, 1),
            most = d->kind == PYRAMID ? (d->in->train ? 2000 : 1000)
                   : d->in->train     ? 12000
                                      : 6000;
    if (qn_value_is_poison(boxes))
        return;
    qn_block_push(d->net, "anchors", level);
    QnValue *anchors = qn_input(g, d->net->scope, QN_DTYPE_F32, &QN_SHAPE(1, rows, 4));
    qn_net_pop(d->net);
    QnValue *placed = qn_add(g, qn_mul(g, qn_cast(g, boxes, QN_DTYPE_F32), anchors), anchors);
    QnValue *best[2];
    qn_topk(g, qn_reshape(g, scores, &QN_SHAPE(n, rows)), QN_MIN(most, rows), 1, true, best);
    QnValue *kept =
        qn_gather_nd(g, qn_clip(g, qn_exp(g, placed), 0, 1333), qn_unsqueeze(g, best[1], 2), 1);
    char name[] = "proposed0";
    name[8] = (char)('0' + level);
    qn_graph_output(g, name, kept);
}

static void add_proposals(Detector *d)
{
    QnGraph *g = d->net->g;
    int64_t in = qn_block_dim(d->level[0], 1), anchors = d->kind == PYRAMID ? 3 : 15;
    QnValue *scores[LEVELS], *boxes[LEVELS];
    qn_net_push(d->net, "proposals");
    QnShared look = qn_part_share(d->net, "conv", in, in, 3);
    QnShared find = qn_part_share(d->net, "classes", in, anchors, 1);
    QnShared fit = qn_part_share(d->net, "boxes", in, 4 * anchors, 1);
    for (int i = 0; i < d->n_levels; i++) {
        QnValue *x = qn_relu(g, qn_part_apply(d->net, &look, d->level[i]));
        scores[i] = qn_part_rows(d->net, qn_part_apply(d->net, &find, x), 1);
        boxes[i] = qn_part_rows(d->net, qn_part_apply(d->net, &fit, x), 4);
        propose(d, i, scores[i], boxes[i]);
    }
    qn_net_pop(d->net);
    if (!d->in->train)
        return;
    QnValue *all = qn_concat(g, boxes, d->n_levels, 1);
    qn_part_match(d->net, d->in->batch, qn_block_dim(all, 1), BOXES);
    add_loss(d, qn_part_box_loss(d->net, "anchor_boxes", all));
    add_loss(d, qn_part_binary_loss(d->net, "objects", qn_concat(g, scores, d->n_levels, 1)));
}

/* ---- heads ---- */

/* `each` regions of every image as (regions,C,size,size). The pyramid's lie on four levels, the
 * smaller the more: a half, a quarter and twice an eighth of them. */
static QnValue *pool(Detector *d, const char *name, int64_t each, int64_t size)
{
    static const int64_t share[] = { 2, 4, 8, 8 };
    QnGraph *g = d->net->g;
    QnValue *parts[4];
    int n = d->kind == PYRAMID ? 4 : 1;
    int64_t scale = d->kind == PYRAMID ? 4 : 16;
    qn_net_push(d->net, name);
    for (int i = 0; i < n; i++) {
        int64_t regions = d->in->batch * (n == 1 ? each : (each + share[i] - 1) / share[i]);
        qn_block_push(d->net, "regions", i);
        QnValue *boxes = qn_input(g, d->net->scope, QN_DTYPE_F32, &QN_SHAPE(regions, 4));
        qn_net_push(d->net, "images");
        QnValue *images = qn_input(g, d->net->scope, QN_DTYPE_I64, &QN_SHAPE(regions));
        qn_net_pop(d->net);
        qn_net_pop(d->net);
        QnRoiAttr a = { .size = { 2, { size, size } },
                        .sampling = 2,
                        .scale = 1.0 / (double)(scale << i),
                        .half_pixel = true };
        if (qn_value_is_poison(d->level[i]))
            return d->level[i];
        boxes = qn_cast(g, boxes, d->level[i]->type.dtype);
        parts[i] = qn_roi_align(g, d->level[i], boxes, images, &a);
    }
    qn_net_pop(d->net);
    return n == 1 ? parts[0] : qn_concat(g, parts, n, 0);
}

/* What the regions hold, and where exactly; the features that masks are made of in kind C4. */
static QnValue *add_box_head(Detector *d)
{
    QnGraph *g = d->net->g;
    QnValue *x, *deep = NULL;
    int64_t each = d->in->train ? TRAINED : LOOKED_AT;
    qn_net_push(d->net, "box_head");
    if (d->kind == C4) {
        deep = qn_part_stage(d->net, pool(d, "pool", each, 14), &d->base, 3);
        x = qn_flatten(g, qn_global_avg_pool(g, deep), 1);
    } else {
        x = qn_flatten(g, pool(d, "pool", each, 7), 1);
        x = qn_relu(g, qn_nn_linear(d->net, "fc1", x, 1024, true));
        x = qn_relu(g, qn_nn_linear(d->net, "fc2", x, 1024, true));
    }
    QnValue *scores = qn_nn_linear(d->net, "classes", x, d->classes + 1, true);
    QnValue *boxes = qn_nn_linear(d->net, "boxes", x, 4 * d->classes, true);
    qn_net_pop(d->net);
    boxes = qn_reshape(g, boxes, &QN_SHAPE(qn_block_dim(boxes, 0), d->classes, 4));
    if (d->in->train) {
        add_loss(d, sum_of(d, scores, "labels"));
        add_loss(d, qn_part_box_loss(d->net, "region_boxes", boxes));
    } else {
        qn_graph_output(g, "region_boxes", boxes);
        d->loss = qn_softmax(g, scores, 1);
    }
    return deep;
}

static int64_t outlined(const Detector *d)
{
    if (!d->in->train)
        return d->detections;
    return d->flags & KEYPOINTS ? ON_PERSON : ON_OBJECT;
}

static void add_mask_head(Detector *d, QnValue *deep)
{
    QnGraph *g = d->net->g;
    QnPart p = { .out = WIDTH, .kernel = 3, .bias = true, .act = qn_relu };
    QnValue *x;
    qn_net_push(d->net, "mask_head");
    if (d->kind == C4 && d->in->train) {
        x = qn_slice_axis(g, deep, 0, 0, d->in->batch * outlined(d)); /* looked at already */
    } else if (d->kind == C4) {
        QnBase same = d->base;
        x = qn_part_stage(d->net, pool(d, "pool", outlined(d), 14), &same, 3);
    } else {
        x = pool(d, "pool", outlined(d), 14);
        for (int i = 0; i < 4; i++) {
            qn_block_push(d->net, "conv", i);
            x = qn_part(d->net, "conv", x, &p);
            qn_net_pop(d->net);
        }
    }
    x = qn_relu(g, qn_part_double(d->net, "double", x, WIDTH, 2));
    x = qn_part(d->net, "classes", x, &(QnPart){ .out = d->classes, .bias = true });
    qn_net_pop(d->net);
    if (d->in->train) /* of the class that it is */
        add_loss(d, qn_part_binary_loss(d->net, "masks", qn_slice_axis(g, x, 1, 0, 1)));
    else
        qn_graph_output(g, "masks", qn_sigmoid(g, qn_slice_axis(g, x, 1, 0, 1)));
}

static void add_keypoint_head(Detector *d)
{
    enum { POINTS = 17, SIDE = 56 };
    QnGraph *g = d->net->g;
    QnPart p = { .out = 512, .kernel = 3, .bias = true, .act = qn_relu };
    qn_net_push(d->net, "keypoint_head");
    QnValue *x = pool(d, "pool", outlined(d), 14);
    for (int i = 0; i < 8; i++) {
        qn_block_push(d->net, "conv", i);
        x = qn_part(d->net, "conv", x, &p);
        qn_net_pop(d->net);
    }
    x = qn_part_double(d->net, "double", x, POINTS, 4);
    qn_net_pop(d->net);
    x = qn_part_resize(d->net, x, SIDE, SIDE, true);
    x = qn_reshape(g, x, &QN_SHAPE(qn_block_dim(x, 0) * POINTS, SIDE * SIDE));
    if (d->in->train)
        add_loss(d, sum_of(d, x, "keypoints"));
    else
        qn_graph_output(g, "keypoints", x);
}

static QnValue *build(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    Detector d = { .net = net,
                   .in = in,
                   .base = { .depth = (int)m->size[0],
                             .groups = m->size[1],
                             .group_width = m->size[2],
                             .given_norms = true,
                             .stride_first = (m->size[5] & STRIDE_FIRST) != 0,
                             .frozen = 2 },
                   .kind = (Kind)m->size[3],
                   .classes = m->size[4],
                   .flags = m->size[5],
                   .detections = m->size[6] ? m->size[6] : DETECTIONS };
    (void)layers;
    add_features(&d);
    if (!(d.flags & NO_PROPOSALS))
        add_proposals(&d);
    if (d.flags & NO_HEADS)
        return in->train ? d.loss : d.level[0];
    QnValue *deep = add_box_head(&d);
    if (d.flags & MASKS)
        add_mask_head(&d, deep);
    if (d.flags & KEYPOINTS)
        add_keypoint_head(&d);
    return d.loss;
}

/* Launches beside the graph. Of a step: anchors are made, levels are chosen for regions. Of each
 * image in training: overlaps are turned into labels of anchors and of regions, samples drawn from
 * both, proposals thinned out. Of each image otherwise: proposals and detections are thinned out,
 * masks pasted. Counted in Detectron2's code, to about a third. */
enum { OF_STEP = 120, OF_TRAINED = 150, OF_RESULT = 80 };
/* What masks should be is cut out on the host, object by object, for as long as ten launches take.
 * maskrcnn-benchmark thins out detections class by class, with about ten kernels each. */
enum { OF_MASKS = 10 * ON_OBJECT, OF_CLASSES = 10 * 80 };

#define RCNN .name = "rcnn", .step = build, .launches = OF_STEP
#define COCO RCNN, .image = 800, .width = QN_COCO_WIDTH
static const QnFamily coco = { COCO, .batch = 2, .train_launches = OF_TRAINED,
                               .infer_launches = OF_RESULT };
static const QnFamily masks = { COCO, .batch = 2, .train_launches = OF_TRAINED + OF_MASKS,
                                .infer_launches = OF_RESULT };
static const QnFamily benchmark = { COCO, .batch = 4, .train_launches = OF_TRAINED + OF_MASKS,
                                    .infer_launches = OF_RESULT + OF_CLASSES };
static const QnFamily streets = { RCNN,
                                  .image = 1024,
                                  .width = 2048,
                                  .batch = 1,
                                  .train_launches = OF_TRAINED + OF_MASKS,
                                  .infer_launches = OF_RESULT };

#define R50    50, 1, 64
#define R101   101, 1, 64
#define X101   101, 32, 8
#define CARION "Carion et al. 2020, table 1"
#define MMDET  "MMDetection 2"

static const QnModel models[] = {
    { "maskrcnn_r50_fpn", &benchmark, { R50, PYRAMID, 80, STRIDE_FIRST | MASKS }, 44.40, MMDET },
    { "faster_r-cnn_R50-FPN_1x", &coco, { R50, PYRAMID, 80, STRIDE_FIRST }, 41.53, MMDET },
    { "faster_r-cnn_R50-FPN_3x", &coco, { R50, PYRAMID, 80, STRIDE_FIRST }, 41.53, MMDET },
    { "faster_r-cnn_R101-FPN_3x", &coco, { R101, PYRAMID, 80, STRIDE_FIRST }, 60.52, MMDET },
    { "faster_r-cnn_X101-FPN_3x", &coco, { X101, PYRAMID, 80, 0 } },
    { "faster_r-cnn_R50-C4_1x", &coco, { R50, C4, 80, STRIDE_FIRST } },
    { "faster_r-cnn_R50-C4_3x", &coco, { R50, C4, 80, STRIDE_FIRST } },
    { "faster_r-cnn_R101-C4_3x", &coco, { R101, C4, 80, STRIDE_FIRST } },
    { "faster_r-cnn_R50-DC5_1x", &coco, { R50, DC5, 80, STRIDE_FIRST }, 166, CARION },
    { "faster_r-cnn_R50-DC5_3x", &coco, { R50, DC5, 80, STRIDE_FIRST }, 166, CARION },
    { "faster_r-cnn_R101-DC5_3x", &coco, { R101, DC5, 80, STRIDE_FIRST } },
#define MASK "coco_instance_segmentation_baselines_"
    { MASK "R50-FPN_1x", &masks, { R50, PYRAMID, 80, STRIDE_FIRST | MASKS }, 44.40, MMDET },
    { MASK "R50-FPN_3x", &masks, { R50, PYRAMID, 80, STRIDE_FIRST | MASKS }, 44.40, MMDET },
    { MASK "R101-FPN_3x", &masks, { R101, PYRAMID, 80, STRIDE_FIRST | MASKS }, 63.39, MMDET },
    { MASK "X101-FPN_3x", &masks, { X101, PYRAMID, 80, MASKS } },
    { MASK "R50-C4_1x", &masks, { R50, C4, 80, STRIDE_FIRST | MASKS } },
    { MASK "R50-C4_3x", &masks, { R50, C4, 80, STRIDE_FIRST | MASKS } },
    { MASK "R101-C4_3x", &masks, { R101, C4, 80, STRIDE_FIRST | MASKS } },
    { MASK "R50-DC5_1x", &masks, { R50, DC5, 80, STRIDE_FIRST | MASKS } },
    { MASK "R50-DC5_3x", &masks, { R50, DC5, 80, STRIDE_FIRST | MASKS } },
    { MASK "R101-DC5_3x", &masks, { R101, DC5, 80, STRIDE_FIRST | MASKS } },
#define POINTS "coco_person_keypoint_detection_baselines_"
    { POINTS "R50-FPN_1x", &coco, { R50, PYRAMID, 1, STRIDE_FIRST | KEYPOINTS } },
    { POINTS "R50-FPN_3x", &coco, { R50, PYRAMID, 1, STRIDE_FIRST | KEYPOINTS } },
    { POINTS "R101-FPN_3x", &coco, { R101, PYRAMID, 1, STRIDE_FIRST | KEYPOINTS } },
    { POINTS "X101-FPN_3x", &coco, { X101, PYRAMID, 1, KEYPOINTS } },
    { "detectron2_RPN-R50-C4_1x", &coco, { R50, C4, 80, STRIDE_FIRST | NO_HEADS } },
    { "detectron2_RPN-R50-FPN_1x", &coco, { R50, PYRAMID, 80, STRIDE_FIRST | NO_HEADS } },
    { "detectron2_Fast-R-CNN-R50-FPN_1x",
      &coco,
      { R50, PYRAMID, 80, STRIDE_FIRST | NO_PROPOSALS } },
    { "detectron2_R50-C4;-VOC", &coco, { R50, C4, 20, STRIDE_FIRST } },
    { "detectron2_R50-FPN;-Cityscapes", &streets, { R50, PYRAMID, 8, STRIDE_FIRST | MASKS } },
};

const QnModelList qn_models_rcnn = { models, QN_COUNT(models) };

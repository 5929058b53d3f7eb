/* YOLOv5 (release 7.0) and YOLOv8 of Ultralytics: detectors, segmenters, classifiers. */
#include "plan/models/parts.h"

enum { MOST_LEVELS = 4, CLASSES = 80, ANCHORS = 3, MASKS = 32, MATCHED = 512 };

typedef enum Head { DETECT, SEGMENT, CLASSIFY } Head;

/* size: width and depth in hundredths, levels (3 or 4), head. YOLOv8: the same, then the most
 * channels. */
enum { BY_WIDTH, BY_DEPTH, N_LEVELS, HEAD, MOST_CHANNELS };

static int64_t widened(const QnModel *m, int64_t channels)
{
    if (m->size[MOST_CHANNELS])
        channels = QN_MIN(channels, m->size[MOST_CHANNELS]);
    return (channels * m->size[BY_WIDTH] + 799) / 800 * 8;
}

static int64_t deepened(const QnModel *m, int64_t blocks)
{
    return QN_MAX(1, (blocks * m->size[BY_DEPTH] + 50) / 100);
}

/* For prediction norms are folded into the convolutions before them. */
static QnValue *conv(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t kernel,
                     int64_t stride)
{
    return qn_part(net, name, x,
                   &(QnPart){ .out = out,
                              .kernel = kernel,
                              .stride = stride,
                              .norm = net->training ? QN_PART_BATCH : QN_PART_PLAIN,
                              .bias = !net->training,
                              .act = qn_silu });
}

/* ---- blocks ---- */

static QnValue *bottleneck(QnNet *net, QnValue *x, int64_t first_kernel, bool around)
{
    int64_t width = qn_block_dim(x, 1);
    QnValue *y = conv(net, "cv1", x, width, first_kernel, 1);
    y = conv(net, "cv2", y, width, 3, 1);
    return around ? qn_add(net->g, x, y) : y;
}

/* YOLOv5's: half of the channels go through the bottlenecks, half around. */
static QnValue *c3(QnNet *net, QnValue *x, int64_t out, int64_t blocks, bool around)
{
    QnValue *y = conv(net, "cv1", x, out / 2, 1, 1);
    for (int64_t i = 0; i < blocks; i++) {
        qn_block_push(net, "m", i);
        y = bottleneck(net, y, 1, around);
        qn_net_pop(net);
    }
    return conv(net, "cv3", qn_part_join(net, y, conv(net, "cv2", x, out / 2, 1, 1)), out, 1, 1);
}

/* YOLOv8's: what every bottleneck gives is kept. */
static QnValue *c2f(QnNet *net, QnValue *x, int64_t out, int64_t blocks, bool around)
{
    enum { MOST = 16 };
    QnGraph *g = net->g;
    QnValue *kept[MOST];
    int n = (int)QN_MIN(blocks, MOST - 2);
    qn_split(g, conv(net, "cv1", x, out, 1, 1), 1, 2, kept);
    for (int i = 0; i < n; i++) {
        qn_block_push(net, "m", i);
        kept[i + 2] = bottleneck(net, kept[i + 1], 3, around);
        qn_net_pop(net);
    }
    return conv(net, "cv2", qn_concat(g, kept, n + 2, 1), out, 1, 1);
}

static QnValue *pools(QnNet *net, QnValue *x)
{
    QnValue *kept[4];
    int64_t out = qn_block_dim(x, 1);
    qn_net_push(net, "pools");
    kept[0] = conv(net, "cv1", x, out / 2, 1, 1);
    for (int i = 1; i < 4; i++)
        kept[i] = qn_block_max_pool(net, kept[i - 1], 5, 1, 2);
    x = conv(net, "cv2", qn_concat(net->g, kept, 4, 1), out, 1, 1);
    qn_net_pop(net);
    return x;
}

typedef QnValue *Block(QnNet *net, QnValue *x, int64_t out, int64_t blocks, bool around);

typedef struct Spec {
    Block *block;
    int64_t stem; /* kernel */
    bool narrows; /* before it goes up, and keeps what was narrowed */
    int64_t blocks[MOST_LEVELS + 1];
} Spec;

static const Spec v5 = { c3, 6, true, { 3, 6, 9, 3, 3 } };
static const Spec v8 = { c2f, 3, false, { 3, 6, 6, 3, 3 } };

/* ---- the net ---- */

static int64_t channels(const QnModel *m, int level)
{
    static const int64_t of[2][MOST_LEVELS] = { { 256, 512, 1024 }, { 256, 512, 768, 1024 } };
    return widened(m, of[m->size[N_LEVELS] == 4][level]);
}

/* Features of an 8th of the image's side, and of ever a half of that. */
static void add_backbone(QnNet *net, const QnModel *m, const Spec *s, QnValue *x, QnValue **level)
{
    int n = (int)m->size[N_LEVELS];
    x = conv(net, "stem", x, widened(m, 64), s->stem, 2);
    for (int i = -1; i < n; i++) {
        int64_t out = i < 0 ? widened(m, 128) : channels(m, i);
        qn_block_push(net, "stage", i + 1);
        x = conv(net, "half", x, out, 3, 2);
        x = s->block(net, x, out, deepened(m, s->blocks[i + 1]), true);
        if (i == n - 1 && m->size[HEAD] != CLASSIFY)
            x = pools(net, x);
        if (i >= 0)
            level[i] = x;
        qn_net_pop(net);
    }
}

static void add_neck(QnNet *net, const QnModel *m, const Spec *s, QnValue **level)
{
    int n = (int)m->size[N_LEVELS];
    int64_t blocks = deepened(m, 3);
    QnValue *x = level[n - 1], *kept[MOST_LEVELS];
    for (int i = n - 2; i >= 0; i--) {
        qn_block_push(net, "up", i);
        if (s->narrows)
            x = conv(net, "narrow", x, channels(m, i), 1, 1);
        kept[i + 1] = x;
        x = qn_part_join(
            net,
            qn_part_resize(net, x, qn_block_dim(level[i], 2), qn_block_dim(level[i], 3), false),
            level[i]);
        x = s->block(net, x, channels(m, i), blocks, false);
        qn_net_pop(net);
    }
    level[0] = x;
    for (int i = 1; i < n; i++) {
        qn_block_push(net, "down", i);
        x = qn_part_join(net, conv(net, "half", x, channels(m, i - 1), 3, 2), kept[i]);
        x = level[i] = s->block(net, x, channels(m, i), blocks, false);
        qn_net_pop(net);
    }
}

/* What masks are sums of. */
static QnValue *prototypes(QnNet *net, const QnModel *m, QnValue *x)
{
    int64_t width = widened(m, 256);
    qn_net_push(net, "prototypes");
    x = conv(net, "cv1", x, width, 3, 1);
    x = qn_part_resize(net, x, 2 * qn_block_dim(x, 2), 2 * qn_block_dim(x, 3), false);
    x = conv(net, "cv3", conv(net, "cv2", x, width, 3, 1), MASKS, 1, 1);
    qn_net_pop(net);
    return x;
}

/* Masks of the matched objects, (N,objects,H*W). */
static QnValue *masks(QnGraph *g, QnValue *weights, QnValue *prototypes)
{
    QnShape s = QN_SHAPE(qn_block_dim(prototypes, 0), MASKS,
                         qn_block_dim(prototypes, 2) * qn_block_dim(prototypes, 3));
    return qn_matmul(g, weights, qn_reshape(g, prototypes, &s), NULL, false, false);
}

/* ---- YOLOv5's heads ---- */

/* Losses of rows (N,anchors,4 + 1 + classes + masks): whether all of them hold something, what and
 * where the matched ones. */
static QnValue *row_loss(QnNet *net, QnValue *rows)
{
    QnGraph *g = net->g;
    int64_t matched = QN_MIN(MATCHED, qn_block_dim(rows, 1));
    QnValue *some = qn_slice_axis(g, rows, 1, 0, matched);
    QnValue *boxes = qn_sigmoid(g, qn_slice_axis(g, some, 2, 0, 4));
    QnValue *loss = qn_part_binary_loss(net, "objects", qn_slice_axis(g, rows, 2, 4, 5));
    loss = qn_add(g, loss, qn_part_box_loss(net, "box", boxes));
    return qn_add(g, loss,
                  qn_part_binary_loss(net, "classes", qn_slice_axis(g, some, 2, 5, 5 + CLASSES)));
}

static QnValue *detect5(QnNet *net, const QnModel *m, const QnStepInput *in, QnValue **level)
{
    QnGraph *g = net->g;
    QnValue *rows[MOST_LEVELS];
    bool outlines = m->size[HEAD] == SEGMENT;
    int n = (int)m->size[N_LEVELS];
    int64_t each = 5 + CLASSES + (outlines ? MASKS : 0);
    for (int i = 0; i < n; i++) {
        qn_block_push(net, "detect", i);
        QnPart p = { .out = ANCHORS * each, .bias = true };
        rows[i] = qn_part_rows(net, qn_part(net, "conv", level[i], &p), each);
        qn_net_pop(net);
    }
    QnValue *all = qn_concat(g, rows, n, 1);
    QnValue *proto = outlines ? prototypes(net, m, level[0]) : NULL;
    if (!in->train) {
        if (proto)
            qn_graph_output(g, "prototypes", proto);
        return qn_sigmoid(g, all);
    }
    QnValue *loss = row_loss(net, all);
    if (!proto)
        return loss;
    int64_t matched = QN_MIN(MATCHED, qn_block_dim(all, 1));
    QnValue *weights = qn_slice_axis(g, qn_slice_axis(g, all, 1, 0, matched), 2, 5 + CLASSES, each);
    return qn_add(g, loss, qn_part_binary_loss(net, "masks", masks(g, weights, proto)));
}

static QnValue *build5(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnValue *level[MOST_LEVELS];
    (void)layers;
    add_backbone(net, m, &v5, qn_step_image(net, in), level);
    if (m->size[HEAD] == CLASSIFY) {
        QnValue *x = conv(net, "last", level[m->size[N_LEVELS] - 1], 1280, 1, 1);
        x = qn_block_classify(net, "classes", x, 0);
        return in->train ? qn_step_cross_entropy(net, "y", x) : x;
    }
    add_neck(net, m, &v5, level);
    return detect5(net, m, in, level);
}

/* ---- YOLOv8's head: no anchors; each side of a box as a distribution over 16 lengths ---- */

enum { LENGTHS = 16 };

static QnValue *tower(QnNet *net, const char *name, QnValue *x, int64_t width, int64_t out)
{
    qn_net_push(net, name);
    x = conv(net, "cv2", conv(net, "cv1", x, width, 3, 1), width, 3, 1);
    x = qn_part(net, "cv3", x, &(QnPart){ .out = out, .bias = true });
    qn_net_pop(net);
    return qn_part_rows(net, x, out);
}

static QnValue *build8(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *level[MOST_LEVELS], *scores[MOST_LEVELS], *sides[MOST_LEVELS];
    int n = (int)m->size[N_LEVELS];
    (void)layers;
    add_backbone(net, m, &v8, qn_step_image(net, in), level);
    add_neck(net, m, &v8, level);
    int64_t first = qn_block_dim(level[0], 1), wide = QN_MAX(first, CLASSES),
            narrow = QN_MAX(QN_MAX(16, first / 4), 4 * LENGTHS);
    for (int i = 0; i < n; i++) {
        qn_block_push(net, "detect", i);
        scores[i] = tower(net, "classes", level[i], wide, CLASSES);
        sides[i] = tower(net, "boxes", level[i], narrow, 4 * LENGTHS);
        qn_net_pop(net);
    }
    QnValue *score = qn_concat(g, scores, n, 1), *side = qn_concat(g, sides, n, 1);
    int64_t anchors = qn_block_dim(side, 1);
    side = qn_reshape(g, side, &QN_SHAPE(in->batch, anchors, 4, LENGTHS));
    QnValue *lengths = qn_arange(g, 0, 1, LENGTHS, net->dtype);
    QnValue *boxes =
        qn_sum(g, qn_mul(g, qn_softmax(g, side, 3), lengths), (QnInts){ 1, { 3 } }, false);
    if (in->train)
        return qn_add(g, qn_part_binary_loss(net, "classes", score),
                      qn_part_box_loss(net, "box", boxes));
    qn_graph_output(g, "boxes", boxes);
    return qn_sigmoid(g, score);
}

/* The published times are without sorting out overlapping boxes. */
static const QnFamily yolo5 = { .name = "yolo", .image = 640, .batch = 16, .step = build5 };
static const QnFamily yolo8 = { .name = "yolo", .image = 640, .batch = 16, .step = build8 };

#define N  25, 33
#define S  50, 33
#define M  75, 67
#define L  100, 100
#define X  125, 133
#define V5 "Ultralytics YOLOv5 7.0"
#define V8 "Ultralytics YOLOv8 8.0"

static const QnModel models[] = {
    { "yolov5n", &yolo5, { N, 3, DETECT }, 1.867, V5 },
    { "yolov5s", &yolo5, { S, 3, DETECT }, 7.226, V5 },
    { "yolov5m", &yolo5, { M, 3, DETECT }, 21.17, V5 },
    { "yolov5l", &yolo5, { L, 3, DETECT }, 46.53, V5 },
    { "yolov5x", &yolo5, { X, 3, DETECT }, 86.7, V5 },
    { "yolov5n6", &yolo5, { N, 4, DETECT }, 3.24, V5, 0, 1280 },
    { "yolov5s6", &yolo5, { S, 4, DETECT }, 12.61, V5, 0, 1280 },
    { "yolov5m6", &yolo5, { M, 4, DETECT }, 35.7, V5, 0, 1280 },
    { "yolov5l6", &yolo5, { L, 4, DETECT }, 76.8, V5, 0, 1280 },
    { "yolov5x6", &yolo5, { X, 4, DETECT }, 140.7, V5, 0, 1280 },
    { "yolov5n-seg", &yolo5, { N, 3, SEGMENT }, 2.0, V5 },
    { "yolov5s-seg", &yolo5, { S, 3, SEGMENT }, 7.6, V5 },
    { "yolov5m-seg", &yolo5, { M, 3, SEGMENT }, 22.0, V5 },
    { "yolov5l-seg", &yolo5, { L, 3, SEGMENT }, 47.9, V5 },
    { "yolov5x-seg", &yolo5, { X, 3, SEGMENT }, 88.8, V5 },
    { "yolov5n_cls", &yolo5, { N, 3, CLASSIFY }, 2.5, V5, 0, 224 },
    { "yolov5s_cls", &yolo5, { S, 3, CLASSIFY }, 5.4, V5, 0, 224 },
    { "yolov5m_cls", &yolo5, { M, 3, CLASSIFY }, 12.9, V5, 0, 224 },
    { "yolov5l_cls", &yolo5, { L, 3, CLASSIFY }, 26.5, V5, 0, 224 },
    { "yolov5x_cls", &yolo5, { X, 3, CLASSIFY }, 48.1, V5, 0, 224 },
    { "yolov8n", &yolo8, { N, 3, DETECT, 1024 }, 3.15, V8 },
    { "yolov8s", &yolo8, { S, 3, DETECT, 1024 }, 11.2, V8 },
    { "yolov8m", &yolo8, { M, 3, DETECT, 768 }, 25.9, V8 },
    { "yolov8l", &yolo8, { L, 3, DETECT, 512 }, 43.7, V8 },
    { "yolov8x", &yolo8, { 125, 100, 3, DETECT, 512 }, 68.2, V8 },
};

const QnModelList qn_models_yolo = { models, QN_COUNT(models) };

/* YOLOv3 (Redmon and Farhadi 2018) and YOLOv4 (Bochkovskiy et al. 2020, Wang et al. 2021), as
 * Darknet's configurations have them. */
#include "plan/models/parts.h"

enum { CLASSES = 80, EACH = 5 + CLASSES, ANCHORS = 3, MATCHED = 512 };

typedef struct Net {
    QnNet *net;
    QnActivation *act;
    int number; /* of convolutions so far; their names */
} Net;

static QnValue *conv(Net *d, QnValue *x, int64_t out, int64_t kernel, int64_t stride)
{
    QnPart p = {
        .out = out, .kernel = kernel, .stride = stride, .norm = QN_PART_BATCH, .act = d->act
    };
    qn_block_push(d->net, "", d->number++);
    x = qn_part(d->net, "conv", x, &p);
    qn_net_pop(d->net);
    return x;
}

static QnValue *join(Net *d, QnValue *a, QnValue *b)
{
    return qn_part_join(d->net, a, b);
}

/* A 1x1 and a 3x3 convolution with a sum around them, `times` times. */
static QnValue *residuals(Net *d, QnValue *x, int64_t inner, int64_t times)
{
    int64_t out = qn_block_dim(x, 1);
    for (int64_t i = 0; i < times; i++)
        x = qn_add(d->net->g, x, conv(d, conv(d, x, inner, 1, 1), out, 3, 1));
    return x;
}

/* Half the side; a part of the channels goes around the residual blocks (Wang et al. 2020). */
static QnValue *partial(Net *d, QnValue *x, int64_t out, int64_t width, int64_t inner,
                        int64_t times)
{
    x = conv(d, x, out, 3, 2);
    QnValue *around = conv(d, x, width, 1, 1), *y = conv(d, x, width, 1, 1);
    y = conv(d, residuals(d, y, inner, times), width, 1, 1);
    return conv(d, join(d, y, around), out, 1, 1);
}

/* Pools of three sizes beside x. */
static QnValue *spatial_pools(Net *d, QnValue *x)
{
    QnValue *parts[4] = { x };
    for (int i = 1; i < 4; i++)
        parts[i] = qn_block_max_pool(d->net, x, 4 * i + 1, 1, 2 * i);
    return qn_concat(d->net->g, parts, 4, 1);
}

/* 1x1 to `width`, 3x3 to twice that, `n` in turn. */
static QnValue *turns(Net *d, QnValue *x, int64_t width, int n)
{
    for (int i = 0; i < n; i++)
        x = conv(d, x, i % 2 ? 2 * width : width, i % 2 ? 3 : 1, 1);
    return x;
}

static QnValue *up(Net *d, QnValue *x, int64_t width)
{
    x = conv(d, x, width, 1, 1);
    return qn_part_resize(d->net, x, 2 * qn_block_dim(x, 2), 2 * qn_block_dim(x, 3), false);
}

/* Rows of a level, after a last 3x3 convolution. */
static QnValue *detect(Net *d, QnValue *x, int64_t width)
{
    x = conv(d, x, width, 3, 1);
    qn_block_push(d->net, "", d->number++);
    x = qn_part(d->net, "detect", x, &(QnPart){ .out = ANCHORS * EACH, .bias = true });
    qn_net_pop(d->net);
    return qn_part_rows(d->net, x, EACH);
}

/* ---- version 3 ---- */

static void base3(Net *d, QnValue *x, QnValue *level[3])
{
    static const int64_t times[] = { 1, 2, 8, 8, 4 };
    x = conv(d, x, 32, 3, 1);
    for (int i = 0; i < QN_COUNT(times); i++) {
        x = conv(d, x, 64 << i, 3, 2);
        x = residuals(d, x, 32 << i, times[i]);
        if (i > 1)
            level[i - 2] = x;
    }
}

static int version3(Net *d, const QnModel *m, QnValue *x, QnValue *rows[3])
{
    QnValue *level[3];
    bool pools = m->size[1] != 0;
    base3(d, x, level);
    x = turns(d, level[2], 512, pools ? 3 : 5);
    if (pools)
        x = turns(d, spatial_pools(d, x), 512, 3);
    rows[0] = detect(d, x, 1024);
    x = turns(d, join(d, up(d, x, 256), level[1]), 256, 5);
    rows[1] = detect(d, x, 512);
    x = turns(d, join(d, up(d, x, 128), level[0]), 128, 5);
    rows[2] = detect(d, x, 256);
    return 3;
}

static int tiny3(Net *d, const QnModel *m, QnValue *x, QnValue *rows[3])
{
    QnValue *kept = NULL;
    (void)m;
    for (int i = 0; i < 6; i++) {
        x = conv(d, x, 16 << i, 3, 1);
        kept = i == 4 ? x : kept;
        if (i < 5)
            x = qn_block_max_pool(d->net, x, 2, 2, 0);
        else /* keeps the side */
            x = qn_block_max_pool(d->net, x, 3, 1, 1);
    }
    x = conv(d, conv(d, x, 1024, 3, 1), 256, 1, 1);
    rows[0] = detect(d, x, 512);
    rows[1] = detect(d, join(d, up(d, x, 128), kept), 256);
    return 2;
}

/* ---- version 4 ---- */

static int version4(Net *d, const QnModel *m, QnValue *x, QnValue *rows[3])
{
    QnValue *level[3], *mid, *low;
    (void)m;
    x = partial(d, conv(d, x, 32, 3, 1), 64, 64, 32, 1);
    x = partial(d, x, 128, 64, 64, 2);
    x = level[0] = partial(d, x, 256, 128, 128, 8);
    x = level[1] = partial(d, x, 512, 256, 256, 8);
    x = level[2] = partial(d, x, 1024, 512, 512, 4);
    d->act = qn_leaky_tenth;
    x = low = turns(d, spatial_pools(d, turns(d, x, 512, 3)), 512, 3);
    x = join(d, conv(d, level[1], 256, 1, 1), up(d, x, 256));
    x = mid = turns(d, x, 256, 5);
    x = join(d, conv(d, level[0], 128, 1, 1), up(d, x, 128));
    x = turns(d, x, 128, 5);
    rows[0] = detect(d, x, 256);
    x = turns(d, join(d, conv(d, x, 256, 3, 2), mid), 256, 5);
    rows[1] = detect(d, x, 512);
    x = turns(d, join(d, conv(d, x, 512, 3, 2), low), 512, 5);
    rows[2] = detect(d, x, 1024);
    return 3;
}

/* Two branches of 1x1, one with `pairs` of 1x1 and 3x3 convolutions of the same width. */
static QnValue *branches(Net *d, QnValue *x, int64_t width, int64_t pairs)
{
    x = conv(d, x, width, 1, 1);
    QnValue *around = conv(d, x, width, 1, 1), *y = x;
    for (int64_t i = 0; i < pairs; i++)
        y = conv(d, conv(d, y, width, 1, 1), width, 3, 1);
    return conv(d, join(d, y, around), width, 1, 1);
}

/* Two branches, one with pools. */
static QnValue *pooled_branches(Net *d, QnValue *x, int64_t width, int64_t pairs)
{
    QnValue *around = conv(d, x, width, 1, 1);
    x = conv(d, conv(d, conv(d, x, width, 1, 1), width, 3, 1), width, 1, 1);
    x = spatial_pools(d, x);
    for (int64_t i = 0; i < pairs; i++)
        x = conv(d, conv(d, x, width, 1, 1), width, 3, 1);
    return conv(d, join(d, x, around), width, 1, 1);
}

/* size: channels of the first stage, pairs of branches, blocks of the stages after it. */
static int scaled4(Net *d, const QnModel *m, QnValue *x, QnValue *rows[3])
{
    const int64_t w = m->size[1], pairs = m->size[2], *times = m->size + 3;
    QnValue *level[3], *mid, *low;
    x = residuals(d, conv(d, conv(d, x, 32, 3, 1), w, 3, 2), w / 2, 1);
    x = partial(d, x, 2 * w, w, w, times[0]);
    x = level[0] = partial(d, x, 4 * w, 2 * w, 2 * w, times[1]);
    x = level[1] = partial(d, x, 8 * w, 4 * w, 4 * w, times[2]);
    x = level[2] = partial(d, x, 16 * w, 8 * w, 8 * w, times[3]);
    x = low = pooled_branches(d, x, 8 * w, pairs - 1);
    x = join(d, conv(d, level[1], 4 * w, 1, 1), up(d, x, 4 * w));
    x = mid = branches(d, x, 4 * w, pairs);
    x = join(d, conv(d, level[0], 2 * w, 1, 1), up(d, x, 2 * w));
    x = branches(d, x, 2 * w, pairs);
    rows[0] = detect(d, x, 4 * w);
    x = branches(d, join(d, conv(d, x, 4 * w, 3, 2), mid), 4 * w, pairs);
    rows[1] = detect(d, x, 8 * w);
    x = branches(d, join(d, conv(d, x, 8 * w, 3, 2), low), 8 * w, pairs);
    rows[2] = detect(d, x, 16 * w);
    return 3;
}

static int tiny4(Net *d, const QnModel *m, QnValue *x, QnValue *rows[3])
{
    QnValue *kept = NULL;
    (void)m;
    x = conv(d, conv(d, x, 32, 3, 2), 64, 3, 2);
    for (int64_t w = 64; w <= 256; w *= 2) { /* half of the channels goes on, twice */
        x = conv(d, x, w, 3, 1);
        QnValue *first = conv(d, qn_slice_axis(d->net->g, x, 1, w / 2, w), w / 2, 3, 1);
        QnValue *second = conv(d, first, w / 2, 3, 1);
        kept = conv(d, join(d, second, first), w, 1, 1);
        x = qn_block_max_pool(d->net, join(d, x, kept), 2, 2, 0);
    }
    x = conv(d, conv(d, x, 512, 3, 1), 256, 1, 1);
    rows[0] = detect(d, x, 512);
    rows[1] = detect(d, join(d, up(d, x, 128), kept), 256);
    return 2;
}

/* ---- all of them. size[0]: which ---- */

typedef enum Version { V3, V3_TINY, V4, V4_SCALED, V4_TINY } Version;

static QnValue *loss(QnNet *net, QnValue *rows)
{
    QnGraph *g = net->g;
    QnValue *some = qn_slice_axis(g, rows, 1, 0, QN_MIN(MATCHED, qn_block_dim(rows, 1)));
    QnValue *sum = qn_part_binary_loss(net, "objects", qn_slice_axis(g, rows, 2, 4, 5));
    sum = qn_add(g, sum, qn_part_box_loss(net, "box", qn_slice_axis(g, some, 2, 0, 4)));
    return qn_add(g, sum, qn_part_binary_loss(net, "classes", qn_slice_axis(g, some, 2, 5, EACH)));
}

static QnValue *build(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static int (*const versions[])(Net * d, const QnModel *m, QnValue *x,
                                   QnValue *rows[3]) = { [V3] = version3,
                                                         [V3_TINY] = tiny3,
                                                         [V4] = version4,
                                                         [V4_SCALED] = scaled4,
                                                         [V4_TINY] = tiny4 };
    Net d = { .net = net,
              .act = m->size[0] == V4 || m->size[0] == V4_SCALED ? qn_mish : qn_leaky_tenth };
    QnValue *rows[3];
    (void)layers;
    int n = versions[m->size[0]](&d, m, qn_part_sides(net, in, 32, 0), rows);
    QnValue *all = qn_concat(net->g, rows, n, 1);
    return in->train ? loss(net, all) : qn_sigmoid(net->g, all);
}

static const QnFamily family = { .name = "yolo", .image = 416, .batch = 16, .step = build };

#define CSP   V4_SCALED, 64, 2, 2, 8, 8, 4
#define CSP_X V4_SCALED, 80, 3, 3, 10, 10, 5
#define FILES "Darknet, by the sizes of its files of weights"
#define WANG  "Wang et al. 2021, table 2"

static const QnModel models[] = {
    { "yolov3_288", &family, { V3 }, 61.95, "MMDetection 2", 0, 288 },
    { "yolov3_416", &family, { V3 }, 61.95, "MMDetection 2", 0, 416 },
    { "yolov3_608", &family, { V3 }, 61.95, "MMDetection 2", 0, 608 },
    { "yolov3_spp_288", &family, { V3, 1 }, 62.9, FILES, 0, 288 },
    { "yolov3_spp_416", &family, { V3, 1 }, 62.9, FILES, 0, 416 },
    { "yolov3_spp_608", &family, { V3, 1 }, 62.9, FILES, 0, 608 },
    { "yolov3_tiny", &family, { V3_TINY }, 8.83, FILES },
    { "yolov3_tiny_288", &family, { V3_TINY }, 8.83, FILES, 0, 288 },
    { "yolov3_tiny_416", &family, { V3_TINY }, 8.83, FILES, 0, 416 },
    { "yolov4_288", &family, { V4 }, 64, WANG, 0, 288 },
    { "yolov4_416", &family, { V4 }, 64, WANG, 0, 416 },
    { "yolov4_608", &family, { V4 }, 64, WANG, 0, 608 },
    { "yolov4_csp_256", &family, { CSP }, 53, WANG, 0, 256 },
    { "yolov4_csp_512", &family, { CSP }, 53, WANG, 0, 512 },
    { "yolov4_tiny_288", &family, { V4_TINY }, 6.06, FILES, 0, 288 },
    { "yolov4_tiny_416", &family, { V4_TINY }, 6.06, FILES, 0, 416 },
    { "yolov4x_mish_320", &family, { CSP_X }, 99.9, FILES, 0, 320 },
    { "yolov4x_mish_640", &family, { CSP_X }, 99.9, FILES, 0, 640 },
};

const QnModelList qn_models_darknet = { models, QN_COUNT(models) };

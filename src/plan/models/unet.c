/* Nets that outline: encoders and decoders with links between equal resolutions. U-Net
 * (Ronneberger et al. 2015), 3-D U-Net (Cicek et al. 2016), nnU-Net (Isensee et al. 2021) and V-Net
 * (Milletari et al. 2016). */
#include "plan/models/parts.h"

static QnValue *twice(QnNet *net, QnValue *x, const QnPart *first, const QnPart *second)
{
    x = qn_part(net, "conv1", x, first);
    return qn_part(net, "conv2", x, second);
}

/* ---- levels that begin with a strided convolution, instance norms. size: levels, widest level,
 * classes, kernel of the last convolution, leaky or not, windows of a part of an example ---- */

static QnValue *strided_level(QnNet *net, const QnModel *m, QnValue *x, int64_t width,
                              int64_t stride)
{
    QnPart second = { .out = width,
                      .kernel = 3,
                      .norm = QN_PART_INSTANCE,
                      .act = m->size[4] ? qn_leaky_hundredth : qn_relu };
    QnPart first = second;
    first.stride = stride;
    return twice(net, x, &first, &second);
}

static QnValue *strided(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    enum { MOST = 8 };
    QnStepInput windows = *in;
    QnValue *skip[MOST];
    int n = (int)QN_MIN(m->size[0], MOST);
    (void)layers;
    windows.batch *= QN_MAX(m->size[5], 1);
    QnValue *x = qn_part_sides(net, &windows, 1 << (n - 1), 0);
    for (int i = 0; i < n; i++) {
        qn_block_push(net, "down", i);
        x = skip[i] = strided_level(net, m, x, QN_MIN(32 << i, m->size[1]), i ? 2 : 1);
        qn_net_pop(net);
    }
    for (int i = n - 2; i >= 0; i--) {
        int64_t width = qn_block_dim(skip[i], 1);
        qn_block_push(net, "up", i);
        x = qn_part_join(net, qn_part_double(net, "double", x, width, 2), skip[i]);
        x = strided_level(net, m, x, width, 1);
        qn_net_pop(net);
    }
    QnPart last = { .out = m->size[2], .kernel = m->size[3], .bias = true };
    x = qn_part(net, "classes", x, &last);
    return in->train ? qn_part_overlap_loss(net, "y", x) : x;
}

/* ---- levels that end with a pool, no norms. size: width before the levels, of three levels, of
 * the bottom, classes, whether convolutions have no padding ---- */

static QnValue *crop(QnNet *net, QnValue *x, const QnValue *to)
{
    int64_t h = qn_block_dim(to, 2), w = qn_block_dim(to, 3);
    int64_t top = (qn_block_dim(x, 2) - h) / 2, left = (qn_block_dim(x, 3) - w) / 2;
    if (!top && !left)
        return x;
    return qn_slice(net->g, x,
                    &(QnSliceAttr){ .axes = { 2, { 2, 3 } },
                                    .starts = { 2, { top, left } },
                                    .ends = { 2, { top + h, left + w } } });
}

static QnValue *pooled_level(QnNet *net, QnValue *x, int64_t width, int64_t then, bool valid)
{
    QnPart first = { .out = width, .kernel = 3, .bias = true, .act = qn_relu, .valid = valid };
    QnPart second = first;
    second.out = then;
    return twice(net, x, &first, &second);
}

static QnValue *pooled(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    enum { LEVELS = 4 };
    const int64_t *width = m->size, bottom = m->size[4], classes = m->size[5];
    bool valid = m->size[6] != 0;
    int64_t kernel = valid ? 3 : 2;
    QnValue *skip[LEVELS], *x = qn_part_sides(net, in, valid ? 1 : 16, valid ? 188 : 0);
    (void)layers;
    for (int i = 0; i < LEVELS; i++) {
        qn_block_push(net, "down", i);
        skip[i] = pooled_level(net, x, width[i], width[i], valid);
        x = qn_block_max_pool(net, skip[i], 2, 2, 0);
        qn_net_pop(net);
    }
    x = qn_nn_dropout(net, pooled_level(net, x, bottom, bottom, valid), valid ? 0.5 : 0);
    x = qn_relu(net->g, qn_part_double(net, "double", x, bottom / 2, kernel));
    for (int i = LEVELS - 1; i > 0; i--) {
        qn_block_push(net, "up", i);
        x = qn_part_join(net, x, crop(net, skip[i], x));
        x = pooled_level(net, x, width[i], valid ? width[i] : width[i] / 2, valid);
        x = qn_relu(net->g, qn_part_double(net, "double", x, width[i] / 2, kernel));
        qn_net_pop(net);
    }
    qn_net_push(net, "out");
    x = pooled_level(net, qn_part_join(net, x, crop(net, skip[0], x)), width[0], width[0], valid);
    x = qn_part(net, "classes", x, &(QnPart){ .out = classes, .bias = true });
    qn_net_pop(net);
    if (!in->train)
        return x;
    return classes > 1 ? qn_part_overlap_loss(net, "y", x) : qn_part_binary_loss(net, "y", x);
}

/* ---- V-Net: sums around the convolutions of a level. size: first width, levels, classes ---- */

static QnValue *around(QnNet *net, QnValue *x)
{
    QnPart same = {
        .out = qn_block_dim(x, 1), .kernel = 3, .bias = true, .norm = QN_PART_BATCH, .act = qn_relu
    };
    QnValue *y = twice(net, x, &same, &same);
    return qn_add(net->g, x, qn_part(net, "conv3", y, &same));
}

static QnValue *enlarge(QnNet *net, QnValue *x, int64_t width)
{
    x = qn_nn_batch_norm(net, "double_norm", qn_part_double(net, "double", x, width, 2));
    return qn_relu(net->g, x);
}

static QnValue *vnet(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    enum { MOST = 6 };
    int n = (int)QN_MIN(m->size[1], MOST - 1);
    QnValue *skip[MOST], *x = qn_part_sides(net, in, 1 << n, 0);
    QnPart part = {
        .out = m->size[0], .kernel = 3, .bias = true, .norm = QN_PART_BATCH, .act = qn_relu
    };
    (void)layers;
    skip[0] = x = qn_add(net->g, qn_part(net, "first", x, &part), x);
    for (int i = 1; i <= n; i++) {
        QnPart half = part;
        half.out = 2 * qn_block_dim(x, 1);
        half.kernel = half.stride = 2;
        qn_block_push(net, "down", i);
        x = skip[i] = around(net, qn_part(net, "half", x, &half));
        qn_net_pop(net);
    }
    for (int i = n - 1; i > 0; i--) {
        qn_block_push(net, "up", i);
        x = enlarge(net, x, qn_block_dim(skip[i], 1));
        x = around(net, qn_part_join(net, x, skip[i]));
        qn_net_pop(net);
    }
    x = enlarge(net, x, m->size[0]);
    x = qn_part(net, "classes", x, &(QnPart){ .out = m->size[2], .kernel = 3, .bias = true });
    return in->train ? qn_part_overlap_loss(net, "y", x) : x;
}

static const QnFamily medical = {
    .name = "unet", .image = 572, .channels = 1, .batch = 8, .adam = true, .step = pooled
};
/* The small net of NVIDIA's UNet_Industrial: the benchmarks of that name do not say which it is. */
static const QnFamily industrial = {
    .name = "unet", .image = 512, .channels = 1, .batch = 16, .step = pooled
};
static const QnFamily medical3 = { .name = "unet3d",
                                   .image = 128,
                                   .depth = 128,
                                   .channels = 4,
                                   .batch = 2,
                                   .adam = true,
                                   .step = strided };
static const QnFamily kidneys = {
    .name = "unet3d", .image = 128, .depth = 128, .channels = 1, .batch = 7, .step = strided
};
/* An example of KiTS19 is a scan: MLPerf's 43, resampled to 1.6 x 1.2 x 1.2 mm and cut into windows
 * of 128 voxels that overlap by half, are 2,761 windows; nine in ten are at most 125. Eight go
 * through the net at once. */
enum { KITS_WINDOWS = 64, AT_ONCE = 8 };
static const QnFamily kidney_cases = { .name = "unet3d",
                                       .image = 128,
                                       .depth = 128,
                                       .channels = 1,
                                       .batch = 1,
                                       .step = strided,
                                       .parts = KITS_WINDOWS / AT_ONCE,
                                       .p90 = 125.0 / KITS_WINDOWS };
static const QnFamily nnunets2 = {
    .name = "nnunet", .image = 192, .width = 160, .channels = 4, .adam = true, .step = strided
};
static const QnFamily nnunets3 = { .name = "nnunet",
                                   .image = 128,
                                   .depth = 128,
                                   .channels = 4,
                                   .batch = 2,
                                   .adam = true,
                                   .step = strided };
static const QnFamily vnets = {
    .name = "vnet", .image = 32, .depth = 32, .channels = 1, .batch = 16, .step = vnet
};

static const QnModel models[] = {
    { "unet_medical", &medical, { 64, 128, 256, 512, 1024, 2, 1 } },
    { "unet_segmentation", &industrial, { 32, 32, 64, 128, 256, 1, 0 } },
    { "unet3d_medical", &medical3, { 6, 320, 4, 3, 0 } },
    { "unet3d_mlperf", &kidneys, { 6, 320, 3, 1, 0 } },
    { "3d_unet_kits19", &kidney_cases, { 6, 320, 3, 1, 0, AT_ONCE } },
    { "nnunet2d", &nnunets2, { 6, 512, 4, 1, 1 } },
    { "nnunet3d", &nnunets3, { 6, 320, 4, 1, 1 } },
    { "vnet", &vnets, { 16, 3, 3 } },
};

const QnModelList qn_models_unet = { models, QN_COUNT(models) };

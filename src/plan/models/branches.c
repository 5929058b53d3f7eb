/* Deep nets whose blocks join several ways: Xception (Chollet 2017), dual-path nets (Chen et al.
 * 2017), deep layer aggregation (Yu et al. 2018), HRNet (Wang et al. 2020). */
#include "plan/models/blocks.h"

/* ---- Xception ---- */

/* Depthwise and 1x1 convolution with one norm after both. */
static QnValue *separable(QnNet *net, const char *name, QnValue *x, int64_t out)
{
    QnConvSpec deep = { .out = qn_block_dim(x, 1), .kernel = 3, .pad = 1 };
    QnConvNorm point = { .out = out, .kernel = 1 };
    deep.groups = deep.out;
    qn_net_push(net, name);
    x = qn_block_conv(net, "pointwise", qn_nn_conv(net, "depthwise", x, &deep), &point);
    qn_net_pop(net);
    return x;
}

typedef struct Separable {
    int64_t out[3]; /* of two or three convolutions */
    int64_t stride;
} Separable;

static QnValue *xception_block(QnNet *net, QnValue *x, const Separable *s, bool first)
{
    QnGraph *g = net->g;
    QnValue *y = x;
    for (int i = 0; i < 3 && s->out[i]; i++) {
        qn_block_push(net, "rep", i);
        y = separable(net, "sep", i || !first ? qn_relu(g, y) : y, s->out[i]);
        qn_net_pop(net);
    }
    if (s->stride == 1)
        return qn_add(g, y, x);
    QnConvNorm skip = { .out = qn_block_dim(y, 1), .kernel = 1, .stride = s->stride };
    y = qn_block_max_pool(net, y, 3, s->stride, 1);
    return qn_add(g, y, qn_block_conv(net, "skip", x, &skip));
}

static QnValue *xception(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const Separable blocks[] = {
        { { 128, 128 }, 2 },      { { 256, 256 }, 2 },      { { 728, 728 }, 2 },
        { { 728, 728, 728 }, 1 }, { { 728, 728, 728 }, 1 }, { { 728, 728, 728 }, 1 },
        { { 728, 728, 728 }, 1 }, { { 728, 728, 728 }, 1 }, { { 728, 728, 728 }, 1 },
        { { 728, 728, 728 }, 1 }, { { 728, 728, 728 }, 1 }, { { 728, 1024 }, 2 },
    };
    QnGraph *g = net->g;
    QnConvNorm c1 = { .out = 32, .kernel = 3, .stride = 2, .valid = true, .act = QN_ACT_RELU };
    QnConvNorm c2 = { .out = 64, .kernel = 3, .valid = true, .act = QN_ACT_RELU };
    (void)m, (void)layers;
    x = qn_block_conv(net, "conv2", qn_block_conv(net, "conv1", x, &c1), &c2);
    for (int i = 0; i < QN_COUNT(blocks); i++) {
        qn_block_push(net, "block", i + 1);
        x = xception_block(net, x, &blocks[i], i == 0);
        qn_net_pop(net);
    }
    x = qn_relu(g, separable(net, "conv3", x, 1536));
    x = qn_relu(g, separable(net, "conv4", x, 2048));
    return qn_block_classify(net, "fc", x, 0);
}

/* ---- DPN. size: groups, narrow channels of the first stage, layers of the four stages, then by
 * how many channels each stage's dense path grows a layer ---- */

typedef struct Paths {
    QnValue *sum, *dense;
} Paths;

static QnValue *join(QnNet *net, Paths p)
{
    return p.dense ? qn_concat(net->g, (QnValue *[]){ p.sum, p.dense }, 2, 1) : p.sum;
}

static Paths dual_block(QnNet *net, Paths in, int64_t narrow, int64_t wide, int64_t grow,
                        int64_t groups, int64_t stride, bool project)
{
    QnGraph *g = net->g;
    QnValue *x = join(net, in);
    QnConvNorm fit = { .out = wide + 2 * grow, .kernel = 1, .stride = stride, .act = QN_ACT_RELU };
    QnConvNorm a = { .out = narrow, .kernel = 1, .act = QN_ACT_RELU };
    QnConvNorm b = {
        .out = narrow, .kernel = 3, .stride = stride, .groups = groups, .act = QN_ACT_RELU
    };
    QnConvNorm c = { .out = wide + grow, .kernel = 1, .act = QN_ACT_RELU };
    if (project) {
        QnValue *y = qn_block_norm_conv(net, "project", x, &fit);
        in.sum = qn_slice_axis(g, y, 1, 0, wide);
        in.dense = qn_slice_axis(g, y, 1, wide, wide + 2 * grow);
    }
    x = qn_block_norm_conv(net, "a", x, &a);
    x = qn_block_norm_conv(net, "c", qn_block_norm_conv(net, "b", x, &b), &c);
    QnValue *more[] = { in.dense, qn_slice_axis(g, x, 1, wide, wide + grow) };
    return (Paths){ qn_add(g, in.sum, qn_slice_axis(g, x, 1, 0, wide)), qn_concat(g, more, 2, 1) };
}

static QnValue *dpn(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    const int64_t *depth = m->size + 2, *grow = m->size + 6;
    QnConvNorm stem = { .out = 64, .kernel = 7, .stride = 2, .act = QN_ACT_RELU };
    (void)layers;
    x = qn_block_max_pool(net, qn_block_conv(net, "conv1", x, &stem), 3, 2, 1);
    Paths p = { x, NULL };
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "conv", i + 2);
        for (int64_t k = 0; k < depth[i]; k++) {
            qn_block_push(net, "", k + 1);
            p = dual_block(net, p, m->size[1] << i, (int64_t)256 << i, grow[i], m->size[0],
                           i && !k ? 2 : 1, k == 0);
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    x = qn_elu(net->g, qn_nn_batch_norm(net, "bn", join(net, p)), 1);
    return qn_block_classify(net, "classifier", x, 0);
}

/* ---- DLA-34: trees of two blocks whose root sees all that the tree has made ---- */

typedef struct Seen {
    QnValue *value[4];
    int n;
} Seen;

static QnValue *basic(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t stride,
                      QnValue *around)
{
    qn_net_push(net, name);
    x = qn_block_residual(net, x, &(QnResidual){ .out = out, .stride = stride, .around = around });
    qn_net_pop(net);
    return x;
}

/* seen: what goes to the root beside the two blocks. */
static QnValue *tree(QnNet *net, QnValue *x, int64_t out, int64_t stride, const Seen *seen)
{
    QnValue *bottom = stride > 1 ? qn_block_max_pool(net, x, stride, stride, 0) : x,
            *around = bottom;
    QnConvNorm fit = { .out = out, .kernel = 1 };
    QnConvNorm root = { .out = out, .kernel = 1, .act = QN_ACT_RELU };
    if (qn_block_dim(x, 1) != out)
        around = qn_block_conv(net, "project", bottom, &fit);
    QnValue *first = basic(net, "tree1", x, out, stride, around);
    QnValue *all[6] = { basic(net, "tree2", first, out, 1, first), first };
    for (int i = 0; i < seen->n; i++)
        all[2 + i] = seen->value[i];
    return qn_block_conv(net, "root", qn_concat(net->g, all, 2 + seen->n, 1), &root);
}

/* Of one or two levels of trees; the root sees the shrunken input from the second stage on. */
static QnValue *dla_level(QnNet *net, int number, QnValue *x, int64_t out, int levels)
{
    Seen seen = { { 0 }, 0 };
    qn_block_push(net, "level", number);
    if (number > 2)
        seen.value[seen.n++] = qn_block_max_pool(net, x, 2, 2, 0);
    if (levels == 2) {
        qn_net_push(net, "tree1");
        x = tree(net, x, out, 2, &(Seen){ { 0 }, 0 });
        qn_net_pop(net);
        seen.value[seen.n++] = x;
        qn_net_push(net, "tree2");
        x = tree(net, x, out, 1, &seen);
        qn_net_pop(net);
    } else {
        x = tree(net, x, out, 2, &seen);
    }
    qn_net_pop(net);
    return x;
}

static QnValue *dla(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int levels[] = { 1, 2, 2, 1 };
    QnConvNorm c0 = { .out = 16, .kernel = 7, .act = QN_ACT_RELU };
    QnConvNorm c1 = { .out = 16, .kernel = 3, .act = QN_ACT_RELU };
    QnConvNorm c2 = { .out = 32, .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
    (void)m, (void)layers;
    x = qn_block_multiple(net, x, 32);
    x = qn_block_conv(net, "level0", qn_block_conv(net, "base_layer", x, &c0), &c1);
    x = qn_block_conv(net, "level1", x, &c2);
    for (int i = 0; i < QN_COUNT(levels); i++)
        x = dla_level(net, i + 2, x, (int64_t)64 << i, levels[i]);
    return qn_block_classify(net, "fc", x, 0);
}

/* ---- HRNet. size: channels of the finest branch ---- */

/* Branch i's share of branch j's image. */
static QnValue *exchange(QnNet *net, QnValue *x, int i, int j, int64_t width)
{
    if (i == j)
        return x;
    qn_block_push(net, "from", j);
    if (j > i) {
        QnConvNorm fit = { .out = width << i, .kernel = 1 };
        x = qn_block_upsample(net, qn_block_conv(net, "fit", x, &fit), (int64_t)1 << (j - i),
                              false);
    }
    for (int k = j; k < i; k++) {
        bool last = k == i - 1;
        QnConvNorm down = { .out = last ? width << i : width << j,
                            .kernel = 3,
                            .stride = 2,
                            .act = last ? QN_ACT_NONE : QN_ACT_RELU };
        qn_block_push(net, "down", k);
        x = qn_block_conv(net, "c", x, &down);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return x;
}

/* Four basic blocks a branch, then every branch takes the sum of what all say. */
static void hr_module(QnNet *net, QnValue *x[4], int n, int64_t width)
{
    QnValue *y[4];
    for (int i = 0; i < n; i++) {
        qn_block_push(net, "branch", i);
        for (int k = 0; k < 4; k++) {
            qn_block_push(net, "", k);
            x[i] = qn_block_residual(net, x[i], &(QnResidual){ .out = width << i });
            qn_net_pop(net);
        }
        qn_net_pop(net);
    }
    for (int i = 0; i < n; i++) {
        qn_block_push(net, "fuse", i);
        y[i] = exchange(net, x[0], i, 0, width);
        for (int j = 1; j < n; j++)
            y[i] = qn_add(net->g, y[i], exchange(net, x[j], i, j, width));
        y[i] = qn_relu(net->g, y[i]);
        qn_net_pop(net);
    }
    for (int i = 0; i < n; i++)
        x[i] = y[i];
}

static QnValue *hr_head(QnNet *net, QnValue *x[4])
{
    QnValue *y = NULL;
    for (int i = 0; i < 4; i++) {
        int64_t inner = (int64_t)32 << i;
        QnConvNorm down = { .out = 4 * inner, .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
        qn_block_push(net, "incre", i);
        QnValue *z =
            qn_block_residual(net, x[i], &(QnResidual){ .out = 4 * inner, .inner = inner });
        y = y ? qn_add(net->g, z, qn_block_conv(net, "down", y, &down)) : z;
        qn_net_pop(net);
    }
    QnConvNorm last = { .out = 2048, .kernel = 1, .act = QN_ACT_RELU };
    return qn_block_classify(net, "classifier", qn_block_conv(net, "final", y, &last), 0);
}

static QnValue *hrnet(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    static const int modules[] = { 1, 4, 3 };
    int64_t width = m->size[0];
    QnConvNorm stem = { .out = 64, .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
    QnValue *y[4];
    (void)layers;
    x = qn_block_multiple(net, x, 32);
    x = qn_block_conv(net, "conv2", qn_block_conv(net, "conv1", x, &stem), &stem);
    for (int i = 0; i < 4; i++) {
        qn_block_push(net, "layer1_", i);
        x = qn_block_residual(net, x, &(QnResidual){ .out = 256, .inner = 64 });
        qn_net_pop(net);
    }
    y[0] = x;
    for (int s = 0; s < 3; s++) {
        QnConvNorm more = { .out = width << (s + 1), .kernel = 3, .stride = 2, .act = QN_ACT_RELU };
        QnConvNorm same = { .out = width, .kernel = 3, .act = QN_ACT_RELU };
        qn_block_push(net, "transition", s + 1);
        y[s + 1] = qn_block_conv(net, "new", y[s], &more);
        if (!s)
            y[0] = qn_block_conv(net, "first", y[0], &same);
        qn_net_pop(net);
        for (int k = 0; k < modules[s]; k++) {
            qn_block_push(net, "stage", 10 * s + k);
            hr_module(net, y, s + 2, width);
            qn_net_pop(net);
        }
    }
    return hr_head(net, y);
}

static const QnFamily xceptions = { .name = "xception", .image = 299, .build = xception };
static const QnFamily dpns = { .name = "dpn", .image = 224, .build = dpn };
static const QnFamily dlas = { .name = "dla", .image = 224, .build = dla };
static const QnFamily hrnets = { .name = "hrnet", .image = 224, .build = hrnet };

#define TIMM "timm 1.0; multiply-adds counted on its code"

static const QnModel models[] = {
    { "xception", &xceptions, { 0 }, 22.856, TIMM, 8.3574 },
    { "dpn92", &dpns, { 32, 96, 3, 4, 20, 3, 16, 32, 24, 128 }, 37.668, TIMM, 6.5017 },
    { "dla34", &dlas, { 0 }, 15.742, TIMM, 3.06 },
    { "hrnet_w18", &hrnets, { 18 }, 21.299, TIMM, 4.2835 },
};

const QnModelList qn_models_branches = { models, QN_COUNT(models) };

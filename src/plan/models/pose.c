/* Nets that map an image to maps of what lies where, or to a larger one: OpenPose (Cao et al. 2017)
 * and sub-pixel super-resolution (Shi et al. 2016). */
#include "plan/models/parts.h"

/* ---- OpenPose for the 18 points of COCO: two branches, refined five times ---- */

enum { FIELDS = 38, POINTS = 19, STAGES = 6 };

static QnValue *conv(QnNet *net, int64_t number, QnValue *x, int64_t out, int64_t kernel, bool last)
{
    QnPart p = { .out = out, .kernel = kernel, .bias = true, .act = last ? NULL : qn_relu };
    qn_block_push(net, "conv", number);
    x = qn_part(net, "conv", x, &p);
    qn_net_pop(net);
    return x;
}

/* The first ten convolutions of VGG-19 and two that narrow. */
static QnValue *features(QnNet *net, QnValue *x)
{
    static const int64_t out[] = { 64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 256, 128 };
    for (int i = 0; i < QN_COUNT(out); i++) {
        x = conv(net, i, x, out[i], 3, false);
        if (i == 1 || i == 3 || i == 7)
            x = qn_block_max_pool(net, x, 2, 2, 0);
    }
    return x;
}

static QnValue *branch(QnNet *net, const char *name, QnValue *x, int stage, int64_t out)
{
    int n = stage ? 5 : 3;
    qn_net_push(net, name);
    for (int i = 0; i < n; i++)
        x = conv(net, i, x, 128, stage ? 7 : 3, false);
    x = conv(net, n, x, stage ? 128 : 512, 1, false);
    x = conv(net, n + 1, x, out, 1, true);
    qn_net_pop(net);
    return x;
}

static QnValue *error_of(QnNet *net, const char *name, QnValue *maps)
{
    QnValue *wide = qn_cast(net->g, maps, QN_DTYPE_F32);
    QnValue *wanted = qn_input(net->g, name, QN_DTYPE_F32, &wide->type.shape);
    return qn_mse(net->g, wide, wanted, QN_REDUCTION_SUM);
}

static QnValue *openpose(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *loss = NULL, *fields = NULL, *points = NULL,
            *f = features(net, qn_step_image(net, in));
    (void)m, (void)layers;
    for (int i = 0; i < STAGES; i++) {
        QnValue *x = i ? qn_concat(g, (QnValue *[]){ fields, points, f }, 3, 1) : f;
        qn_block_push(net, "stage", i);
        fields = branch(net, "fields", x, i, FIELDS);
        points = branch(net, "points", x, i, POINTS);
        qn_net_pop(net);
        if (!in->train)
            continue;
        QnValue *sum = qn_add(g, error_of(net, "fields", fields), error_of(net, "points", points));
        loss = loss ? qn_add(g, loss, sum) : sum;
    }
    return in->train ? loss : qn_concat(g, (QnValue *[]){ fields, points }, 2, 1);
}

/* ---- super-resolution. size: how many times larger ---- */

static QnValue *super_resolution(QnNet *net, const QnModel *m, const QnStepInput *in,
                                 int64_t layers)
{
    int64_t times = m->size[0];
    QnValue *x = qn_step_image(net, in);
    (void)layers;
    x = conv(net, 1, x, 64, 5, false);
    x = conv(net, 2, x, 64, 3, false);
    x = conv(net, 3, x, 32, 3, false);
    x = qn_depth_to_space(net->g, conv(net, 4, x, times * times, 3, true), times, true);
    return in->train ? error_of(net, "y", x) : x;
}

static const QnFamily pose = {
    .name = "pose", .image = 368, .width = 656, .batch = 10, .step = openpose
};
static const QnFamily resolution = { .name = "super-resolution",
                                     .image = 321,
                                     .width = 481,
                                     .channels = 1,
                                     .batch = 16,
                                     .adam = true,
                                     .step = super_resolution };

static const QnModel models[] = {
    { "openpose", &pose, { 0 }, 52.3, "CMU, by the size of its file for COCO" },
    { "super_resolution_bsd500", &resolution, { 3 } },
};

const QnModelList qn_models_pose = { models, QN_COUNT(models) };

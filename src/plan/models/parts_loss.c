/* Losses of what finds and outlines things: the work of all anchors or pixels. */
#include "plan/models/parts.h"

#include <stdio.h>

QnValue *qn_part_rows(QnNet *net, QnValue *x, int64_t k)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), a = qn_block_dim(x, 1) / k, h = qn_block_dim(x, 2),
            w = qn_block_dim(x, 3);
    x = qn_reshape(g, x, &QN_SHAPE(n, a, k, h, w));
    x = qn_transpose(g, x, (QnInts){ 5, { 0, 3, 4, 1, 2 } });
    return qn_reshape(g, x, &QN_SHAPE(n, h * w * a, k));
}

/* Losses are in 32 bits, also where products are in 16. */
static QnValue *wide(QnNet *net, QnValue *x)
{
    return qn_cast(net->g, x, QN_DTYPE_F32);
}

static QnValue *like(QnNet *net, const char *name, const QnValue *x)
{
    return qn_input(net->g, name, QN_DTYPE_F32, &x->type.shape);
}

static QnValue *sum_all(QnGraph *g, QnValue *x)
{
    return qn_sum(g, x, (QnInts){ 0 }, false);
}

QnValue *qn_part_overlap_loss(QnNet *net, const char *name, QnValue *scores)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(scores))
        return scores;
    scores = wide(net, scores);
    QnInts spatial = { .n = scores->type.shape.rank - 2, .v = { 2, 3, 4 } };
    QnValue *wanted = like(net, name, scores), *p = qn_softmax(g, scores, 1);
    QnValue *both = qn_sum(g, qn_mul(g, p, wanted), spatial, false);
    QnValue *all = qn_add(g, qn_sum(g, p, spatial, false), qn_sum(g, wanted, spatial, false));
    QnValue *dice = qn_div(g, qn_mul_scalar(g, both, 2), qn_add_scalar(g, all, 1e-5));
    QnValue *entropy = qn_mul(g, wanted, qn_log_softmax(g, scores, 1));
    double pixels = (double)qn_shape_count(&scores->type.shape) / (double)qn_block_dim(scores, 1);
    return qn_neg(g, qn_add(g, qn_mean(g, dice, (QnInts){ 0 }, false),
                            qn_mul_scalar(g, sum_all(g, entropy), 1 / pixels)));
}

QnValue *qn_part_focal_loss(QnNet *net, const char *name, QnValue *scores)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(scores))
        return scores;
    scores = wide(net, scores);
    QnValue *t = like(net, name, scores), *p = qn_sigmoid(g, scores);
    QnValue *entropy = qn_bce_with_logits(g, scores, t, QN_REDUCTION_NONE);
    /* chance of what is wrong: p + t - 2 p t; weight of what is wanted: 0.25 t + 0.75 (1 - t) */
    QnValue *wrong = qn_sub(g, qn_add(g, p, t), qn_mul_scalar(g, qn_mul(g, p, t), 2));
    QnValue *weight = qn_add_scalar(g, qn_mul_scalar(g, t, -0.5), 0.75);
    QnValue *loss = qn_mul(g, qn_mul(g, entropy, qn_square(g, wrong)), weight);
    return sum_all(g, loss);
}

QnValue *qn_part_binary_loss(QnNet *net, const char *name, QnValue *scores)
{
    if (qn_value_is_poison(scores))
        return scores;
    scores = wide(net, scores);
    return qn_bce_with_logits(net->g, scores, like(net, name, scores), QN_REDUCTION_MEAN);
}

QnValue *qn_part_box_loss(QnNet *net, const char *name, QnValue *boxes)
{
    QnGraph *g = net->g;
    char mask[64];
    if (qn_value_is_poison(boxes) || boxes->type.shape.rank != 3)
        return boxes;
    boxes = wide(net, boxes);
    QnShape one = boxes->type.shape;
    one.dim[one.dim[2] == 4 ? 2 : 1] = 1;
    snprintf(mask, sizeof mask, "%s.mask", name);
    QnValue *counts = qn_input(g, mask, QN_DTYPE_F32, &one);
    QnValue *loss = qn_huber(g, boxes, like(net, name, boxes), 1, QN_REDUCTION_NONE);
    return sum_all(g, qn_mul(g, loss, counts));
}

/* Coordinate i of the boxes of (rows...,4), in the given shape. */
static QnValue *coordinate(QnGraph *g, QnValue *boxes, int64_t i, const QnShape *shape)
{
    return qn_reshape(g, qn_slice_axis(g, boxes, -1, i, i + 1), shape);
}

/* Length of what intervals a and b share along coordinate i. */
static QnValue *shared(QnGraph *g, QnValue *const a[4], QnValue *const b[4], int i)
{
    QnValue *from = qn_maximum(g, a[i], b[i]), *to = qn_minimum(g, a[i + 2], b[i + 2]);
    return qn_relu(g, qn_sub(g, to, from));
}

static QnValue *area(QnGraph *g, QnValue *const a[4])
{
    return qn_mul(g, qn_sub(g, a[2], a[0]), qn_sub(g, a[3], a[1]));
}

void qn_part_match(QnNet *net, int64_t batch, int64_t anchors, int64_t most)
{
    QnGraph *g = net->g;
    QnValue *a = qn_input(g, "anchors", QN_DTYPE_F32, &QN_SHAPE(anchors, 4));
    QnValue *b = qn_input(g, "boxes", QN_DTYPE_F32, &QN_SHAPE(batch, most, 4));
    QnValue *as[4], *bs[4];
    for (int i = 0; i < 4; i++) {
        as[i] = coordinate(g, a, i, &QN_SHAPE(1, 1, anchors));
        bs[i] = coordinate(g, b, i, &QN_SHAPE(batch, most, 1));
    }
    QnValue *both = qn_mul(g, shared(g, as, bs, 0), shared(g, as, bs, 1));
    QnValue *either = qn_sub(g, qn_add(g, area(g, as), area(g, bs)), both);
    QnValue *overlap = qn_div(g, both, either);
    qn_graph_output(g, "overlap", qn_reduce_max(g, overlap, (QnInts){ 1, { 1 } }, false));
    qn_graph_output(g, "matched", qn_argmax(g, overlap, 1, false));
}

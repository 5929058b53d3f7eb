/* Residual nets and pyramids as the base of other nets. */
#include "plan/models/parts.h"

typedef struct Plan {
    int depth;
    bool deep; /* blocks of 1x1, 3x3, 1x1; else 3x3, 3x3 */
    int blocks[4];
} Plan;

static const Plan *plan_of(int depth)
{
    static const Plan plans[] = {
        { 18, false, { 2, 2, 2, 2 } },
        { 34, false, { 3, 4, 6, 3 } },
        { 50, true, { 3, 4, 6, 3 } },
        { 101, true, { 3, 4, 23, 3 } },
    };
    for (int i = 0; i < QN_COUNT(plans); i++)
        if (plans[i].depth == depth)
            return &plans[i];
    return &plans[0];
}

typedef struct Block {
    int64_t width, stride, dilation;
    bool frozen;
} Block;

static QnValue *block(QnNet *net, const QnBase *b, bool deep, QnValue *x, const Block *k)
{
    QnPartNorm norm = b->given_norms ? QN_PART_GIVEN : QN_PART_BATCH;
    int64_t out = deep ? 4 * k->width : k->width, stride = k->stride;
    QnPart first = { .norm = norm, .act = qn_relu, .frozen = k->frozen }, second = first,
           third = first;
    QnValue *y = x;
    if (deep) {
        int64_t groups = b->groups ? b->groups : 1;
        int64_t inner = k->width * (b->group_width ? b->group_width : 64) / 64 * groups;
        first.out = second.out = inner;
        first.stride = b->stride_first ? stride : 1;
        second.kernel = 3;
        second.stride = b->stride_first ? 1 : stride;
        second.dilation = k->dilation;
        second.groups = groups;
        y = qn_part(net, "conv1", y, &first);
        y = qn_part(net, "conv2", y, &second);
    } else {
        second.out = out;
        second.kernel = third.kernel = 3;
        second.stride = stride;
        y = qn_part(net, "conv1", y, &second);
    }
    third.out = out;
    third.act = NULL;
    y = qn_part(net, "conv3", y, &third);
    if (stride != 1 || qn_block_dim(x, 1) != out) {
        third.kernel = 1;
        third.stride = stride;
        x = qn_part(net, "shortcut", x, &third);
    }
    return qn_relu(net->g, qn_add(net->g, y, x));
}

QnValue *qn_part_stage(QnNet *net, QnValue *x, const QnBase *b, int number)
{
    const Plan *p = plan_of(b->depth);
    bool keeps = number == 0 || (number == 2 && b->keep_third) || (number == 3 && b->dilate_last);
    Block k = { .width = 64 << number,
                .dilation = number == 3 && b->dilate_last ? 2 : 1,
                .frozen = number == 0 && b->frozen > 1 };
    qn_block_push(net, "stage", number + 1);
    for (int i = 0; i < p->blocks[number]; i++) {
        k.stride = i == 0 && !keeps ? 2 : 1;
        qn_block_push(net, "block", i);
        x = block(net, b, p->deep, x, &k);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return x;
}

void qn_part_base(QnNet *net, QnValue *x, const QnBase *b, QnValue *out[4])
{
    QnPart stem = { .out = 64,
                    .kernel = 7,
                    .stride = 2,
                    .norm = b->given_norms ? QN_PART_GIVEN : QN_PART_BATCH,
                    .act = qn_relu,
                    .frozen = b->frozen > 0 };
    qn_net_push(net, "base");
    x = qn_block_max_pool(net, qn_part(net, "stem", x, &stem), 3, 2, 1);
    for (int i = 0; i < (b->stages ? b->stages : 4); i++)
        x = out[i] = qn_part_stage(net, x, b, i);
    qn_net_pop(net);
}

void qn_part_pyramid(QnNet *net, QnValue *const *features, int n, int64_t width, QnValue **out)
{
    QnPart lateral = { .out = width, .bias = true };
    QnPart smooth = { .out = width, .kernel = 3, .bias = true };
    QnValue *above = NULL;
    qn_net_push(net, "pyramid");
    for (int i = n - 1; i >= 0; i--) {
        qn_block_push(net, "level", i);
        QnValue *x = qn_part(net, "lateral", features[i], &lateral);
        if (above)
            x = qn_add(net->g, x,
                       qn_part_resize(net, above, qn_block_dim(x, 2), qn_block_dim(x, 3), false));
        above = x;
        out[i] = qn_part(net, "smooth", x, &smooth);
        qn_net_pop(net);
    }
    qn_net_pop(net);
}

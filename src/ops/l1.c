/* Absolute error: |x - y|. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"

typedef struct Attr {
    int reduction;
} Attr;

static const QnAttrField l1_fields[] = {
    QN_LOSS_REDUCTION(Attr),
};

static QnStatus l1_infer(QnInfer *c)
{
    return qn_loss_pair_infer(c, "l1", ((const Attr *)c->attr)->reduction);
}

static void l1_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = qn_norm_stat(n->in[0]->type.dtype);
    QnValue *x = qn_cast(g, n->in[0], t), *y = qn_cast(g, n->in[1], t);
    QnValue *loss = qn_abs(g, qn_sub(g, x, y));
    out[0] = qn_loss_fold(g, loss, NULL, (QnReduction)a->reduction);
}

static const QnSample l1_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 }, .lo = 2, .hi = 3 } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 1, { 130 }, .lo = 2, .hi = 3 } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_SUM } },
    { .in = { { 3, { 2, 3, 5 } }, { 3, { 2, 3, 5 }, .lo = 2, .hi = 3 } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_NONE } },
};

/* Folded over all elements as `how` says. */
QN_API QnValue *qn_l1(QnGraph *g, QnValue *x, QnValue *target, QnReduction how)
{
    return qn_emit2(g, &qn_op_l1, &(Attr){ (int)how }, x, target);
}

const QnOp qn_op_l1 = {
    .name = "l1",
    .version = 1,
    .doc = "absolute error of x against y",
    .n_in = 2,
    QN_ATTRS(Attr, l1_fields),
    .infer = l1_infer,
    .lower = l1_lower,
    QN_SAMPLES(l1_samples),
};
#endif

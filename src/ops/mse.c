/* Mean squared error: (x - y)^2. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"

typedef struct Attr {
    int reduction;
} Attr;

static const QnAttrField mse_fields[] = {
    QN_LOSS_REDUCTION(Attr),
};

static QnStatus mse_infer(QnInfer *c)
{
    return qn_loss_pair_infer(c, "mse", ((const Attr *)c->attr)->reduction);
}

static void mse_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = qn_norm_stat(n->in[0]->type.dtype);
    QnValue *x = qn_cast(g, n->in[0], t), *y = qn_cast(g, n->in[1], t);
    QnValue *loss = qn_squared_difference(g, x, y);
    out[0] = qn_loss_fold(g, loss, NULL, (QnReduction)a->reduction);
}

static const QnSample mse_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 1, { 130 } } }, .n_in = 2, .attr = &(Attr){ QN_REDUCTION_SUM } },
    { .in = { { 3, { 2, 3, 5 } }, { 3, { 2, 3, 5 } } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_NONE } },
};

/* Folded over all elements as `how` says. */
QN_API QnValue *qn_mse(QnGraph *g, QnValue *x, QnValue *target, QnReduction how)
{
    return qn_emit2(g, &qn_op_mse, &(Attr){ (int)how }, x, target);
}

const QnOp qn_op_mse = {
    .name = "mse",
    .version = 1,
    .doc = "squared error of x against y",
    .n_in = 2,
    QN_ATTRS(Attr, mse_fields),
    .infer = mse_infer,
    .lower = mse_lower,
    QN_SAMPLES(mse_samples),
};
#endif

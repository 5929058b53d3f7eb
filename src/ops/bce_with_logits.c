/* Binary cross-entropy of sigmoid(x) against targets y in [0,1]: softplus(x) - x * y, which is
 * -y log s - (1 - y) log(1 - s) without overflow. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"

typedef struct Attr {
    int reduction;
} Attr;

static const QnAttrField bce_with_logits_fields[] = {
    QN_LOSS_REDUCTION(Attr),
};

static QnStatus bce_with_logits_infer(QnInfer *c)
{
    return qn_loss_pair_infer(c, "bce_with_logits", ((const Attr *)c->attr)->reduction);
}

static void bce_with_logits_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = qn_norm_stat(n->in[0]->type.dtype);
    QnValue *x = qn_cast(g, n->in[0], t), *y = qn_cast(g, n->in[1], t);
    QnValue *loss = qn_sub(g, qn_softplus(g, x), qn_mul(g, x, y));
    out[0] = qn_loss_fold(g, loss, NULL, (QnReduction)a->reduction);
}

static const QnSample bce_with_logits_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 }, .lo = 0, .hi = 1 } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 1, { 130 }, .lo = 0, .hi = 1 } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_SUM } },
    { .in = { { 3, { 2, 3, 5 } }, { 3, { 2, 3, 5 }, .lo = 0, .hi = 1 } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_NONE } },
};

/* Folded over all elements as `how` says. */
QN_API QnValue *qn_bce_with_logits(QnGraph *g, QnValue *x, QnValue *target, QnReduction how)
{
    return qn_emit2(g, &qn_op_bce_with_logits, &(Attr){ (int)how }, x, target);
}

const QnOp qn_op_bce_with_logits = {
    .name = "bce_with_logits",
    .version = 1,
    .doc = "binary cross-entropy of logits",
    .n_in = 2,
    QN_ATTRS(Attr, bce_with_logits_fields),
    .infer = bce_with_logits_infer,
    .lower = bce_with_logits_lower,
    QN_SAMPLES(bce_with_logits_samples),
};
#endif

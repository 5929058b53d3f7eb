/* Huber loss, with d = x - y: d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2). */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"

typedef struct Attr {
    int reduction;
    double delta;
} Attr;

static const QnAttrField huber_fields[] = {
    QN_LOSS_REDUCTION(Attr),
    { .name = "delta",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, delta),
      .def = 1,
      .min = 1e-30,
      .max = 1e30,
      .doc = "where the square turns into a line" },
};

static QnStatus huber_infer(QnInfer *c)
{
    return qn_loss_pair_infer(c, "huber", ((const Attr *)c->attr)->reduction);
}

static void huber_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = qn_norm_stat(n->in[0]->type.dtype);
    QnValue *x = qn_cast(g, n->in[0], t), *y = qn_cast(g, n->in[1], t);
    QnValue *d = qn_sub(g, x, y), *e = qn_abs(g, d);
    QnValue *line = qn_mul_scalar(g, qn_add_scalar(g, e, -a->delta / 2), a->delta);
    QnValue *near = qn_less(g, e, qn_scalar_like(g, e, a->delta));
    QnValue *loss = qn_where(g, near, qn_mul_scalar(g, qn_square(g, d), 0.5), line);
    out[0] = qn_loss_fold(g, loss, NULL, (QnReduction)a->reduction);
}

static const QnSample huber_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 1, { 130 } } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_SUM, 0.5 } },
    { .in = { { 3, { 2, 3, 5 } }, { 3, { 2, 3, 5 } } },
      .n_in = 2,
      .attr = &(Attr){ QN_REDUCTION_NONE, 2 } },
};

/* Folded over all elements as `how` says. */
QN_API QnValue *qn_huber(QnGraph *g, QnValue *x, QnValue *target, double delta, QnReduction how)
{
    return qn_emit2(g, &qn_op_huber, &(Attr){ (int)how, delta }, x, target);
}

const QnOp qn_op_huber = {
    .name = "huber",
    .version = 1,
    .doc = "squared error that turns into absolute error",
    .n_in = 2,
    QN_ATTRS(Attr, huber_fields),
    .infer = huber_infer,
    .lower = huber_lower,
    QN_SAMPLES(huber_samples),
};
#endif

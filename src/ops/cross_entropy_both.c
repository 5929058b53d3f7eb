/* Cross-entropy and its gradient in one pass over the scores: dx = dy * (softmax(x) - t), 0 in
 * ignored rows, and each row's loss, as cross_entropy and cross_entropy_grad have them. Made by the
 * passes, never by models. dy (N,...), x, dx (N,C,...), labels (N,...) i64, loss (N,...). */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/util.h"

static const QnAttrField cross_entropy_both_fields[] = { QN_CROSS_ENTROPY_FIELDS };

static QnStatus cross_entropy_both_infer(QnInfer *c)
{
    QnInfer grad = { .graph = c->graph, .attr = c->attr, .n_in = c->n_in, .in = c->in, .n_out = 1 };
    QN_TRY(qn_op_cross_entropy_grad.infer(&grad));
    c->out[0] = grad.out[0];
    c->out[1] = (QnType){ .dtype = qn_norm_stat(c->in[1]->dtype), .shape = c->in[2]->shape };
    return QN_OK;
}

static QnCost cross_entropy_both_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[1]->type);
    return (QnCost){ .flops = 20 * (double)qn_shape_count(&n->in[1]->type.shape),
                     .bytes_read = bytes + (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[2]->type),
                     .bytes_written = bytes + (double)qn_type_bytes(&n->out[1].type) };
}

static void cross_entropy_both_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnCrossEntropyAttr *a = n->attr;
    QnNode *rows = qn_cross_entropy_rows(g, n->in[1], n->in[2], a->smoothing, a->ignore);
    out[1] = qn_node_out(g, rows, 0);
    out[0] = qn_cross_entropy_grad(g, n->in[0], n->in[1], n->in[2], a->smoothing, a->ignore);
}

static QnStatus cross_entropy_both_call(const QnNode *n, QnDeviceCall *c)
{
    if (n->in[0]->type.dtype != QN_DTYPE_F32)
        return qn_fail(QN_EUNSUPPORTED, "cross_entropy_both: device text takes f32 dy");
    return qn_cross_entropy_call("cross_entropy_both_row", n, 1, c);
}

static const QnSample cross_entropy_both_samples[] = {
    { .in = { { 1, { 6 }, .wide = true },
              { 2, { 6, 5 }, .lo = -4, .hi = 4 },
              { 1, { 6 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 4 } },
      .n_in = 3 },
    { .in = { { 1, { 3 }, .wide = true },
              { 2, { 3, 1300 }, .lo = -3, .hi = 3 },
              { 1, { 3 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 1299 } },
      .n_in = 3,
      .attr = &(QnCrossEntropyAttr){ 0.1, -100 } },
    { .in = { { 3, { 2, 2, 5 }, .wide = true },
              { 4, { 2, 3, 2, 5 } },
              { 3, { 2, 2, 5 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 2 } },
      .n_in = 3,
      .attr = &(QnCrossEntropyAttr){ 0.2, 1 } },
};

/* The cross_entropy node `loss` and the cross_entropy_grad node `grad`, of the same scores and
 * labels by the same rule, in one: outputs dx and the losses. NULL: they are not of the same. */
QN_API QnNode *qn_cross_entropy_both(QnGraph *g, const QnNode *loss, const QnNode *grad)
{
    const QnCrossEntropyAttr *a = loss->attr, *b = grad->attr;
    if (loss->in[0] != grad->in[1] || loss->in[1] != grad->in[2] || a->ignore != b->ignore ||
        a->smoothing != b->smoothing)
        return NULL;
    return qn_emit(g, &qn_op_cross_entropy_both, b, grad->in, grad->n_in);
}

const QnOp qn_op_cross_entropy_both = {
    .name = "cross_entropy_both",
    .version = 1,
    .doc = "cross_entropy and its gradient, which reads the scores once",
    .n_in = 3,
    .n_out = 2,
    .traits = QN_ROWWISE,
    QN_ATTRS(QnCrossEntropyAttr, cross_entropy_both_fields),
    .infer = cross_entropy_both_infer,
    .cost = cross_entropy_both_cost,
    .lower = cross_entropy_both_lower,
    .inplace = 2,
    .device = QN_TEXT(cross_entropy),
    .call = cross_entropy_both_call,
    QN_SAMPLES(cross_entropy_both_samples),
};
#endif

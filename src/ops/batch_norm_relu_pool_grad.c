/* Gradient of max_pool(relu(batch_norm(x))) in x, without what lies between: the greatest element
 * of each window is found again, in (x - mean) * factor + bias. Made by the passes, never by
 * models. Inputs dy (N,C,out...), x (N,C,in...), mean, rstd, factor = scale * rstd and bias (C);
 * outputs dx, dscale, dbias as batch_norm_grad has them. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField batch_norm_relu_pool_grad_fields[] = { QN_POOL_FIELDS };

static QnStatus batch_norm_relu_pool_grad_infer(QnInfer *c)
{
    QnShape y;
    QN_TRY(qn_norm_relu_grad_infer(c, "batch_norm_relu_pool_grad"));
    QN_TRY(
        qn_window_pool_shape(c->graph, "batch_norm_relu_pool_grad", c->attr, &c->in[1]->shape, &y));
    return qn_norm_shape(c, "batch_norm_relu_pool_grad", 0, &y);
}

static QnCost batch_norm_relu_pool_grad_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[1]->type.shape, &n->in[0]->type.shape);
    double taps =
        (double)qn_shape_count(&n->in[0]->type.shape) * (double)(w.k[0] * w.k[1] * w.k[2]);
    double bytes = (double)qn_type_bytes(&n->in[1]->type);
    double small = (double)qn_type_bytes(&n->in[2]->type);
    return (QnCost){ .flops = 8 * taps + 5 * (double)qn_shape_count(&n->in[1]->type.shape),
                     .bytes_read = bytes + (double)qn_type_bytes(&n->in[0]->type) + 4 * small,
                     .bytes_written = bytes + 2 * small };
}

static void batch_norm_relu_pool_grad_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue *const *in = n->in + 1;
    QnValue *y = qn_relu(g, qn_norm_affine(g, in[0], in[1], in[3], in[4]));
    qn_norm_relu_grad(g, qn_max_pool_grad(g, n->in[0], y, n->attr), y, in, out);
}

static const QnSample batch_norm_relu_pool_grad_samples[] = {
    { .in = { { 4, { 2, 3, 3, 2 } },
              { 4, { 2, 3, 6, 4 } },
              { 1, { 3 } },
              { 1, { 3 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 3 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 3 } } },
      .n_in = 6,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } } },
    { .in = { { 4, { 1, 2, 4, 4 } },
              { 4, { 1, 2, 7, 8 } },
              { 1, { 2 } },
              { 1, { 2 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 2 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 2 } } },
      .n_in = 6,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                             .strides = { 2, { 2, 2 } },
                             .pads = { 4, { 1, 0, 1, 1 } },
                             .ceil_mode = true } },
};

/* In place of `norm`, a batch_norm_grad whose dy came from `dy` through a max_pool's gradient and a
 * ReLU's: those of the batch norm with this factor and bias. */
QN_API QnNode *qn_batch_norm_relu_pool_grad(QnGraph *g, QnValue *dy, const QnNode *norm,
                                            QnValue *factor, QnValue *bias, const QnPoolAttr *pool)
{
    return qn_emit(g, &qn_op_batch_norm_relu_pool_grad, pool,
                   (QnValue *[]){ dy, norm->in[1], norm->in[2], norm->in[3], factor, bias }, 6);
}

const QnOp qn_op_batch_norm_relu_pool_grad = {
    .name = "batch_norm_relu_pool_grad",
    .version = 1,
    .doc =
        "gradient of the max_pool of the ReLU of a batch_norm, both made again: dx, dscale, dbias",
    .n_in = 6,
    .n_out = 3,
    QN_ATTRS(QnPoolAttr, batch_norm_relu_pool_grad_fields),
    .infer = batch_norm_relu_pool_grad_infer,
    .cost = batch_norm_relu_pool_grad_cost,
    .lower = batch_norm_relu_pool_grad_lower,
    QN_SAMPLES(batch_norm_relu_pool_grad_samples),
};
#endif

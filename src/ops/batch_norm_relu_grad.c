/* Gradient of relu(batch_norm(x)) in x, without the result: where that was cut off is made again,
 * from (x - mean) * factor + bias. Made by the passes, never by models. Inputs dy and x (N,C,...),
 * mean, rstd, factor = scale * rstd and bias (C); outputs dx, dscale, dbias as batch_norm_grad has
 * them, with dy = 0 where the ReLU gave 0. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

static QnStatus batch_norm_relu_grad_infer(QnInfer *c)
{
    QN_TRY(qn_norm_relu_grad_infer(c, "batch_norm_relu_grad"));
    return qn_norm_shape(c, "batch_norm_relu_grad", 0, &c->in[1]->shape);
}

static QnCost batch_norm_relu_grad_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[1]->type);
    double small = (double)qn_type_bytes(&n->in[2]->type);
    return (QnCost){ .flops = 13 * (double)qn_shape_count(&n->in[1]->type.shape),
                     .bytes_read = 2 * bytes + 4 * small,
                     .bytes_written = bytes + 2 * small };
}

static void batch_norm_relu_grad_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue *const *in = n->in + 1;
    QnValue *y = qn_relu(g, qn_norm_affine(g, in[0], in[1], in[3], in[4]));
    qn_norm_relu_grad(g, n->in[0], y, in, out);
}

static const QnSample batch_norm_relu_grad_samples[] = {
    { .in = { { 4, { 4, 3, 2, 3 } },
              { 4, { 4, 3, 2, 3 } },
              { 1, { 3 } },
              { 1, { 3 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 3 } },
              { 1, { 3 } } },
      .n_in = 6 },
    { .in = { { 2, { 130, 2 } },
              { 2, { 130, 2 } },
              { 1, { 2 } },
              { 1, { 2 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 2 } },
              { 1, { 2 } } },
      .n_in = 6 },
};

/* In place of `norm`, a batch_norm_grad whose dy is `dy` where a ReLU let it pass: the ReLU of the
 * batch norm with this factor and bias. */
QN_API QnNode *qn_batch_norm_relu_grad(QnGraph *g, QnValue *dy, const QnNode *norm, QnValue *factor,
                                       QnValue *bias)
{
    return qn_emit(g, &qn_op_batch_norm_relu_grad, NULL,
                   (QnValue *[]){ dy, norm->in[1], norm->in[2], norm->in[3], factor, bias }, 6);
}

const QnOp qn_op_batch_norm_relu_grad = {
    .name = "batch_norm_relu_grad",
    .version = 1,
    .doc = "gradient of the ReLU of a batch_norm, which is made again: dx, dscale, dbias",
    .n_in = 6,
    .n_out = 3,
    .infer = batch_norm_relu_grad_infer,
    .cost = batch_norm_relu_grad_cost,
    .lower = batch_norm_relu_grad_lower,
    .inplace = 3,
    QN_SAMPLES(batch_norm_relu_grad_samples),
};
#endif

/* The max_pool of the ReLU of a batch norm whose statistics are known: of (x - mean) * factor +
 * bias, which is not stored. Made by the passes, never by models. Inputs x (N,C,in...), mean,
 * factor = scale * rstd and bias (C); output (N,C,out...). */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"
#include "ops/window.h"

static const QnAttrField batch_norm_relu_pool_fields[] = { QN_POOL_FIELDS };

static QnStatus batch_norm_relu_pool_infer(QnInfer *c)
{
    QN_TRY(qn_norm_channels(c, "batch_norm_relu_pool", 2, 0));
    c->out[0].dtype = c->in[0]->dtype;
    return qn_window_pool_shape(c->graph, "batch_norm_relu_pool", c->attr, &c->in[0]->shape,
                                &c->out[0].shape);
}

static QnCost batch_norm_relu_pool_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[0]->type.shape, &n->out[0].type.shape);
    return (QnCost){ .flops = 4 * (double)qn_shape_count(&n->out[0].type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   3 * (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static void batch_norm_relu_pool_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue *y = qn_norm_affine(g, n->in[0], n->in[1], n->in[2], n->in[3]);
    out[0] = qn_max_pool(g, qn_relu(g, y), n->attr);
}

static const QnSample batch_norm_relu_pool_samples[] = {
    { .in = { { 4, { 2, 3, 6, 4 }, .distinct = true }, { 1, { 3 } }, { 1, { 3 } }, { 1, { 3 } } },
      .n_in = 4,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } } },
    { .in = { { 4, { 1, 2, 7, 8 }, .distinct = true }, { 1, { 2 } }, { 1, { 2 } }, { 1, { 2 } } },
      .n_in = 4,
      .attr = &(QnPoolAttr){ .kernel = { 2, { 3, 3 } },
                             .strides = { 2, { 2, 2 } },
                             .pads = { 4, { 1, 0, 1, 1 } },
                             .ceil_mode = true } },
};

/* Of the batch norm whose batch_norm_stats is `stats`, with this bias. */
QN_API QnValue *qn_batch_norm_relu_pool(QnGraph *g, QnNode *stats, QnValue *bias,
                                        const QnPoolAttr *pool)
{
    return qn_emitn(g, &qn_op_batch_norm_relu_pool, pool,
                    (QnValue *[]){ stats->in[0], &stats->out[1], &stats->out[0], bias }, 4);
}

const QnOp qn_op_batch_norm_relu_pool = {
    .name = "batch_norm_relu_pool",
    .version = 1,
    .doc = "max_pool of the ReLU of a batch_norm with known statistics",
    .n_in = 4,
    QN_ATTRS(QnPoolAttr, batch_norm_relu_pool_fields),
    .infer = batch_norm_relu_pool_infer,
    .cost = batch_norm_relu_pool_cost,
    .lower = batch_norm_relu_pool_lower,
    QN_SAMPLES(batch_norm_relu_pool_samples),
};
#endif

/* What batch normalisation needs of its batch, without its result: of x (N,C,...) and scale (C),
 *   factor = scale * rstd, mean, rstd = 1 / sqrt(biased variance + eps), unbiased variance,
 * each (C). Made by the passes, never by models: y = (x - mean) * factor + bias is then left to
 * maps, which go into one pass over memory with those around them. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

typedef struct Attr {
    double eps;
} Attr;

static const QnAttrField batch_norm_stats_fields[] = {
    QN_NORM_EPS(Attr, 1e-5, "added to the variance"),
};

static QnStatus batch_norm_stats_infer(QnInfer *c)
{
    QN_TRY(qn_norm_channels(c, "batch_norm_stats", 2, 2));
    QnShape channel = QN_SHAPE(c->in[0]->shape.dim[1]);
    for (int i = 0; i < 4; i++)
        c->out[i] = (QnType){ .dtype = qn_norm_stat(c->in[0]->dtype), .shape = channel };
    return QN_OK;
}

static QnCost batch_norm_stats_cost(const QnNode *n)
{
    return (QnCost){ .flops = 4 * (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = 4 * (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus batch_norm_stats_ref(const QnRefArgs *a)
{
    QnRows r = qn_util_rows(&a->in_type[0]->shape, 1);
    for (int64_t c = 0; c < r.n; c++) {
        double stats[3];
        qn_norm_channel_stats(a->in[0], r, c, ((const Attr *)a->attr)->eps, stats);
        a->out[0][c] = a->in[1][c] * stats[1];
        for (int i = 0; i < 3; i++)
            a->out[1 + i][c] = stats[i];
    }
    return QN_OK;
}

/* The factor passes its cotangent on to scale and to rstd. */
static void batch_norm_stats_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_channel(&n->in[0]->type.shape);
    QnValue *x = n->in[0], *scale = n->in[1], *mean = &n->out[1], *rstd = &n->out[2];
    QnValue *drstd = dy[2];
    if (dy[0]) {
        dx[1] = qn_cast(g, qn_mul(g, dy[0], rstd), scale->type.dtype);
        drstd = qn_norm_add(g, drstd, qn_mul(g, dy[0], qn_cast(g, scale, rstd->type.dtype)));
    }
    dx[0] = qn_norm_stat_grad(g, &v, x, mean, rstd, dy[1], drstd);
    if (dy[3])
        dx[0] = qn_norm_add(g, dx[0], qn_norm_var_grad(g, &v, x, mean, dy[3]));
}

static QnStatus batch_norm_stats_call(const QnNode *n, QnDeviceCall *c)
{
    QnRows r = qn_util_rows(&n->in[0]->type.shape, 1);
    qn_norm_channel_call(r, "batch_norm_stats_channel", "batch_norm_stats_share",
                         "batch_norm_stats_join", c);
    qn_device_float(c, ((const Attr *)n->attr)->eps);
    return QN_OK;
}

static const QnSample batch_norm_stats_samples[] = {
    { .in = { { 4, { 4, 3, 2, 3 } }, { 1, { 3 } } }, .n_in = 2 },
    { .in = { { 2, { 130, 2 } }, { 1, { 2 } } },
      .n_in = 2,
      .attr = &(Attr){ 1e-3 },
      .lo = -3,
      .hi = 5 },
};

/* The statistics of the node `norm`, a batch_norm. */
QN_API QnNode *qn_batch_norm_stats(QnGraph *g, const QnNode *norm)
{
    return qn_emit(g, &qn_op_batch_norm_stats, &(Attr){ *(const double *)norm->attr },
                   (QnValue *[]){ norm->in[0], norm->in[1] }, 2);
}

const QnOp qn_op_batch_norm_stats = {
    .name = "batch_norm_stats",
    .version = 1,
    .doc = "statistics of each channel over the batch, and its scale by them",
    .n_in = 2,
    .n_out = 4,
    QN_ATTRS(Attr, batch_norm_stats_fields),
    .infer = batch_norm_stats_infer,
    .cost = batch_norm_stats_cost,
    .ref = batch_norm_stats_ref,
    .grad = batch_norm_stats_grad,
    .device = QN_TEXT(batch_norm),
    .call = batch_norm_stats_call,
    QN_SAMPLES(batch_norm_stats_samples),
};
#endif

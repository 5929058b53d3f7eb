/* Batch normalisation in training: over all axes but axis 1 (Ioffe and Szegedy 2015),
 *   y = (x - mean) * rstd * scale + bias, rstd = 1 / sqrt(biased variance + eps).
 * x, y (N,C,...), everything else (C). Also gives the unbiased variance, which running statistics
 * keep. Sums in f32 or wider, the variance by a second pass. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Leaves the group's total of s in every item's s. */
#define BATCH_NORM_TOTAL(s)                                                                        \
    part[lid] = s;                                                                                 \
    QN_SYNC();                                                                                     \
    for (int h = size / 2; h > 0; h /= 2) {                                                        \
        if (lid < h)                                                                               \
            part[lid] += part[lid + h];                                                            \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    s = part[0];                                                                                   \
    QN_SYNC();

/* Mean m of the group's channel and its sum of squared differences s. */
#define BATCH_NORM_CHANNEL                                                                         \
    QN_SHARED float part[256];                                                                     \
    qn_long ch = qn_group(), count = n * inner;                                                    \
    int lid = qn_lid(), size = qn_group_size();                                                    \
    float s = 0.0f;                                                                                \
    QN_CHANNEL(ch, c, inner, 0, count, s += qn_load(x, at))                                        \
    BATCH_NORM_TOTAL(s)                                                                            \
    float m = count > 0 ? s / (float)count : 0.0f;                                                 \
    s = 0.0f;                                                                                      \
    QN_CHANNEL(ch, c, inner, 0, count, float d = qn_load(x, at) - m; s += d * d)                   \
    BATCH_NORM_TOTAL(s)

/* Of few large channels, `splits` groups a channel: the mean of each group's share and its squared
 * distance from that go to `work`. */
#define BATCH_NORM_SHARE                                                                           \
    QN_SHARED float part[256];                                                                     \
    qn_long ch = qn_group() / splits, count = n * inner, share = (count + splits - 1) / splits;    \
    qn_long from = qn_group() % splits * share, to = from + share < count ? from + share : count;  \
    int lid = qn_lid(), size = qn_group_size();                                                    \
    float s = 0.0f;                                                                                \
    QN_CHANNEL(ch, c, inner, from, to, s += qn_load(x, at))                                        \
    BATCH_NORM_TOTAL(s)                                                                            \
    float m = s / (float)(to - from);                                                              \
    s = 0.0f;                                                                                      \
    QN_CHANNEL(ch, c, inner, from, to, float d = qn_load(x, at) - m; s += d * d)                   \
    BATCH_NORM_TOTAL(s)                                                                            \
    if (lid == 0) {                                                                                \
        work[2 * qn_group()] = m;                                                                  \
        work[2 * qn_group() + 1] = s;                                                              \
    }

/* m and s of the channel from those of its shares (Chan et al. 1983). */
#define BATCH_NORM_JOIN                                                                            \
    qn_long ch = qn_group() / splits, count = n * inner, share = (count + splits - 1) / splits;    \
    qn_long from = qn_group() % splits * share;                                                    \
    float m = 0.0f, s = 0.0f;                                                                      \
    for (qn_long i = 0; i < splits; i++) {                                                         \
        float had = (float)(i * share),                                                            \
              got = (float)((i + 1) * share < count ? share : count - i * share);                  \
        float d = work[2 * (ch * splits + i)] - m;                                                 \
        m += d * (got / (had + got));                                                              \
        s += work[2 * (ch * splits + i) + 1] + d * d * had * (got / (had + got));                  \
    }

/* The channel's scale a; statistics are stored where `first`. */
#define BATCH_NORM_KEEP(first)                                                                     \
    float r = 1.0f / qn_sqrtf(s / (float)count + eps), a = qn_load(scale, ch) * r;                 \
    if (first) {                                                                                   \
        mean[ch] = m;                                                                              \
        rstd[ch] = r;                                                                              \
        var[ch] = s / (float)(count > 1 ? count - 1 : 1);                                          \
    }

/* One work group a channel; x is (n, c, inner). */
QN_KERNEL batch_norm_channel(QN_GLOBAL QN_T *y, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                             QN_GLOBAL float *var, QN_GLOBAL const QN_T *x,
                             QN_GLOBAL const QN_T *scale, QN_GLOBAL const QN_T *bias,
                             QN_GLOBAL float *work, qn_long n, qn_long c, qn_long inner,
                             qn_long splits, float eps)
{
    BATCH_NORM_CHANNEL
    BATCH_NORM_KEEP(lid == 0)
    float b = qn_load(bias, ch);
    QN_CHANNEL(ch, c, inner, 0, count, qn_store(y, at, (qn_load(x, at) - m) * a + b))
}

QN_KERNEL batch_norm_share(QN_GLOBAL QN_T *y, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                           QN_GLOBAL float *var, QN_GLOBAL const QN_T *x,
                           QN_GLOBAL const QN_T *scale, QN_GLOBAL const QN_T *bias,
                           QN_GLOBAL float *work, qn_long n, qn_long c, qn_long inner,
                           qn_long splits, float eps){ BATCH_NORM_SHARE }

/* Every group does its share of y. */
QN_KERNEL
    batch_norm_join(QN_GLOBAL QN_T *y, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                    QN_GLOBAL float *var, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *scale,
                    QN_GLOBAL const QN_T *bias, QN_GLOBAL float *work, qn_long n, qn_long c,
                    qn_long inner, qn_long splits, float eps)
{
    BATCH_NORM_JOIN
    BATCH_NORM_KEEP(qn_lid() == 0 && from == 0)
    float b = qn_load(bias, ch);
    qn_long to = from + share < count ? from + share : count;
    QN_CHANNEL(ch, c, inner, from, to, qn_store(y, at, (qn_load(x, at) - m) * a + b))
}

/* The statistics alone, for ops/batch_norm_stats.c. */
QN_KERNEL batch_norm_stats_channel(QN_GLOBAL float *factor, QN_GLOBAL float *mean,
                                   QN_GLOBAL float *rstd, QN_GLOBAL float *var,
                                   QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *scale,
                                   QN_GLOBAL float *work, qn_long n, qn_long c, qn_long inner,
                                   qn_long splits, float eps)
{
    BATCH_NORM_CHANNEL
    BATCH_NORM_KEEP(lid == 0)
    if (lid == 0)
        factor[ch] = a;
}

QN_KERNEL batch_norm_stats_share(QN_GLOBAL float *factor, QN_GLOBAL float *mean,
                                 QN_GLOBAL float *rstd, QN_GLOBAL float *var,
                                 QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *scale,
                                 QN_GLOBAL float *work, qn_long n, qn_long c, qn_long inner,
                                 qn_long splits, float eps){ BATCH_NORM_SHARE }

QN_KERNEL
    batch_norm_stats_join(QN_GLOBAL float *factor, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                          QN_GLOBAL float *var, QN_GLOBAL const QN_T *x,
                          QN_GLOBAL const QN_T *scale, QN_GLOBAL float *work, qn_long n, qn_long c,
                          qn_long inner, qn_long splits, float eps)
{
    BATCH_NORM_JOIN
    BATCH_NORM_KEEP(qn_lid() == 0 && from == 0)
    if (qn_lid() == 0 && from == 0)
        factor[ch] = a;
}
#endif

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

typedef struct Attr {
    double eps;
} Attr;

static const QnAttrField batch_norm_fields[] = {
    QN_NORM_EPS(Attr, 1e-5, "added to the variance"),
};

static QnStatus batch_norm_infer(QnInfer *c)
{
    QN_TRY(qn_norm_channels(c, "batch_norm", 2, 6));
    QnShape channel = QN_SHAPE(c->in[0]->shape.dim[1]);
    c->out[0] = *c->in[0];
    for (int i = 1; i < 4; i++)
        c->out[i] = (QnType){ .dtype = qn_norm_stat(c->in[0]->dtype), .shape = channel };
    return QN_OK;
}

static QnCost batch_norm_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[0]->type);
    double small = (double)qn_type_bytes(&n->in[1]->type);
    return (QnCost){ .flops = 7 * (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = bytes + 2 * small,
                     .bytes_written = bytes + 3 * (double)qn_type_bytes(&n->out[1].type) };
}

static QnStatus batch_norm_ref(const QnRefArgs *a)
{
    QnRows r = qn_util_rows(&a->in_type[0]->shape, 1);
    for (int64_t c = 0; c < r.n; c++) {
        double stats[3];
        qn_norm_channel_stats(a->in[0], r, c, ((const Attr *)a->attr)->eps, stats);
        for (int64_t i = 0; i < r.outer * r.inner; i++) {
            int64_t at = (i / r.inner * r.n + c) * r.inner + i % r.inner;
            a->out[0][at] = (a->in[0][at] - stats[0]) * stats[1] * a->in[1][c] + a->in[2][c];
        }
        for (int i = 0; i < 3; i++)
            a->out[1 + i][c] = stats[i];
    }
    return QN_OK;
}

static void batch_norm_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_channel(&n->in[0]->type.shape);
    if (dy[0]) {
        QnNode *b = qn_emit(g, &qn_op_batch_norm_grad, NULL,
                            (QnValue *[]){ dy[0], n->in[0], &n->out[1], &n->out[2], n->in[1] }, 5);
        for (int i = 0; i < 3; i++)
            dx[i] = qn_node_out(g, b, i);
    }
    dx[0] = qn_norm_add(g, dx[0],
                        qn_norm_stat_grad(g, &v, n->in[0], &n->out[1], &n->out[2], dy[1], dy[2]));
    if (dy[3])
        dx[0] = qn_norm_add(g, dx[0], qn_norm_var_grad(g, &v, n->in[0], &n->out[1], dy[3]));
}

static QnStatus batch_norm_call(const QnNode *n, QnDeviceCall *c)
{
    QnRows r = qn_util_rows(&n->in[0]->type.shape, 1);
    qn_norm_channel_call(r, "batch_norm_channel", "batch_norm_share", "batch_norm_join", c);
    qn_device_float(c, ((const Attr *)n->attr)->eps);
    return QN_OK;
}

static const QnSample batch_norm_samples[] = {
    { .in = { { 4, { 4, 3, 2, 3 } }, { 1, { 3 } }, { 1, { 3 } } }, .n_in = 3 },
    { .in = { { 2, { 130, 2 } }, { 1, { 2 } }, { 1, { 2 } } },
      .n_in = 3,
      .attr = &(Attr){ 1e-3 },
      .lo = -3,
      .hi = 5 },
};

/* The node: outputs y, mean, rstd, unbiased variance. */
QN_API QnNode *qn_batch_norm(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias, double eps)
{
    return qn_emit(g, &qn_op_batch_norm, &(Attr){ eps }, (QnValue *[]){ x, scale, bias }, 3);
}

/* running = (1 - momentum) * running + momentum * now */
static void batch_norm_keep(QnGraph *g, QnValue *running, QnValue *now, double momentum)
{
    if (!running || qn_value_is_poison(running) || qn_value_is_poison(now))
        return;
    QnValue *old = qn_mul_scalar(g, running, 1 - momentum);
    QnValue *add = qn_mul_scalar(g, qn_cast(g, now, running->type.dtype), momentum);
    qn_assign(g, running, qn_add(g, old, add));
}

/* y in training. Updates the states running_mean and running_var (NULL: none) as PyTorch does: by
 * `momentum` towards the batch's mean and unbiased variance. */
QN_API QnValue *qn_batch_norm_train(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias,
                                    QnValue *running_mean, QnValue *running_var, double momentum,
                                    double eps)
{
    QnNode *n = qn_batch_norm(g, x, scale, bias, eps);
    batch_norm_keep(g, running_mean, qn_node_out(g, n, 1), momentum);
    batch_norm_keep(g, running_var, qn_node_out(g, n, 3), momentum);
    return qn_node_out(g, n, 0);
}

const QnOp qn_op_batch_norm = {
    .name = "batch_norm",
    .version = 1,
    .doc = "normalises each channel over the batch; training",
    .n_in = 3,
    .n_out = 4,
    QN_ATTRS(Attr, batch_norm_fields),
    .infer = batch_norm_infer,
    .cost = batch_norm_cost,
    .ref = batch_norm_ref,
    .grad = batch_norm_grad,
    .inplace = 1,
    .device = QN_TEXT(batch_norm),
    .call = batch_norm_call,
    QN_SAMPLES(batch_norm_samples),
};
#endif

/* Gradient of batch_norm in one pass of sums, with xh = (x - mean) * rstd over n = N * spatial:
 *   dbias = sum dy, dscale = sum dy * xh, dx = scale * rstd * (dy - dbias / n - xh * dscale / n).
 * dy, x, dx (N,C,...), everything else (C). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Leaves the group's totals of a and b in pa[0] and pb[0]. */
#define BATCH_NORM_GRAD_TOTALS(a, b)                                                               \
    pa[lid] = a;                                                                                   \
    pb[lid] = b;                                                                                   \
    QN_SYNC();                                                                                     \
    for (int h = size / 2; h > 0; h /= 2) {                                                        \
        if (lid < h) {                                                                             \
            pa[lid] += pa[lid + h];                                                                \
            pb[lid] += pb[lid + h];                                                                \
        }                                                                                          \
        QN_SYNC();                                                                                 \
    }

/* One work group a channel; x is (n, c, inner). */
QN_KERNEL batch_norm_grad_channel(QN_GLOBAL QN_T *dx, QN_GLOBAL QN_T *dscale, QN_GLOBAL QN_T *dbias,
                                  QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                                  QN_GLOBAL const float *mean, QN_GLOBAL const float *rstd,
                                  QN_GLOBAL const QN_T *scale, QN_GLOBAL float *work, qn_long n,
                                  qn_long c, qn_long inner, qn_long splits)
{
    QN_SHARED float pa[256], pb[256];
    qn_long ch = qn_group(), count = n * inner;
    int lid = qn_lid(), size = qn_group_size();
    float m = mean[ch], r = rstd[ch], a = 0.0f, b = 0.0f;
    QN_CHANNEL(ch, c, inner, 0, count, float d = qn_load(dy, at); a += d;
               b += d * (qn_load(x, at) - m) * r)
    BATCH_NORM_GRAD_TOTALS(a, b)
    a = pa[0] / (float)count;
    b = pb[0] / (float)count;
    float k = qn_load(scale, ch) * r;
    QN_CHANNEL(ch, c, inner, 0, count,
               qn_store(dx, at, k * (qn_load(dy, at) - a - (qn_load(x, at) - m) * r * b)))
    if (lid == 0) {
        qn_store(dscale, ch, pb[0]);
        qn_store(dbias, ch, pa[0]);
    }
}

/* Of few large channels, `splits` groups a channel: first each group's share of the sums, then
 * every group adds those of the channel and does its share of dx. */
QN_KERNEL batch_norm_grad_share(QN_GLOBAL QN_T *dx, QN_GLOBAL QN_T *dscale, QN_GLOBAL QN_T *dbias,
                                QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                                QN_GLOBAL const float *mean, QN_GLOBAL const float *rstd,
                                QN_GLOBAL const QN_T *scale, QN_GLOBAL float *work, qn_long n,
                                qn_long c, qn_long inner, qn_long splits)
{
    QN_SHARED float pa[256], pb[256];
    qn_long ch = qn_group() / splits, count = n * inner, share = (count + splits - 1) / splits;
    qn_long from = qn_group() % splits * share, to = from + share < count ? from + share : count;
    int lid = qn_lid(), size = qn_group_size();
    float m = mean[ch], r = rstd[ch], a = 0.0f, b = 0.0f;
    QN_CHANNEL(ch, c, inner, from, to, float d = qn_load(dy, at); a += d;
               b += d * (qn_load(x, at) - m) * r)
    BATCH_NORM_GRAD_TOTALS(a, b)
    if (lid == 0) {
        work[2 * qn_group()] = pa[0];
        work[2 * qn_group() + 1] = pb[0];
    }
}

QN_KERNEL batch_norm_grad_join(QN_GLOBAL QN_T *dx, QN_GLOBAL QN_T *dscale, QN_GLOBAL QN_T *dbias,
                               QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                               QN_GLOBAL const float *mean, QN_GLOBAL const float *rstd,
                               QN_GLOBAL const QN_T *scale, QN_GLOBAL float *work, qn_long n,
                               qn_long c, qn_long inner, qn_long splits)
{
    qn_long ch = qn_group() / splits, count = n * inner, share = (count + splits - 1) / splits;
    qn_long from = qn_group() % splits * share, to = from + share < count ? from + share : count;
    float m = mean[ch], r = rstd[ch], a = 0.0f, b = 0.0f;
    for (qn_long i = ch * splits; i < (ch + 1) * splits; i++) {
        a += work[2 * i];
        b += work[2 * i + 1];
    }
    if (qn_lid() == 0 && from == 0) {
        qn_store(dscale, ch, b);
        qn_store(dbias, ch, a);
    }
    a /= (float)count;
    b /= (float)count;
    float k = qn_load(scale, ch) * r;
    QN_CHANNEL(ch, c, inner, from, to,
               qn_store(dx, at, k * (qn_load(dy, at) - a - (qn_load(x, at) - m) * r * b)))
}
#endif

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

static QnStatus batch_norm_grad_infer(QnInfer *c)
{
    const QnShape *x = &c->in[1]->shape;
    QN_TRY(qn_norm_dtypes(c, "batch_norm_grad", 1 << 1 | 1 << 4));
    if (x->rank < 2)
        return qn_fail(QN_ESHAPE, "batch_norm_grad: x must be (N,C,...), not of rank %d", x->rank);
    QnShape channel = QN_SHAPE(x->dim[1]);
    QN_TRY(qn_norm_shape(c, "batch_norm_grad", 0, x));
    for (int i = 2; i < 5; i++)
        QN_TRY(qn_norm_shape(c, "batch_norm_grad", i, &channel));
    c->out[0] = *c->in[1];
    c->out[1] = c->out[2] = *c->in[4];
    return QN_OK;
}

static QnCost batch_norm_grad_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[1]->type);
    double small = (double)qn_type_bytes(&n->in[4]->type);
    return (QnCost){ .flops = 10 * (double)qn_shape_count(&n->in[1]->type.shape),
                     .bytes_read = 2 * bytes + small + 2 * (double)qn_type_bytes(&n->in[2]->type),
                     .bytes_written = bytes + 2 * small };
}

static QnStatus batch_norm_grad_ref(const QnRefArgs *r)
{
    QnRows s = qn_util_rows(&r->in_type[1]->shape, 1);
    const double *dy = r->in[0], *x = r->in[1];
    int64_t count = s.outer * s.inner;
    for (int64_t c = 0; c < s.n; c++) {
        double m = r->in[2][c], rstd = r->in[3][c], db = 0, ds = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (i / s.inner * s.n + c) * s.inner + i % s.inner;
            db += dy[at];
            ds += dy[at] * (x[at] - m) * rstd;
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (i / s.inner * s.n + c) * s.inner + i % s.inner;
            double xh = (x[at] - m) * rstd;
            r->out[0][at] =
                r->in[4][c] * rstd * (dy[at] - db / (double)count - xh * ds / (double)count);
        }
        r->out[1][c] = ds;
        r->out[2][c] = db;
    }
    return QN_OK;
}

static void batch_norm_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_channel(&n->in[1]->type.shape);
    QnNormTerms in = { n->in[0], n->in[1], n->in[2], n->in[3], n->in[4] };
    QnNormTerms d = qn_norm_grad_grad(g, &v, &in, dy[0], dy[1], dy[2]);
    dx[0] = d.dy;
    dx[1] = d.x;
    dx[2] = d.mean;
    dx[3] = d.rstd;
    dx[4] = d.scale;
}

static QnStatus batch_norm_grad_call(const QnNode *n, QnDeviceCall *c)
{
    QnRows r = qn_util_rows(&n->in[1]->type.shape, 1);
    if (n->in[2]->type.dtype != QN_DTYPE_F32 || n->in[3]->type.dtype != QN_DTYPE_F32)
        return qn_fail(QN_EUNSUPPORTED, "batch_norm_grad: device text takes f32 statistics");
    qn_norm_channel_call(r, "batch_norm_grad_channel", "batch_norm_grad_share",
                         "batch_norm_grad_join", c);
    return QN_OK;
}

static const QnSample batch_norm_grad_samples[] = {
    { .in = { { 4, { 4, 3, 2, 3 } },
              { 4, { 4, 3, 2, 3 } },
              { 1, { 3 } },
              { 1, { 3 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 3 } } },
      .n_in = 5 },
    { .in = { { 2, { 130, 2 } },
              { 2, { 130, 2 } },
              { 1, { 2 } },
              { 1, { 2 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 2 } } },
      .n_in = 5 },
};

const QnOp qn_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .version = 1,
    .doc = "gradient of batch_norm: dx, dscale, dbias",
    .n_in = 5,
    .n_out = 3,
    .infer = batch_norm_grad_infer,
    .cost = batch_norm_grad_cost,
    .ref = batch_norm_grad_ref,
    .grad = batch_norm_grad_grad,
    .inplace = 3,
    .device = QN_TEXT(batch_norm_grad),
    .call = batch_norm_grad_call,
    QN_SAMPLES(batch_norm_grad_samples),
};
#endif

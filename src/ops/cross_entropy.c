/* Cross-entropy of softmax scores against class numbers, a loss for each row:
 *   loss = -sum_c t_c log softmax(x)_c, t = (1 - e) onehot(label) + e / C   (e: label smoothing)
 * x (N,C,...), labels (N,...) i64; loss, weight (N,...). A row whose label is ignore_index has loss
 * and weight 0; others have weight 1. Losses are f32 or wider. PyTorch's conventions. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One work group a row; item i has the elements i, i + size, … and no others, so that dx may be x.
 * The row is read once for its maximum m and the sum s of exp(x - m), scaled anew as the maximum
 * grows, four elements at a time. Masked scores are -inf; 0 stands in while nothing else has come.
 * t becomes the sum of x. All items get m, s and t. */
#define CROSS_ENTROPY_STATS                                                                        \
    QN_SHARED float pa[256], pb[256];                                                              \
    qn_long row = qn_group(), base = row / inner * n * inner + row % inner, label = labels[row];   \
    int lid = qn_lid(), size = qn_group_size();                                                    \
    float m = -QN_INF, s = 0.0f, t = 0.0f, v[4];                                                   \
    for (qn_long i = lid; i < n; i += 4 * size) {                                                  \
        CROSS_ENTROPY_LOAD4                                                                        \
        float top = qn_maxf(qn_maxf(v[0], v[1]), qn_maxf(v[2], v[3]));                             \
        if (top > m) {                                                                             \
            s *= qn_expf(m - top);                                                                 \
            m = top;                                                                               \
        }                                                                                          \
        float from = m > -QN_INF ? m : 0.0f;                                                       \
        QN_EACH4(s += qn_expf(v[u] - from))                                                        \
        QN_EACH4(t += smoothing > 0.0f && i + u * size < n ? v[u] : 0.0f)                          \
    }                                                                                              \
    pa[lid] = m;                                                                                   \
    QN_SYNC();                                                                                     \
    for (int h = size / 2; h > 0; h /= 2) {                                                        \
        if (lid < h)                                                                               \
            pa[lid] = qn_maxf(pa[lid], pa[lid + h]);                                               \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    s = m < pa[0] ? s * qn_expf(m - pa[0]) : s;                                                    \
    m = pa[0];                                                                                     \
    QN_SYNC();                                                                                     \
    pa[lid] = s;                                                                                   \
    pb[lid] = t;                                                                                   \
    QN_SYNC();                                                                                     \
    for (int h = size / 2; h > 0; h /= 2) {                                                        \
        if (lid < h) {                                                                             \
            pa[lid] += pa[lid + h];                                                                \
            pb[lid] += pb[lid + h];                                                                \
        }                                                                                          \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    s = pa[0];                                                                                     \
    t = pb[0];

/* v = the item's elements i, i + size, …; -inf behind the end. */
#define CROSS_ENTROPY_LOAD4                                                                        \
    QN_EACH4(v[u] = i + u * size < n ? qn_load(x, base + (i + u * size) * inner) : -QN_INF)

/* By the item that has the label, before it writes. A label out of range gives NaN. */
#define CROSS_ENTROPY_LOSS                                                                         \
    bool known = label >= 0 && label < n;                                                          \
    if (lid == (known ? (int)(label % size) : 0)) {                                                \
        float hit = known ? qn_load(x, base + label * inner) - m : QN_INF - QN_INF;                \
        float even = smoothing > 0.0f ? smoothing * (t / (float)n - m) : 0.0f;                     \
        loss[row] = label == ignore ? 0.0f : qn_logf(s) - (1.0f - smoothing) * hit - even;         \
    }

#define CROSS_ENTROPY_DX                                                                           \
    float r = 1.0f / s, d = dy[row], even = smoothing / (float)n;                                  \
    for (qn_long i = lid; i < n; i += 4 * size) {                                                  \
        CROSS_ENTROPY_LOAD4                                                                        \
        QN_EACH4(v[u] = qn_expf(v[u] - m) * r - even;                                              \
                 v[u] = d * (i + u * size == label ? v[u] - (1.0f - smoothing) : v[u]);            \
                 if (i + u * size < n)                                                             \
                     qn_store(dx, base + (i + u * size) * inner, label == ignore ? 0.0f : v[u]))   \
    }

QN_KERNEL cross_entropy_row(QN_GLOBAL float *loss, QN_GLOBAL float *weight, QN_GLOBAL const QN_T *x,
                            QN_GLOBAL const qn_long *labels, qn_long n, qn_long inner,
                            float smoothing, qn_long ignore)
{
    CROSS_ENTROPY_STATS
    CROSS_ENTROPY_LOSS
    if (lid == 0)
        weight[row] = label == ignore ? 0.0f : 1.0f;
}

QN_KERNEL cross_entropy_grad_row(QN_GLOBAL QN_T *dx, QN_GLOBAL const float *dy,
                                 QN_GLOBAL const QN_T *x, QN_GLOBAL const qn_long *labels,
                                 qn_long n, qn_long inner, float smoothing,
                                 qn_long ignore){ CROSS_ENTROPY_STATS CROSS_ENTROPY_DX }

QN_KERNEL
    cross_entropy_both_row(QN_GLOBAL QN_T *dx, QN_GLOBAL float *loss, QN_GLOBAL const float *dy,
                           QN_GLOBAL const QN_T *x, QN_GLOBAL const qn_long *labels, qn_long n,
                           qn_long inner, float smoothing, qn_long ignore)
{
    CROSS_ENTROPY_STATS{ CROSS_ENTROPY_LOSS } CROSS_ENTROPY_DX
}
#endif

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/util.h"

static const QnAttrField cross_entropy_fields[] = { QN_CROSS_ENTROPY_FIELDS };

static QnStatus cross_entropy_infer(QnInfer *c)
{
    QnShape row;
    QN_TRY(qn_loss_labels(c, "cross_entropy", 0, &row));
    c->out[0] = c->out[1] = (QnType){ .dtype = qn_norm_stat(c->in[0]->dtype), .shape = row };
    return QN_OK;
}

static QnCost cross_entropy_cost(const QnNode *n)
{
    return (QnCost){ .flops = 13 * (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = 2 * (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus cross_entropy_ref(const QnRefArgs *a)
{
    const QnCrossEntropyAttr *attr = a->attr;
    QnLossRows r = qn_loss_rows(&a->in_type[0]->shape);
    for (int64_t row = 0; row < r.n; row++) {
        const double *x = a->in[0] + qn_loss_base(&r, row);
        int64_t label = (int64_t)a->in[1][row];
        QN_TRY(qn_loss_check("cross_entropy", &r, row, label, attr->ignore));
        double m = -INFINITY, s = 0, loss = 0;
        for (int64_t k = 0; k < r.classes; k++)
            m = fmax(m, x[k * r.inner]);
        for (int64_t k = 0; k < r.classes; k++)
            s += exp(x[k * r.inner] - m);
        for (int64_t k = 0; k < r.classes; k++) {
            double t = attr->smoothing / (double)r.classes;
            t += k == label ? 1 - attr->smoothing : 0;
            loss -= t > 0 ? t * (x[k * r.inner] - m - log(s)) : 0;
        }
        a->out[0][row] = label == attr->ignore ? 0 : loss;
        a->out[1][row] = label != attr->ignore;
    }
    return QN_OK;
}

static void cross_entropy_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnCrossEntropyAttr *a = n->attr;
    if (dy[0]) /* the weight does not depend on x */
        dx[0] = qn_cross_entropy_grad(g, dy[0], n->in[0], n->in[1], a->smoothing, a->ignore);
}

static QnStatus cross_entropy_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_cross_entropy_call("cross_entropy_row", n, 0, c);
}

static const QnSample cross_entropy_samples[] = {
    { .in = { { 2, { 6, 5 }, .lo = -4, .hi = 4 },
              { 1, { 6 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 4 } },
      .n_in = 2 },
    { .in = { { 2, { 3, 130 }, .lo = -30, .hi = 30 },
              { 1, { 3 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 129 } },
      .n_in = 2,
      .attr = &(QnCrossEntropyAttr){ 0.1, -100 } },
    { .in = { { 4, { 2, 3, 2, 5 } }, { 3, { 2, 2, 5 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 2 } },
      .n_in = 2,
      .attr = &(QnCrossEntropyAttr){ 0.2, 1 } },
};

/* The node of losses and weights; see qn_cross_entropy. */
QN_API QnNode *qn_cross_entropy_rows(QnGraph *g, QnValue *x, QnValue *labels, double smoothing,
                                     int64_t ignore)
{
    return qn_emit(g, &qn_op_cross_entropy, &(QnCrossEntropyAttr){ smoothing, ignore },
                   (QnValue *[]){ x, labels }, 2);
}

/* The losses folded: mean over the rows that count, their sum, or each by itself. */
QN_API QnValue *qn_cross_entropy(QnGraph *g, QnValue *x, QnValue *labels, double smoothing,
                                 int64_t ignore, QnReduction how)
{
    QnNode *n = qn_cross_entropy_rows(g, x, labels, smoothing, ignore);
    return qn_loss_fold(g, qn_node_out(g, n, 0), qn_node_out(g, n, 1), how);
}

const QnOp qn_op_cross_entropy = {
    .name = "cross_entropy",
    .version = 1,
    .doc = "loss of softmax scores against class numbers, by row",
    .n_in = 2,
    .n_out = 2,
    .traits = QN_ROWWISE,
    QN_ATTRS(QnCrossEntropyAttr, cross_entropy_fields),
    .infer = cross_entropy_infer,
    .cost = cross_entropy_cost,
    .ref = cross_entropy_ref,
    .grad = cross_entropy_grad,
    .device = QN_TEXT(cross_entropy),
    .call = cross_entropy_call,
    QN_SAMPLES(cross_entropy_samples),
};
#endif

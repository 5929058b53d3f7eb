/* Cross-entropy of softmax scores against class numbers, a loss for each row:
 *   loss = -sum_c t_c log softmax(x)_c, t = (1 - e) onehot(label) + e / C   (e: label smoothing)
 * x (N,C,...), labels (N,...) i64; loss, weight (N,...). A row whose label is ignore_index has loss
 * and weight 0; others have weight 1. Losses are f32 or wider. PyTorch's conventions. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One work group a row. A label out of range gives NaN. */
QN_KERNEL cross_entropy_row(QN_GLOBAL float *loss, QN_GLOBAL float *weight, QN_GLOBAL const QN_T *x,
                            QN_GLOBAL const qn_long *labels, qn_long n, qn_long inner,
                            float smoothing, qn_long ignore)
{
    QN_SHARED float pa[256], pb[256];
    qn_long row = qn_group(), base = row / inner * n * inner + row % inner, label = labels[row];
    int lid = qn_lid(), size = qn_group_size();
    float m = -QN_INF;
    for (qn_long i = lid; i < n; i += size)
        m = qn_maxf(m, qn_load(x, base + i * inner));
    pa[lid] = m;
    QN_SYNC();
    for (int h = size / 2; h > 0; h /= 2) {
        if (lid < h)
            pa[lid] = qn_maxf(pa[lid], pa[lid + h]);
        QN_SYNC();
    }
    m = pa[0];
    QN_SYNC();
    float s = 0.0f, t = 0.0f;
    for (qn_long i = lid; i < n; i += size) {
        float v = qn_load(x, base + i * inner) - m;
        s += qn_expf(v);
        t += v;
    }
    pa[lid] = s;
    pb[lid] = t;
    QN_SYNC();
    for (int h = size / 2; h > 0; h /= 2) {
        if (lid < h) {
            pa[lid] += pa[lid + h];
            pb[lid] += pb[lid + h];
        }
        QN_SYNC();
    }
    if (lid == 0) {
        float lse = qn_logf(pa[0]), mean = pb[0] / (float)n;
        bool ok = label >= 0 && label < n;
        float hit = ok ? qn_load(x, base + label * inner) - m : QN_INF - QN_INF;
        loss[row] = label == ignore ? 0.0f : lse - (1.0f - smoothing) * hit - smoothing * mean;
        weight[row] = label == ignore ? 0.0f : 1.0f;
    }
}
#endif

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/util.h"

typedef struct Attr {
    double smoothing;
    int64_t ignore;
} Attr;

static const QnAttrField cross_entropy_fields[] = {
    { .name = "label_smoothing",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, smoothing),
      .min = 0,
      .max = 1,
      .doc = "share of the target spread evenly over all classes" },
    { .name = "ignore_index",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, ignore),
      .def = -100,
      .doc = "rows of this label count nothing" },
};

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
    const Attr *attr = a->attr;
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
    const Attr *a = n->attr;
    if (dy[0]) /* the weight does not depend on x */
        dx[0] = qn_cross_entropy_grad(g, dy[0], n->in[0], n->in[1], a->smoothing, a->ignore);
}

static QnStatus cross_entropy_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    QN_TRY(qn_util_rows_call("cross_entropy_row", &n->in[0]->type.shape, 1, c));
    qn_device_float(c, a->smoothing);
    qn_device_int(c, a->ignore);
    return QN_OK;
}

static const QnSample cross_entropy_samples[] = {
    { .in = { { 2, { 6, 5 }, .lo = -4, .hi = 4 },
              { 1, { 6 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 4 } },
      .n_in = 2 },
    { .in = { { 2, { 3, 130 }, .lo = -30, .hi = 30 },
              { 1, { 3 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 129 } },
      .n_in = 2,
      .attr = &(Attr){ 0.1, -100 } },
    { .in = { { 4, { 2, 3, 2, 5 } }, { 3, { 2, 2, 5 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 2 } },
      .n_in = 2,
      .attr = &(Attr){ 0.2, 1 } },
};

/* The node of losses and weights; see qn_cross_entropy. */
QN_API QnNode *qn_cross_entropy_rows(QnGraph *g, QnValue *x, QnValue *labels, double smoothing,
                                     int64_t ignore)
{
    return qn_emit(g, &qn_op_cross_entropy, &(Attr){ smoothing, ignore },
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
    QN_ATTRS(Attr, cross_entropy_fields),
    .infer = cross_entropy_infer,
    .cost = cross_entropy_cost,
    .ref = cross_entropy_ref,
    .grad = cross_entropy_grad,
    .device = QN_TEXT(cross_entropy),
    .call = cross_entropy_call,
    QN_SAMPLES(cross_entropy_samples),
};
#endif

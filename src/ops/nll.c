/* Negative log-likelihood of given log-probabilities, a loss for each row: loss = -x[label].
 * x (N,C,...), labels (N,...) i64; loss, weight (N,...). A row whose label is ignore_index has loss
 * and weight 0; others have weight 1. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One item a row. A label out of range gives NaN. */
QN_KERNEL nll_item(QN_GLOBAL QN_T *loss, QN_GLOBAL QN_T *weight, QN_GLOBAL const QN_T *x,
                   QN_GLOBAL const qn_long *labels, qn_long rows, qn_long n, qn_long inner,
                   qn_long ignore)
{
    qn_long row = qn_item();
    if (row >= rows)
        return;
    qn_long label = labels[row], base = row / inner * n * inner + row % inner;
    bool ok = label >= 0 && label < n;
    float hit = ok ? qn_load(x, base + label * inner) : QN_INF - QN_INF;
    qn_store(loss, row, label == ignore ? 0.0f : -hit);
    qn_store(weight, row, label == ignore ? 0.0f : 1.0f);
}
#endif

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t ignore;
} Attr;

static const QnAttrField nll_fields[] = {
    { .name = "ignore_index",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, ignore),
      .def = -100,
      .doc = "rows of this label count nothing" },
};

static QnStatus nll_infer(QnInfer *c)
{
    QnShape row;
    QN_TRY(qn_loss_labels(c, "nll", 0, &row));
    c->out[0] = c->out[1] = (QnType){ .dtype = c->in[0]->dtype, .shape = row };
    return QN_OK;
}

/* Reads one element a row. */
static QnCost nll_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->out[0].type);
    return (QnCost){ .flops = (double)qn_shape_count(&n->out[0].type.shape),
                     .bytes_read = bytes + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = 2 * bytes };
}

static QnStatus nll_ref(const QnRefArgs *a)
{
    int64_t ignore = ((const Attr *)a->attr)->ignore;
    QnLossRows r = qn_loss_rows(&a->in_type[0]->shape);
    for (int64_t row = 0; row < r.n; row++) {
        int64_t label = (int64_t)a->in[1][row];
        QN_TRY(qn_loss_check("nll", &r, row, label, ignore));
        bool counts = label != ignore;
        a->out[0][row] = counts ? -a->in[0][qn_loss_base(&r, row) + label * r.inner] : 0;
        a->out[1][row] = counts;
    }
    return QN_OK;
}

static void nll_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    if (dy[0])
        dx[0] = qn_nll_grad(g, dy[0], n->in[1], n->in[0]->type.shape.dim[1],
                            ((const Attr *)n->attr)->ignore);
}

static QnStatus nll_call(const QnNode *n, QnDeviceCall *c)
{
    QnLossRows r = qn_loss_rows(&n->in[0]->type.shape);
    *c = (QnDeviceCall){ .kernel = "nll_item", .n_groups = r.n };
    qn_device_int(c, r.n);
    qn_device_int(c, r.classes);
    qn_device_int(c, r.inner);
    qn_device_int(c, ((const Attr *)n->attr)->ignore);
    return QN_OK;
}

static const QnSample nll_samples[] = {
    { .in = { { 2, { 6, 5 } }, { 1, { 6 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 4 } }, .n_in = 2 },
    { .in = { { 4, { 2, 3, 2, 5 } }, { 3, { 2, 2, 5 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 2 } },
      .n_in = 2,
      .attr = &(Attr){ 1 } },
};

/* The node of losses and weights; see qn_nll. */
QN_API QnNode *qn_nll_rows(QnGraph *g, QnValue *x, QnValue *labels, int64_t ignore)
{
    return qn_emit(g, &qn_op_nll, &(Attr){ ignore }, (QnValue *[]){ x, labels }, 2);
}

/* The losses folded: mean over the rows that count, their sum, or each by itself. */
QN_API QnValue *qn_nll(QnGraph *g, QnValue *x, QnValue *labels, int64_t ignore, QnReduction how)
{
    QnNode *n = qn_nll_rows(g, x, labels, ignore);
    return qn_loss_fold(g, qn_node_out(g, n, 0), qn_node_out(g, n, 1), how);
}

const QnOp qn_op_nll = {
    .name = "nll",
    .version = 1,
    .doc = "minus the log-probability of the label, by row",
    .n_in = 2,
    .n_out = 2,
    QN_ATTRS(Attr, nll_fields),
    .infer = nll_infer,
    .cost = nll_cost,
    .ref = nll_ref,
    .grad = nll_grad,
    .device = QN_TEXT(nll),
    .call = nll_call,
    QN_SAMPLES(nll_samples),
};
#endif

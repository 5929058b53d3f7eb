/* Gradient of nll: dx = -dy at the label, 0 elsewhere and in ignored rows. dy, labels (N,...), dx
 * (N,C,...). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One item an element of dx. */
QN_KERNEL nll_grad_item(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy,
                        QN_GLOBAL const qn_long *labels, qn_long rows, qn_long n, qn_long inner,
                        qn_long ignore)
{
    qn_long i = qn_item();
    if (i >= rows * n)
        return;
    qn_long row = i / inner / n * inner + i % inner, label = labels[row];
    qn_store(dx, i, label != ignore && label == i / inner % n ? -qn_load(dy, row) : 0.0f);
}
#endif

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/util.h"

typedef struct Attr {
    QnDims classes;
    int64_t ignore;
} Attr;

static const QnAttrField nll_grad_fields[] = {
    { .name = "classes",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, classes),
      .doc = "how many there are, one number" },
    { .name = "ignore_index",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, ignore),
      .def = -100,
      .doc = "rows of this label count nothing" },
};

static QnStatus nll_grad_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnType *dy = c->in[0], *labels = c->in[1];
    if (!qn_dtype_is_float(dy->dtype) || labels->dtype != QN_DTYPE_I64)
        return qn_fail(QN_EDTYPE, "nll_grad: needs floats and i64 labels, not %s and %s",
                       qn_dtype_name(dy->dtype), qn_dtype_name(labels->dtype));
    if (a->classes.n != 1 || dy->shape.rank < 1 || dy->shape.rank >= QN_MAX_RANK ||
        dy->shape.rank != labels->shape.rank)
        return qn_fail(QN_ESHAPE, "nll_grad: dy and labels must both be (N,...), classes a number");
    QnShape *x = &c->out[0].shape;
    *x = (QnShape){ .rank = dy->shape.rank + 1, .dim = { dy->shape.dim[0], a->classes.d[0] } };
    for (int k = 1; k < dy->shape.rank; k++)
        x->dim[k + 1] = dy->shape.dim[k];
    c->out[0].dtype = dy->dtype;
    for (int k = 0; k < dy->shape.rank; k++) {
        if (dy->shape.dim[k] != labels->shape.dim[k] && dy->shape.dim[k] >= 0 &&
            labels->shape.dim[k] >= 0)
            return qn_fail(QN_ESHAPE, "nll_grad: axis %d of dy is %lld, of labels %lld", k,
                           (long long)dy->shape.dim[k], (long long)labels->shape.dim[k]);
    }
    return QN_OK;
}

static QnStatus nll_grad_ref(const QnRefArgs *a)
{
    int64_t ignore = ((const Attr *)a->attr)->ignore;
    QnLossRows r = qn_loss_rows(&a->out_type[0]->shape);
    memset(a->out[0], 0, (size_t)(r.n * r.classes) * sizeof(double));
    for (int64_t row = 0; row < r.n; row++) {
        int64_t label = (int64_t)a->in[1][row];
        QN_TRY(qn_loss_check("nll_grad", &r, row, label, ignore));
        if (label != ignore)
            a->out[0][qn_loss_base(&r, row) + label * r.inner] = -a->in[0][row];
    }
    return QN_OK;
}

static void nll_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_node_out(g, qn_nll_rows(g, dy[0], n->in[1], ((const Attr *)n->attr)->ignore), 0);
}

static QnStatus nll_grad_call(const QnNode *n, QnDeviceCall *c)
{
    QnLossRows r = qn_loss_rows(&n->out[0].type.shape);
    *c = (QnDeviceCall){ .kernel = "nll_grad_item", .n_groups = r.n * r.classes };
    qn_device_int(c, r.n);
    qn_device_int(c, r.classes);
    qn_device_int(c, r.inner);
    qn_device_int(c, ((const Attr *)n->attr)->ignore);
    return QN_OK;
}

static const QnSample nll_grad_samples[] = {
    { .in = { { 1, { 6 } }, { 1, { 6 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 4 } },
      .n_in = 2,
      .attr = &(Attr){ { 1, { 5 } }, -100 } },
    { .in = { { 3, { 2, 2, 5 } }, { 3, { 2, 2, 5 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 2 } },
      .n_in = 2,
      .attr = &(Attr){ { 1, { 3 } }, 1 } },
};

QN_API QnValue *qn_nll_grad(QnGraph *g, QnValue *dy, QnValue *labels, QnDim classes, int64_t ignore)
{
    return qn_emit2(g, &qn_op_nll_grad, &(Attr){ { 1, { classes } }, ignore }, dy, labels);
}

const QnOp qn_op_nll_grad = {
    .name = "nll_grad",
    .version = 1,
    .doc = "gradient of nll",
    .n_in = 2,
    QN_ATTRS(Attr, nll_grad_fields),
    .infer = nll_grad_infer,
    .ref = nll_grad_ref,
    .grad = nll_grad_grad,
    .device = QN_TEXT(nll_grad),
    .call = nll_grad_call,
    QN_SAMPLES(nll_grad_samples),
};
#endif

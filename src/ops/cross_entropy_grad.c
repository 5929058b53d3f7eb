/* Gradient of cross_entropy in one pass: dx = dy * (softmax(x) - t), 0 in ignored rows, with t the
 * smoothed target. dy (N,...), x, dx (N,C,...), labels (N,...) i64. Its device text stands in
 * cross_entropy.c. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/util.h"

static const QnAttrField cross_entropy_grad_fields[] = { QN_CROSS_ENTROPY_FIELDS };

static QnStatus cross_entropy_grad_infer(QnInfer *c)
{
    QnShape row;
    QN_TRY(qn_loss_labels(c, "cross_entropy_grad", 1, &row));
    QN_TRY(qn_norm_shape(c, "cross_entropy_grad", 0, &row));
    if (c->in[0]->dtype != c->in[1]->dtype && c->in[0]->dtype != qn_norm_stat(c->in[1]->dtype))
        return qn_fail(QN_EDTYPE, "cross_entropy_grad: dy is %s, x %s; cast one of them",
                       qn_dtype_name(c->in[0]->dtype), qn_dtype_name(c->in[1]->dtype));
    c->out[0] = *c->in[1];
    return QN_OK;
}

static QnCost cross_entropy_grad_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[1]->type);
    return (QnCost){ .flops = 16 * (double)qn_shape_count(&n->in[1]->type.shape),
                     .bytes_read = bytes + (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[2]->type),
                     .bytes_written = bytes };
}

static QnStatus cross_entropy_grad_ref(const QnRefArgs *a)
{
    const QnCrossEntropyAttr *attr = a->attr;
    QnLossRows r = qn_loss_rows(&a->in_type[1]->shape);
    for (int64_t row = 0; row < r.n; row++) {
        const double *x = a->in[1] + qn_loss_base(&r, row);
        double *dx = a->out[0] + qn_loss_base(&r, row), m = -INFINITY, s = 0;
        int64_t label = (int64_t)a->in[2][row];
        QN_TRY(qn_loss_check("cross_entropy_grad", &r, row, label, attr->ignore));
        for (int64_t k = 0; k < r.classes; k++)
            m = fmax(m, x[k * r.inner]);
        for (int64_t k = 0; k < r.classes; k++)
            s += exp(x[k * r.inner] - m);
        for (int64_t k = 0; k < r.classes; k++) {
            double t = attr->smoothing / (double)r.classes;
            t += k == label ? 1 - attr->smoothing : 0;
            double d = a->in[0][row] * (exp(x[k * r.inner] - m) / s - t);
            dx[k * r.inner] = label == attr->ignore ? 0 : d;
        }
    }
    return QN_OK;
}

/* From the cotangent u of dx, with p = softmax(x) and w the rows' weights:
 *   by dy: w * (sum u p - e / C sum u) - (1 - e) u_label;  by x: w * dy * p * (u - sum u p) */
static void cross_entropy_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnCrossEntropyAttr *a = n->attr;
    QnValue *x = n->in[1], *u = dy[0];
    QnDtype t = qn_norm_stat(x->type.dtype);
    QnShape keep = x->type.shape;
    keep.dim[1] = 1;
    QnNode *nll = qn_nll_rows(g, u, n->in[2], a->ignore);
    QnValue *w = qn_node_out(g, nll, 1);
    QnValue *hit = qn_node_out(g, nll, 0); /* -w * u_label */
    QnValue *p = qn_cast(g, qn_softmax(g, x, 1), t), *uf = qn_cast(g, u, t);
    QnValue *d = qn_reshape(g, qn_mul(g, qn_cast(g, n->in[0], t), qn_cast(g, w, t)), &keep);
    QnValue *up = qn_sum(g, qn_mul(g, uf, p), QN_AXES(1), true);
    dx[1] = qn_cast(g, qn_mul(g, qn_mul(g, d, p), qn_sub(g, uf, up)), x->type.dtype);
    QnInts axes = QN_AXES(1);
    QnValue *even =
        qn_mul(g, qn_sum(g, uf, axes, true), qn_norm_inverse_count(g, &x->type.shape, &axes, t));
    QnValue *rest = qn_sub(g, up, qn_mul_scalar(g, even, a->smoothing));
    rest = qn_mul(g, qn_reshape(g, rest, &n->in[0]->type.shape), qn_cast(g, w, t));
    rest = qn_add(g, rest, qn_mul_scalar(g, qn_cast(g, hit, t), 1 - a->smoothing));
    dx[0] = qn_cast(g, rest, n->in[0]->type.dtype);
}

static QnStatus cross_entropy_grad_call(const QnNode *n, QnDeviceCall *c)
{
    if (n->in[0]->type.dtype != QN_DTYPE_F32)
        return qn_fail(QN_EUNSUPPORTED, "cross_entropy_grad: device text takes f32 dy");
    return qn_cross_entropy_call("cross_entropy_grad_row", n, 1, c);
}

static const QnSample cross_entropy_grad_samples[] = {
    { .in = { { 1, { 6 } },
              { 2, { 6, 5 }, .lo = -4, .hi = 4 },
              { 1, { 6 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 4 } },
      .n_in = 3 },
    { .in = { { 1, { 3 } },
              { 2, { 3, 130 }, .lo = -3, .hi = 3 },
              { 1, { 3 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 129 } },
      .n_in = 3,
      .attr = &(QnCrossEntropyAttr){ 0.1, -100 } },
    { .in = { { 3, { 2, 2, 5 } },
              { 4, { 2, 3, 2, 5 } },
              { 3, { 2, 2, 5 }, .dtype = QN_DTYPE_I64, .lo = 0, .hi = 2 } },
      .n_in = 3,
      .attr = &(QnCrossEntropyAttr){ 0.2, 1 } },
};

QN_API QnValue *qn_cross_entropy_grad(QnGraph *g, QnValue *dy, QnValue *x, QnValue *labels,
                                      double smoothing, int64_t ignore)
{
    return qn_emit3(g, &qn_op_cross_entropy_grad, &(QnCrossEntropyAttr){ smoothing, ignore }, dy, x,
                    labels);
}

const QnOp qn_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .version = 1,
    .doc = "gradient of cross_entropy: softmax minus target",
    .n_in = 3,
    .traits = QN_ROWWISE,
    QN_ATTRS(QnCrossEntropyAttr, cross_entropy_grad_fields),
    .infer = cross_entropy_grad_infer,
    .cost = cross_entropy_grad_cost,
    .ref = cross_entropy_grad_ref,
    .grad = cross_entropy_grad_grad,
    .inplace = 2,
    .device = QN_TEXT(cross_entropy),
    .call = cross_entropy_grad_call,
    QN_SAMPLES(cross_entropy_grad_samples),
};
#endif

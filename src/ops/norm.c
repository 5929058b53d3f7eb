#include "ops/norm.h"

#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>

QnDtype qn_norm_stat(QnDtype x)
{
    return x == QN_DTYPE_F16 || x == QN_DTYPE_BF16 ? QN_DTYPE_F32 : x;
}

bool qn_norm_has(const QnInfer *c, int i)
{
    return i < c->n_in && c->in[i]->dtype != QN_DTYPE_COUNT;
}

QnStatus qn_norm_dtypes(QnInfer *c, const char *op, unsigned same)
{
    QnDtype x = c->in[0]->dtype;
    if (!qn_dtype_is_float(x))
        return qn_fail(QN_EDTYPE, "%s: needs floats, not %s", op, qn_dtype_name(x));
    for (int i = 1; i < c->n_in; i++) {
        QnDtype d = c->in[i]->dtype;
        if (!qn_norm_has(c, i) || d == x || (!(same >> i & 1) && d == qn_norm_stat(x)))
            continue;
        return qn_fail(QN_EDTYPE, "%s: operand %d is %s, operand 0 %s; cast one of them", op, i,
                       qn_dtype_name(d), qn_dtype_name(x));
    }
    return QN_OK;
}

QnStatus qn_norm_shape(QnInfer *c, const char *op, int i, const QnShape *want)
{
    const QnShape *s = &c->in[i]->shape;
    bool fits = s->rank == want->rank;
    for (int k = 0; fits && k < s->rank; k++)
        fits = s->dim[k] == want->dim[k] || s->dim[k] < 0 || want->dim[k] < 0;
    if (fits)
        return QN_OK;
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
    return qn_fail(QN_ESHAPE, "%s: operand %d is %s, it must be %s", op, i, qn_shape_text(s, a),
                   qn_shape_text(want, b));
}

QnStatus qn_norm_channels(QnInfer *c, const char *op, int rank, unsigned same)
{
    const QnShape *x = &c->in[0]->shape;
    QN_TRY(qn_norm_dtypes(c, op, same));
    if (x->rank < rank)
        return qn_fail(QN_ESHAPE, "%s: x must be (N,C,%s...), not of rank %d", op,
                       rank > 2 ? "spatial" : "", x->rank);
    QnShape channel = QN_SHAPE(x->dim[1]);
    for (int i = 1; i < c->n_in; i++)
        QN_TRY(qn_norm_shape(c, op, i, &channel));
    return QN_OK;
}

QnNormView qn_norm_view_last(const QnShape *x, int from)
{
    QnNormView v = { .stat = *x, .param = *x };
    for (int i = 0; i < x->rank; i++) {
        (i < from ? &v.param : &v.stat)->dim[i] = 1;
        if (i >= from)
            v.axes.v[v.axes.n++] = i;
    }
    return v;
}

int64_t qn_norm_row_size(const QnShape *x, int from)
{
    int64_t size = 1;
    for (int i = from; i < x->rank; i++)
        size *= x->dim[i];
    return size;
}

QnNormView qn_norm_view_channel(const QnShape *x)
{
    QnNormView v = { .stat = *x };
    for (int i = 0; i < x->rank; i++) {
        if (i == 1)
            continue;
        v.stat.dim[i] = 1;
        v.axes.v[v.axes.n++] = i;
    }
    v.param = v.stat;
    return v;
}

QnValue *qn_norm_affine(QnGraph *g, QnValue *x, QnValue *mean, QnValue *factor, QnValue *bias)
{
    QnNormView v = qn_norm_view_channel(&x->type.shape);
    QnDtype t = factor->type.dtype;
    mean = qn_reshape(g, mean, &v.stat);
    factor = qn_reshape(g, factor, &v.stat);
    bias = qn_reshape(g, qn_cast(g, bias, t), &v.stat);
    QnValue *y = qn_mul(g, qn_sub(g, qn_cast(g, x, t), mean), factor);
    return qn_cast(g, qn_add(g, y, bias), x->type.dtype);
}

QnStatus qn_norm_relu_grad_infer(QnInfer *c, const char *op)
{
    const QnShape *x = &c->in[1]->shape;
    QN_TRY(qn_norm_dtypes(c, op, 1 << 1));
    if (x->rank < 2)
        return qn_fail(QN_ESHAPE, "%s: x must be (N,C,...), not of rank %d", op, x->rank);
    QnShape channel = QN_SHAPE(x->dim[1]);
    for (int i = 2; i < c->n_in; i++)
        QN_TRY(qn_norm_shape(c, op, i, &channel));
    c->out[0] = *c->in[1];
    c->out[1] = c->out[2] = *c->in[5];
    return QN_OK;
}

void qn_norm_relu_grad(QnGraph *g, QnValue *dy, QnValue *y, QnValue *const in[5], QnValue **out)
{
    QnDtype stat = in[1]->type.dtype, param = in[4]->type.dtype, image = in[0]->type.dtype;
    QnValue *on = qn_greater(g, y, qn_scalar_like(g, y, 0));
    QnValue *d = qn_where(g, on, dy, qn_scalar_like(g, dy, 0));
    QnValue *scale = qn_div(g, qn_cast(g, in[3], stat), in[2]); /* the factor is scale * rstd */
    QnNode *n = qn_emit(g, &qn_op_batch_norm_grad, NULL,
                        (QnValue *[]){ d, in[0], in[1], in[2], qn_cast(g, scale, image) }, 5);
    out[0] = qn_node_out(g, n, 0);
    for (int i = 1; i < 3; i++)
        out[i] = qn_cast(g, qn_node_out(g, n, i), param);
}

QnValue *qn_norm_add(QnGraph *g, QnValue *a, QnValue *b)
{
    return !a ? b : !b ? a : qn_add(g, a, b);
}

QnValue *qn_norm_inverse_count(QnGraph *g, const QnShape *x, const QnInts *axes, QnDtype dtype)
{
    QnShape along = { .rank = axes->n };
    for (int i = 0; i < axes->n; i++)
        along.dim[i] = x->dim[axes->v[i]];
    int64_t n = qn_shape_count(&along);
    if (n >= 0)
        return qn_full(g, 1 / (double)n, dtype, &(QnShape){ 0 });
    return qn_reciprocal(g, qn_sum(g, qn_full(g, 1, dtype, &along), QN_ALL_AXES, false));
}

typedef struct Mean {
    QnInts axes;
    QnValue *inverse_count;
} Mean;

static QnValue *mean_of(QnGraph *g, const Mean *m, QnValue *x)
{
    return qn_mul(g, qn_sum(g, x, m->axes, true), m->inverse_count);
}

static QnValue *zeros(QnGraph *g, QnDtype dtype, const QnShape *s)
{
    return qn_expand(g, qn_full(g, 0, dtype, &(QnShape){ 0 }), s);
}

QnNormTerms qn_norm_grad_grad(QnGraph *g, const QnNormView *view, const QnNormTerms *in, QnValue *u,
                              QnValue *v, QnValue *w)
{
    if (qn_value_is_poison(in->x) || qn_value_is_poison(in->rstd))
        return (QnNormTerms){ 0 };
    const QnShape *s = &in->x->type.shape;
    QnDtype t = qn_norm_stat(in->x->type.dtype), tx = in->x->type.dtype;
    Mean m = { view->axes, qn_norm_inverse_count(g, s, &view->axes, t) };
    QnValue *r = qn_reshape(g, qn_cast(g, in->rstd, t), &view->stat);
    QnValue *c = qn_cast(g, in->x, t), *dy = qn_cast(g, in->dy, t);
    if (in->mean)
        c = qn_sub(g, c, qn_reshape(g, qn_cast(g, in->mean, t), &view->stat));
    QnValue *scale = in->scale ? qn_reshape(g, qn_cast(g, in->scale, t), &view->param) : NULL;
    QnValue *xh = qn_mul(g, c, r), *h = scale ? qn_mul(g, dy, scale) : dy;
    u = u ? qn_cast(g, u, t) : zeros(g, t, s);
    QnValue *p = mean_of(g, &m, qn_mul(g, h, xh)), *q = mean_of(g, &m, qn_mul(g, u, xh));
    /* dx = r * a; by h the derivative of <u, dx> is r * b */
    QnValue *a = qn_sub(g, h, qn_mul(g, xh, p)), *b = qn_sub(g, u, qn_mul(g, xh, q));
    if (in->mean) {
        a = qn_sub(g, a, mean_of(g, &m, h));
        b = qn_sub(g, b, mean_of(g, &m, u));
    }
    QnValue *dh = qn_mul(g, r, b);
    QnValue *dxh = qn_neg(g, qn_mul(g, r, qn_add(g, qn_mul(g, u, p), qn_mul(g, h, q))));
    QnValue *ddy = scale ? qn_mul(g, dh, scale) : dh;
    if (v) {
        QnValue *vb = qn_reshape(g, qn_cast(g, v, t), &view->param);
        ddy = qn_add(g, ddy, qn_mul(g, vb, xh));
        dxh = qn_add(g, dxh, qn_mul(g, vb, dy));
    }
    if (w)
        ddy = qn_add(g, ddy, qn_reshape(g, qn_cast(g, w, t), &view->param));
    QnValue *dc = qn_mul(g, dxh, r), *dr = qn_add(g, qn_mul(g, u, a), qn_mul(g, c, dxh));
    QnNormTerms out = { .dy = qn_cast(g, ddy, tx), .x = qn_cast(g, dc, tx) };
    out.rstd = qn_reshape(g, qn_sum_to(g, dr, &view->stat), &in->rstd->type.shape);
    out.rstd = qn_cast(g, out.rstd, in->rstd->type.dtype);
    if (in->mean) {
        QnValue *dm = qn_reshape(g, qn_sum_to(g, dc, &view->stat), &in->mean->type.shape);
        out.mean = qn_cast(g, qn_neg(g, dm), in->mean->type.dtype);
    }
    if (scale) {
        QnValue *ds = qn_sum_to(g, qn_mul(g, dh, dy), &view->param);
        out.scale = qn_cast(g, qn_reshape(g, ds, &in->scale->type.shape), tx);
    }
    return out;
}

QnValue *qn_norm_stat_grad(QnGraph *g, const QnNormView *view, QnValue *x, QnValue *mean,
                           QnValue *rstd, QnValue *dmean, QnValue *drstd)
{
    if ((!dmean && !drstd) || qn_value_is_poison(x) || qn_value_is_poison(rstd))
        return NULL;
    QnDtype t = rstd->type.dtype;
    QnValue *inv = qn_norm_inverse_count(g, &x->type.shape, &view->axes, t), *dx = NULL;
    if (drstd) { /* d rstd / dx = -rstd^3 (x - mean) / n */
        QnValue *r = qn_reshape(g, rstd, &view->stat), *c = qn_cast(g, x, t);
        if (mean)
            c = qn_sub(g, c, qn_reshape(g, mean, &view->stat));
        QnValue *k = qn_mul(g, qn_mul(g, r, qn_mul(g, r, r)), inv);
        k = qn_mul(g, k, qn_reshape(g, drstd, &view->stat));
        dx = qn_neg(g, qn_mul(g, k, c));
    }
    if (dmean)
        dx = qn_norm_add(g, dx, qn_mul(g, qn_reshape(g, dmean, &view->stat), inv));
    return qn_cast(g, qn_expand(g, dx, &x->type.shape), x->type.dtype);
}

QnValue *qn_norm_var_grad(QnGraph *g, const QnNormView *v, QnValue *x, QnValue *mean, QnValue *dvar)
{
    QnDtype t = mean->type.dtype;
    QnValue *inv = qn_norm_inverse_count(g, &x->type.shape, &v->axes, t);
    QnValue *k = qn_div(g, inv, qn_sub(g, qn_scalar_like(g, inv, 1), inv)); /* 1 / (n - 1) */
    QnValue *d = qn_sub(g, qn_cast(g, x, t), qn_reshape(g, mean, &v->stat));
    k = qn_mul(g, qn_reshape(g, dvar, &v->stat), qn_mul_scalar(g, k, 2));
    return qn_cast(g, qn_mul(g, d, k), x->type.dtype);
}

void qn_norm_channel_stats(const double *x, QnRows r, int64_t c, double eps, double to[3])
{
    double m = 0, v = 0, count = (double)(r.outer * r.inner);
    for (int64_t i = 0; i < r.outer * r.inner; i++)
        m += x[(i / r.inner * r.n + c) * r.inner + i % r.inner] / count;
    for (int64_t i = 0; i < r.outer * r.inner; i++)
        v += pow(x[(i / r.inner * r.n + c) * r.inner + i % r.inner] - m, 2);
    to[0] = m;
    to[1] = 1 / sqrt(v / count + eps);
    to[2] = v / fmax(count - 1, 1);
}

void qn_norm_channel_call(QnRows r, const char *whole, const char *share, const char *join,
                          QnDeviceCall *c)
{
    enum { GROUPS = 1024, ELEMENTS = 16 * QN_GROUP }; /* wanted; that a group does at least */
    int64_t count = r.outer * r.inner, most = r.n ? GROUPS / r.n : 1;
    int64_t splits = QN_MAX(QN_MIN(count / ELEMENTS, most), 1);
    *c = (QnDeviceCall){ .kernel = splits > 1 ? share : whole,
                         .n_groups = r.n * splits,
                         .group_size = QN_GROUP,
                         .has_work = true };
    if (splits > 1) {
        c->then = join;
        c->then_groups = c->n_groups;
        c->work_bytes = c->n_groups * 8;
    }
    qn_device_int(c, count ? r.outer : 0);
    qn_device_int(c, r.n);
    qn_device_int(c, count ? r.inner : 1);
    qn_device_int(c, splits);
}

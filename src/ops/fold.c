#include "ops/fold.h"

#include "ops/ops.h"
#include "ops/whole.h"

static unsigned mask_of(const QnNode *n)
{
    unsigned mask = 0;
    const QnReduceAttr *attr = n->attr;
    qn_util_axes_mask(n->op->name, &n->in[0]->type.shape, &attr->axes, &mask);
    return mask;
}

/* One output element from the elements base + index of x. */
typedef struct Row {
    const QnRefArgs *a;
    const QnShape *folded;
    const int64_t *stride;
    int64_t n, base, o;
} Row;

static void fold_real(const Row *r, double *x, QnFoldFn f, double param)
{
    int64_t index[QN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < r->n; i++) {
        x[i] = r->a->in[0][r->base + qn_util_offset(r->folded->rank, index, r->stride)];
        qn_util_next(r->folded, index);
    }
    r->a->out[0][r->o] = f(x, r->n, param);
}

static void fold_whole(const Row *r, QnWholeFn f, int64_t start)
{
    int64_t index[QN_MAX_RANK] = { 0 }, s = start;
    QnDtype dtype = r->a->in_type[0]->dtype;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t at = r->base + qn_util_offset(r->folded->rank, index, r->stride);
        int64_t x = qn_whole_at(r->a, 0, at);
        s = i == 0 && start == QN_FOLD_FIRST ? x : f(dtype, s, x);
        qn_util_next(r->folded, index);
    }
    qn_whole_put(r->a, 0, r->o, s);
}

static QnStatus fold_rows(const QnRefArgs *a, const char *op, QnFoldFn f, double param,
                          QnWholeFn whole, int64_t start)
{
    const QnReduceAttr *attr = a->attr;
    const QnShape *s = &a->in_type[0]->shape;
    unsigned mask;
    QN_TRY(qn_util_axes_mask(op, s, &attr->axes, &mask));
    QnShape kept = qn_util_keep_shape(s, mask), folded = qn_util_keep_shape(s, ~mask);
    int64_t stride[QN_MAX_RANK], at[QN_MAX_RANK] = { 0 };
    int64_t n_out = qn_shape_count(&kept), n = qn_shape_count(&folded);
    if (n_out == 0)
        return QN_OK;
    double *x = qn_alloc_array((size_t)n + 1, sizeof *x);
    if (!x)
        return QN_ENOMEM;
    qn_shape_strides(s, stride);
    for (int64_t o = 0; o < n_out; o++) {
        Row r = { a, &folded, stride, n, qn_util_offset(s->rank, at, stride), o };
        if (whole)
            fold_whole(&r, whole, start);
        else
            fold_real(&r, x, f, param);
        qn_util_next(&kept, at);
    }
    qn_free(x);
    return QN_OK;
}

QnStatus qn_fold_ref(const QnRefArgs *a, const char *op, QnFoldFn f, double param)
{
    return fold_rows(a, op, f, param, NULL, 0);
}

QnStatus qn_fold_whole_ref(const QnRefArgs *a, const char *op, QnWholeFn f, int64_t start)
{
    return fold_rows(a, op, NULL, 0, f, start);
}

QnStatus qn_fold_infer(QnInfer *c, const char *op, bool empty)
{
    const QnReduceAttr *attr = c->attr;
    const QnShape *s = &c->in[0]->shape;
    unsigned mask;
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "%s: needs a floating-point operand, not %s", op,
                       qn_dtype_name(c->in[0]->dtype));
    QN_TRY(qn_util_axes_mask(op, s, &attr->axes, &mask));
    for (int i = 0; i < s->rank && !empty; i++) {
        if (mask >> i & 1 && s->dim[i] == 0)
            return qn_fail(QN_ESHAPE, "%s: axis %d has length 0; nothing to fold", op, i);
    }
    return qn_util_reduce_infer(c, op);
}

QnCost qn_fold_cost(const QnNode *n, double flops)
{
    return (QnCost){ .flops = flops * (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

QnStatus qn_fold_call(const QnNode *n, const char *kernel, QnDeviceCall *c)
{
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: the device text is for floating point", kernel);
    return qn_util_reduce_call(kernel, &n->in[0]->type.shape, mask_of(n), c);
}

QnValue *qn_fold_spread(QnGraph *g, const QnNode *n, QnValue *v)
{
    const QnShape *s = &n->in[0]->type.shape;
    QnShape keep = qn_util_keep_shape(s, mask_of(n));
    return qn_expand(g, qn_reshape(g, v, &keep), s);
}

QnDims qn_fold_dims(const QnNode *n)
{
    const QnShape *s = &n->in[0]->type.shape;
    unsigned mask = mask_of(n);
    QnDims d = { 0 };
    for (int i = 0; i < s->rank; i++) {
        if (mask >> i & 1)
            d.d[d.n++] = s->dim[i];
    }
    return d;
}

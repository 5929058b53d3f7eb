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

QnStatus qn_fold_rows_call(const QnNode *n, const char *kernel, QnDeviceCall *c)
{
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: the device text is for floating point", kernel);
    return qn_util_reduce_call(kernel, &n->in[0]->type.shape, mask_of(n), c);
}

/* The shape as (outer, n, inner, m), n and m folded: lengths of runs of axes that are all folded or
 * all kept. m, the innermost, is 1 where the last axes are kept or n is folded to their end. */
static QnStatus fold_runs(const char *kernel, const QnShape *s, unsigned mask, int64_t run[4])
{
    int at = 0;
    for (int i = 0; i < 4; i++)
        run[i] = 1;
    for (int i = 0; i < s->rank; i++) {
        bool folded = mask >> i & 1;
        if (s->dim[i] == 1)
            continue;
        at += (at & 1) != folded;
        if (at > 3)
            return qn_fail(QN_EUNSUPPORTED, "%s: more than two runs of folded axes", kernel);
        run[at] *= s->dim[i];
    }
    if (run[1] == 0 || run[3] == 0) { /* nothing is folded into each output */
        run[1] = 0;
        run[3] = 1;
    }
    return QN_OK;
}

/* Neighbouring columns of a group: as many as make reads of memory whole, more where columns are
 * short, so that most items have something to fold. */
static int64_t fold_width(int64_t n, int64_t inner, int64_t m)
{
    enum { WHOLE = 32 };
    int64_t w = 1;
    if (m > 1)
        return 1;
    while (w < WHOLE && w < inner)
        w *= 2;
    while (w < QN_GROUP && w < inner && QN_GROUP / w > n)
        w *= 2;
    return w;
}

/* Shares of a column, so that enough groups run and each item folds enough. */
static int64_t fold_splits(int64_t groups, int64_t column, int64_t lanes)
{
    enum { GROUPS = 1024, ELEMENTS = 16 };
    int64_t most = groups ? GROUPS / groups : 1;
    return QN_MAX(QN_MIN(column / (lanes * ELEMENTS), most), 1);
}

QnStatus qn_fold_call(const QnNode *n, const char *fold, const char *last, QnDeviceCall *c)
{
    const QnType *t = &n->in[0]->type;
    int64_t run[4];
    if (!qn_dtype_is_float(t->dtype) && n->op != &qn_op_reduce_all && n->op != &qn_op_reduce_any)
        return qn_fail(QN_EUNSUPPORTED, "%s: the device text is for floating point", fold);
    QN_TRY(fold_runs(fold, &t->shape, mask_of(n), run));
    int64_t width = fold_width(run[1], run[2], run[3]);
    int64_t groups = run[0] * ((run[2] + width - 1) / width);
    int64_t splits = fold_splits(groups, run[1] * run[3], QN_GROUP / width);
    *c = (QnDeviceCall){
        .kernel = fold, .n_groups = groups * splits, .group_size = QN_GROUP, .has_work = true
    };
    if (splits > 1) {
        c->then = last;
        c->then_groups = (run[0] * run[2] + 7) / 8;
        c->work_bytes = run[0] * run[2] * splits * 4;
    }
    for (int i = 0; i < 4; i++)
        qn_device_int(c, run[i]);
    qn_device_int(c, width);
    qn_device_int(c, splits);
    return QN_OK;
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

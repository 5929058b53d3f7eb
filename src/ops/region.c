#include "ops/region.h"

/* A bound of a slice: k from the start, or k back from the end. */
typedef struct Bound {
    bool from_end;
    int64_t k;
} Bound;

static Bound bound(int64_t v, bool plus_one)
{
    if (v == INT64_MIN) /* before the first */
        return (Bound){ false, 0 };
    if (v == INT64_MAX)
        return (Bound){ true, 0 };
    if (v < 0)
        return (Bound){ true, -v - plus_one };
    return (Bound){ false, v + plus_one };
}

static int64_t clip(Bound b, int64_t n)
{
    if (b.from_end)
        return b.k >= n ? 0 : n - b.k;
    return QN_MIN(b.k, n);
}

/* Length of [lo, hi) of an axis of symbolic length n. */
static QnDim symbolic_length(QnGraph *g, Bound lo, Bound hi, QnDim n)
{
    if (lo.from_end == hi.from_end)
        return QN_MAX(lo.from_end ? lo.k - hi.k : hi.k - lo.k, 0);
    if (hi.from_end)
        return qn_dim_sub(g, n, lo.k + hi.k);
    return qn_dim_sub(g, lo.k + hi.k, n);
}

static QnStatus slice_axis(QnGraph *g, const char *op, QnDim n, int64_t start, int64_t end,
                           int64_t step, QnRegion *r, int axis)
{
    if (step == 0 || step == INT64_MIN)
        return qn_fail(QN_EARG, "%s: the step of axis %d is %s", op, axis,
                       step ? "too large" : "zero");
    bool back = step < 0; /* (end, start] is [end + 1, start + 1) */
    Bound lo = back ? bound(end, true) : bound(start, false);
    Bound hi = back ? bound(start, true) : bound(end, false);
    int64_t stride = back ? -step : step;
    QnDim length;
    if (n < 0) {
        length = symbolic_length(g, lo, hi, n);
    } else {
        int64_t first = clip(lo, n), last = clip(hi, n);
        length = QN_MAX(last - first, 0);
        r->start[axis] = length == 0 ? 0 : back ? last - 1 : first;
    }
    if (stride > 1)
        length = length >= 0 ? (length == 0 ? 0 : (length - 1) / stride + 1)
                             : qn_dim_div(g, qn_dim_add(g, length, stride - 1), stride);
    r->shape.dim[axis] = length;
    r->step[axis] = step;
    return QN_OK;
}

QnStatus qn_region_slice(QnGraph *g, const char *op, const QnShape *s, const QnSliceAttr *a,
                         QnRegion *out)
{
    int n = a->axes.n;
    unsigned mask;
    if (a->starts.n != n || a->ends.n != n || (a->steps.n && a->steps.n != n))
        return qn_fail(QN_EARG,
                       "%s: %d axes, %d starts, %d ends, %d steps; give one of each an axis", op, n,
                       a->starts.n, a->ends.n, a->steps.n);
    if (n) /* no axes would mean all */
        QN_TRY(qn_util_axes_mask(op, s, &a->axes, &mask));
    *out = (QnRegion){ .shape = *s };
    for (int i = 0; i < s->rank; i++)
        out->step[i] = 1;
    for (int i = 0; i < n; i++) {
        int axis = 0;
        qn_shape_axis(s, a->axes.v[i], &axis);
        QN_TRY(slice_axis(g, op, s->dim[axis], a->starts.v[i], a->ends.v[i],
                          a->steps.n ? a->steps.v[i] : 1, out, axis));
    }
    return QN_OK;
}

static QnStatus pad_axis(QnGraph *g, const char *op, QnDim n, int64_t before, int64_t after,
                         int mode, int axis, QnDim *out)
{
    if (before <= -(INT64_C(1) << 48) || after <= -(INT64_C(1) << 48) ||
        before >= INT64_C(1) << 48 || after >= INT64_C(1) << 48)
        return qn_fail(QN_EARG, "%s: pads %lld and %lld of axis %d are out of range", op,
                       (long long)before, (long long)after, axis);
    if (mode != QN_PAD_CONSTANT && (before < 0 || after < 0))
        return qn_fail(QN_EARG, "%s: only constant padding may be negative (axis %d)", op, axis);
    int64_t most = n < 0 || mode == QN_PAD_CONSTANT || (!before && !after) ? INT64_MAX
                   : mode == QN_PAD_REFLECT                                ? n - 1
                   : n > 0                                                 ? INT64_MAX
                                                                           : 0;
    if (before > most || after > most)
        return qn_fail(QN_ESHAPE,
                       "%s: pads %lld and %lld of axis %d exceed what length %lld allows", op,
                       (long long)before, (long long)after, axis, (long long)n);
    int64_t sum = before + after;
    if (n >= 0 && sum < 0 && n < -sum)
        return qn_fail(QN_ESHAPE, "%s: %lld elements are cut off axis %d of length %lld", op,
                       (long long)-sum, axis, (long long)n);
    *out = sum >= 0 ? qn_dim_add(g, n, sum) : qn_dim_sub(g, n, -sum);
    return QN_OK;
}

QnStatus qn_region_pad(QnGraph *g, const char *op, const QnShape *s, const QnPadAttr *a, bool back,
                       QnShape *out)
{
    if (a->before.n != s->rank || a->after.n != s->rank)
        return qn_fail(QN_EARG, "%s: %d and %d pads for rank %d; give one an axis", op, a->before.n,
                       a->after.n, s->rank);
    *out = *s;
    for (int i = 0; i < s->rank; i++) {
        int64_t before = a->before.v[i], after = a->after.v[i];
        if (before == INT64_MIN || after == INT64_MIN) /* has no negative */
            return qn_fail(QN_EARG, "%s: pads of axis %d are out of range", op, i);
        if (back) { /* undo, then check what padding that would be */
            QN_TRY(pad_axis(g, op, s->dim[i], -before, -after, QN_PAD_CONSTANT, i, &out->dim[i]));
            QnDim padded;
            QN_TRY(pad_axis(g, op, out->dim[i], before, after, a->mode, i, &padded));
        } else {
            QN_TRY(pad_axis(g, op, s->dim[i], before, after, a->mode, i, &out->dim[i]));
        }
    }
    return QN_OK;
}

int64_t qn_region_pad_index(int64_t i, int64_t before, int64_t n, int mode)
{
    int64_t j = i - before;
    if (j >= 0 && j < n)
        return j;
    switch (mode) {
    case QN_PAD_REFLECT: return j < 0 ? -j : 2 * (n - 1) - j; /* pads are below n */
    case QN_PAD_EDGE: return j < 0 ? 0 : n - 1;
    case QN_PAD_WRAP: return j < 0 ? (j % n + n) % n : j % n;
    default: return -1;
    }
}

void qn_region_copy(const QnShape *s, const int64_t *stride, int64_t offset, const double *x,
                    double *y)
{
    int64_t index[QN_MAX_RANK] = { 0 };
    for (int64_t i = 0, n = qn_shape_count(s); i < n; i++) {
        y[i] = x[offset + qn_util_offset(s->rank, index, stride)];
        qn_util_next(s, index);
    }
}

void qn_region_args(QnDeviceCall *c, int rank, const int64_t *v, int64_t fill)
{
    for (int i = rank; i < QN_MAX_RANK; i++)
        qn_device_int(c, fill);
    for (int i = 0; i < rank; i++)
        qn_device_int(c, v[i]);
}

QnStatus qn_region_call(const char *kernel, const QnNode *n, const QnShape *s,
                        const int64_t *stride, QnDeviceCall *c)
{
    if (!qn_dtype_is_float(n->out[0].type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: the device text is for floating point", kernel);
    *c = (QnDeviceCall){ .kernel = kernel, .n_groups = qn_shape_count(s) };
    qn_device_int(c, c->n_groups);
    qn_region_args(c, s->rank, s->dim, 1);
    qn_region_args(c, s->rank, stride, 0);
    return QN_OK;
}

QnStatus qn_region_index(const char *op, double v, int64_t element, int64_t n, bool wrap,
                         int64_t *out)
{
    double i = wrap && v < 0 ? v + (double)n : v;
    if (!(i >= 0 && i < (double)n))
        return qn_fail(QN_EARG, "%s: index %.0f at element %lld is out of range for length %lld",
                       op, v, (long long)element, (long long)n);
    *out = (int64_t)i;
    return QN_OK;
}

QnStatus qn_region_check_index(const char *op, const QnType *t)
{
    if (t->dtype != QN_DTYPE_I32 && t->dtype != QN_DTYPE_I64)
        return qn_fail(QN_EDTYPE, "%s: indices must be i32 or i64, not %s", op,
                       qn_dtype_name(t->dtype));
    return QN_OK;
}

QnStatus qn_region_replace(const char *op, const QnShape *s, int axis, const QnShape *in,
                           QnShape *out)
{
    QnShape r = { .rank = s->rank - 1 + in->rank };
    if (r.rank > QN_MAX_RANK)
        return qn_fail(QN_ESHAPE, "%s: the result would have rank %d, at most %d", op, r.rank,
                       QN_MAX_RANK);
    int at = 0;
    for (int i = 0; i < axis; i++)
        r.dim[at++] = s->dim[i];
    for (int i = 0; i < in->rank; i++)
        r.dim[at++] = in->dim[i];
    for (int i = axis + 1; i < s->rank; i++)
        r.dim[at++] = s->dim[i];
    *out = r;
    return QN_OK;
}

bool qn_region_may_equal(QnDim a, QnDim b)
{
    return a == b || a < 0 || b < 0;
}

QnStatus qn_region_check_elements(const char *op, const QnShape *x, const QnShape *indices,
                                  int64_t axis)
{
    int a = 0;
    bool fits = x->rank == indices->rank;
    if (!qn_shape_axis(x, axis, &a))
        return qn_fail(QN_EARG, "%s: axis %lld is out of range for rank %d", op, (long long)axis,
                       x->rank);
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == a || indices->dim[i] < 0 || x->dim[i] < 0 || indices->dim[i] <= x->dim[i];
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "%s: indices %s do not fit %s; only axis %d may be longer", op,
                       qn_shape_text(indices, p), qn_shape_text(x, q), a);
    }
    return QN_OK;
}

QnStatus qn_region_tuple_shape(const char *op, const QnShape *x, const QnShape *indices,
                               int64_t batch_dims, QnShape *out)
{
    int b = (int)batch_dims, last = indices->rank - 1;
    bool fits =
        last >= b && x->rank > b && indices->dim[last] >= 1 && indices->dim[last] <= x->rank - b;
    for (int i = 0; fits && i < b; i++)
        fits = qn_region_may_equal(x->dim[i], indices->dim[i]);
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(
            QN_ESHAPE,
            "%s: indices %s do not fit %s with %d batch axes; the last axis holds from 1 "
            "to %d indices",
            op, qn_shape_text(indices, p), qn_shape_text(x, q), b, x->rank - b);
    }
    QnShape r = { .rank = 0 };
    int from = b + (int)indices->dim[last];
    if (last + x->rank - from > QN_MAX_RANK)
        return qn_fail(QN_ESHAPE, "%s: the result would have rank %d, at most %d", op,
                       last + x->rank - from, QN_MAX_RANK);
    for (int i = 0; i < last; i++)
        r.dim[r.rank++] = indices->dim[i];
    for (int i = from; i < x->rank; i++)
        r.dim[r.rank++] = x->dim[i];
    *out = r;
    return QN_OK;
}

QnTuples qn_region_tuples(const QnShape *x, const QnShape *indices, int64_t batch_dims)
{
    int b = (int)batch_dims;
    int64_t stride[QN_MAX_RANK], batches = 1;
    QnTuples t = { .k = indices->dim[indices->rank - 1], .batch_size = 1, .slice = 1 };
    qn_shape_strides(x, stride);
    t.n = qn_shape_count(indices) / t.k;
    for (int i = 0; i < b; i++)
        batches *= x->dim[i];
    for (int i = b; i < x->rank; i++) {
        t.batch_size *= x->dim[i];
        t.stride[i - b] = stride[i];
        t.slice *= i - b < t.k ? 1 : x->dim[i];
    }
    t.per_batch = batches ? t.n / batches : 1;
    t.dim = x->dim + b;
    return t;
}

QnStatus qn_region_tuple(const char *op, const QnTuples *t, const double *indices, int64_t p,
                         int64_t *offset)
{
    int64_t at = p / t->per_batch * t->batch_size, i = 0;
    for (int64_t j = 0; j < t->k; j++) {
        QN_TRY(qn_region_index(op, indices[p * t->k + j], p * t->k + j, t->dim[j], true, &i));
        at += i * t->stride[j];
    }
    *offset = at;
    return QN_OK;
}

#include "ops/util.h"

QnStatus qn_util_axes_mask(const char *op, const QnShape *s, const QnInts *axes, unsigned *mask)
{
    *mask = axes->n ? 0 : (1u << s->rank) - 1;
    for (int i = 0; i < axes->n; i++) {
        int a;
        if (!qn_shape_axis(s, axes->v[i], &a))
            return qn_fail(QN_EARG, "%s: axis %lld is out of range for rank %d", op,
                           (long long)axes->v[i], s->rank);
        if (*mask >> a & 1)
            return qn_fail(QN_EARG, "%s: axis %lld is named twice", op, (long long)axes->v[i]);
        *mask |= 1u << a;
    }
    return QN_OK;
}

QnShape qn_util_keep_shape(const QnShape *s, unsigned mask)
{
    QnShape k = *s;
    for (int i = 0; i < s->rank; i++) {
        if (mask >> i & 1)
            k.dim[i] = 1;
    }
    return k;
}

QnStatus qn_util_reduce_shape(const char *op, const QnShape *s, const QnReduceAttr *a, QnShape *out)
{
    unsigned mask;
    QN_TRY(qn_util_axes_mask(op, s, &a->axes, &mask));
    *out = (QnShape){ 0 };
    for (int i = 0; i < s->rank; i++) {
        if (!(mask >> i & 1))
            out->dim[out->rank++] = s->dim[i];
        else if (a->keepdims)
            out->dim[out->rank++] = 1;
    }
    return QN_OK;
}

QnStatus qn_util_reduce_infer(QnInfer *c, const char *op)
{
    c->out[0].dtype = c->in[0]->dtype;
    return qn_util_reduce_shape(op, &c->in[0]->shape, c->attr, &c->out[0].shape);
}

bool qn_util_next(const QnShape *s, int64_t index[QN_MAX_RANK])
{
    for (int i = s->rank - 1; i >= 0; i--) {
        if (++index[i] < s->dim[i])
            return true;
        index[i] = 0;
    }
    return false;
}

int64_t qn_util_offset(int rank, const int64_t *index, const int64_t *stride)
{
    int64_t o = 0;
    for (int i = 0; i < rank; i++)
        o += index[i] * stride[i];
    return o;
}

void qn_util_spread_strides(const QnShape *s, int rank, int64_t out[QN_MAX_RANK])
{
    int64_t tight[QN_MAX_RANK];
    qn_shape_strides(s, tight);
    memset(out, 0, QN_MAX_RANK * sizeof *out);
    for (int i = 0; i < s->rank; i++)
        out[rank - s->rank + i] = s->dim[i] == 1 ? 0 : tight[i];
}

QnRows qn_util_rows(const QnShape *s, int axis)
{
    QnRows r = { 1, s->dim[axis], 1 };
    for (int i = 0; i < axis; i++)
        r.outer *= s->dim[i];
    for (int i = axis + 1; i < s->rank; i++)
        r.inner *= s->dim[i];
    return r;
}

QnStatus qn_util_axis_infer(QnInfer *c, const char *op, int64_t axis)
{
    int a;
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "%s: needs a floating-point operand, not %s", op,
                       qn_dtype_name(c->in[0]->dtype));
    if (!qn_shape_axis(&c->in[0]->shape, axis, &a))
        return qn_fail(QN_EARG, "%s: axis %lld is out of range for rank %d", op, (long long)axis,
                       c->in[0]->shape.rank);
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void rows_call(const char *kernel, QnRows r, QnDeviceCall *c)
{
    *c = (QnDeviceCall){ .kernel = kernel, .n_groups = r.outer * r.inner, .group_size = QN_GROUP };
    qn_device_int(c, r.n);
    qn_device_int(c, r.inner);
}

QnStatus qn_util_rows_call(const char *kernel, const QnShape *s, int64_t axis, QnDeviceCall *c)
{
    int a;
    if (!qn_shape_axis(s, axis, &a))
        return qn_fail(QN_EARG, "%s: axis %lld is out of range", kernel, (long long)axis);
    rows_call(kernel, qn_util_rows(s, a), c);
    return QN_OK;
}

QnStatus qn_util_reduce_call(const char *kernel, const QnShape *s, unsigned mask, QnDeviceCall *c)
{
    QnRows r = { 1, 1, 1 };
    bool folded = false, after = false;
    for (int i = 0; i < s->rank; i++) {
        bool fold = mask >> i & 1;
        if (s->dim[i] == 1)
            continue;
        if (fold && after)
            return qn_fail(QN_EUNSUPPORTED, "%s: folded axes are not neighbours", kernel);
        folded |= fold;
        after |= folded && !fold;
        *(fold ? &r.n : after ? &r.inner : &r.outer) *= s->dim[i];
    }
    rows_call(kernel, r, c);
    return QN_OK;
}

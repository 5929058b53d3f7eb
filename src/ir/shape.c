#include "ir/shape.h"

#include <stdio.h>
#include <string.h>

bool qn_shape_is_equal(const QnShape *a, const QnShape *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(QnDim));
}

bool qn_shape_is_concrete(const QnShape *s)
{
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return false;
    }
    return true;
}

int64_t qn_shape_count(const QnShape *s)
{
    int64_t n = 1;
    bool zero = false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return -1;
        zero |= s->dim[i] == 0;
    }
    for (int i = 0; i < s->rank && !zero; i++) {
        if (qn_mul_overflow(n, s->dim[i], &n))
            return -1;
    }
    return zero ? 0 : n;
}

int64_t qn_type_bytes(const QnType *t)
{
    int64_t n = qn_shape_count(&t->shape);
    if (n < 0 || qn_mul_overflow(n, (int64_t)qn_dtype_bytes(t->dtype), &n))
        return -1;
    return n;
}

bool qn_type_is_equal(const QnType *a, const QnType *b)
{
    return a->dtype == b->dtype && a->layout == b->layout &&
           qn_shape_is_equal(&a->shape, &b->shape);
}

void qn_shape_strides(const QnShape *s, int64_t stride[QN_MAX_RANK])
{
    int64_t n = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= s->dim[i];
    }
}

void qn_type_order(const QnType *t, int axis[QN_MAX_RANK])
{
    int rank = t->shape.rank, n = 0;
    bool last = t->layout == QN_LAYOUT_CHANNELS_LAST && rank >= 3;
    for (int i = 0; i < rank; i++) {
        if (!(last && i == 1))
            axis[n++] = i;
    }
    if (last)
        axis[n] = 1;
}

void qn_type_strides(const QnType *t, int64_t stride[QN_MAX_RANK])
{
    int axis[QN_MAX_RANK];
    int64_t n = 1;
    qn_type_order(t, axis);
    for (int i = t->shape.rank - 1; i >= 0; i--) {
        stride[axis[i]] = n;
        n *= t->shape.dim[axis[i]];
    }
}

bool qn_shape_axis(const QnShape *s, int64_t axis, int *out)
{
    if (axis < -s->rank || axis >= s->rank)
        return false;
    *out = (int)(axis < 0 ? axis + s->rank : axis);
    return true;
}

QnShape qn_shape_make(int rank, const QnDim *dims)
{
    QnShape s = { .rank = QN_MAX(QN_MIN(rank, QN_MAX_RANK), 0) };
    memcpy(s.dim, dims, (size_t)s.rank * sizeof(QnDim));
    return s;
}

const char *qn_shape_text(const QnShape *s, char buf[QN_TYPE_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(buf, QN_TYPE_TEXT_BYTES, "[");
    for (int i = 0; i < s->rank; i++) {
        const char *comma = i ? "," : "";
        int n = s->dim[i] < 0 ? snprintf(buf + used, QN_TYPE_TEXT_BYTES - used, "%s?", comma)
                              : snprintf(buf + used, QN_TYPE_TEXT_BYTES - used, "%s%lld", comma,
                                         (long long)s->dim[i]);
        used += (size_t)n;
    }
    snprintf(buf + used, QN_TYPE_TEXT_BYTES - used, "]");
    return buf;
}

const char *qn_type_text(const QnType *t, char buf[QN_TYPE_TEXT_BYTES])
{
    char shape[QN_TYPE_TEXT_BYTES];
    snprintf(buf, QN_TYPE_TEXT_BYTES, "%s%s%s", qn_dtype_name(t->dtype),
             t->layout == QN_LAYOUT_CHANNELS_LAST ? "@nhwc" : "", qn_shape_text(&t->shape, shape));
    return buf;
}

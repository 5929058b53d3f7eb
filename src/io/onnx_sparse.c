/* SparseTensorProto: elements and where they stand, as a dense tensor. */
#include "base/compiler.h"
#include "base/mem.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_read.h"

#include <string.h>

enum { GROWTH_MOST = 1024, GROWTH_FREE = 16 << 20 };

QnStatus qn_onnx_may_grow(QnOnnxReader *r, const char *what, uint64_t bytes)
{
    uint64_t files = r->bytes, sum = 0, most;
    for (int64_t i = 0; r->owner && i < r->owner->n_mapped; i++)
        files += r->owner->mapped[i].bytes; /* files lie in an address space: no overflow */
    if (qn_mul_overflow(files, (uint64_t)GROWTH_MOST, &most) ||
        qn_add_overflow(most, (uint64_t)GROWTH_FREE, &most))
        most = UINT64_MAX;
    if (qn_add_overflow(bytes, r->owner ? r->owner->grown_bytes : 0, &sum) || sum > most)
        return qn_fail(QN_EFORMAT,
                       "%s: tensor '%s' would take %llu bytes, far more than the file holds",
                       r->file, what, (unsigned long long)bytes);
    if (r->owner)
        r->owner->grown_bytes = sum;
    return QN_OK;
}

static QnStatus dense_shape(const QnOnnxReader *r, const Onnx__SparseTensorProto *p,
                            const char *what, QnShape *s)
{
    int64_t product = 1;
    if (p->n_dims > QN_MAX_RANK)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: sparse tensor '%s' has %zu dims, at most %d are supported", r->file,
                       what, p->n_dims, QN_MAX_RANK);
    *s = (QnShape){ .rank = (int)p->n_dims };
    for (int i = 0; i < s->rank; i++) {
        s->dim[i] = p->dims[i];
        if (p->dims[i] < 0)
            return qn_fail(QN_EFORMAT, "%s: sparse tensor '%s': dim %d is %lld", r->file, what, i,
                           (long long)p->dims[i]);
        if (qn_mul_overflow(product, QN_MAX(p->dims[i], 1), &product) || product > INT64_MAX / 16)
            return qn_fail(QN_EFORMAT, "%s: sparse tensor '%s': the product of its dims overflows",
                           r->file, what);
    }
    return QN_OK;
}

/* Where value i stands, counted through all dims; -1: nowhere. */
static int64_t place(const QnShape *s, const QnTensor *indices, int64_t i)
{
    const int64_t *v = indices->data;
    if (indices->type.shape.rank == 1)
        return v[i] >= 0 && v[i] < qn_shape_count(s) ? v[i] : -1;
    int64_t at = 0;
    for (int k = 0; k < s->rank; k++) {
        int64_t x = v[i * s->rank + k];
        if (x < 0 || x >= s->dim[k])
            return -1;
        at = at * s->dim[k] + x;
    }
    return at;
}

static QnStatus check_parts(const QnOnnxReader *r, const char *what, const QnShape *dense,
                            const QnTensor *values, const QnTensor *indices)
{
    const QnShape *v = &values->type.shape, *i = &indices->type.shape;
    if (v->rank != 1)
        return qn_fail(QN_EFORMAT, "%s: sparse tensor '%s': its values are of rank %d, not 1",
                       r->file, what, v->rank);
    if (indices->text || indices->type.dtype != QN_DTYPE_I64)
        return qn_fail(QN_EFORMAT, "%s: sparse tensor '%s': its indices must be i64", r->file,
                       what);
    if (i->rank < 1 || i->rank > 2 || i->dim[0] != v->dim[0] ||
        (i->rank == 2 && i->dim[1] != dense->rank))
        return qn_fail(QN_EFORMAT,
                       "%s: sparse tensor '%s': indices for its %lld values must be [%lld] or "
                       "[%lld, %d]",
                       r->file, what, (long long)v->dim[0], (long long)v->dim[0],
                       (long long)v->dim[0], dense->rank);
    return QN_OK;
}

static QnStatus scatter(const QnOnnxReader *r, const char *what, const QnTensor *values,
                        const QnTensor *indices, size_t size, QnTensor *out)
{
    const char *from = values->text ? (const char *)values->text : values->data;
    char *to = (char *)(uintptr_t)(out->text ? (const void *)out->text : out->data);
    int64_t last = -1;
    for (int64_t i = 0; i < values->type.shape.dim[0]; i++) {
        int64_t at = place(&out->type.shape, indices, i);
        if (at < 0)
            return qn_fail(QN_EFORMAT, "%s: sparse tensor '%s': index %lld lies outside its dims",
                           r->file, what, (long long)i);
        if (at <= last)
            return qn_fail(QN_EFORMAT,
                           "%s: sparse tensor '%s': index %lld does not come after the one before",
                           r->file, what, (long long)i);
        memcpy(to + (size_t)at * size, from + (size_t)i * size, size);
        last = at;
    }
    return QN_OK;
}

QnStatus qn_onnx_read_sparse(QnOnnxReader *r, const Onnx__SparseTensorProto *p, const char *what,
                             const QnTensor **out)
{
    const QnTensor *values, *indices;
    QnTensor *t = qn_arena_alloc(r->arena, sizeof *t);
    if (!t)
        return QN_ENOMEM;
    if (!p->values || !p->indices)
        return qn_fail(QN_EFORMAT, "%s: sparse tensor '%s' has no %s", r->file, what,
                       p->values ? "indices" : "values");
    QN_TRY(dense_shape(r, p, what, &t->type.shape));
    QN_TRY(qn_onnx_read_tensor(r, p->values, what, &values));
    QN_TRY(qn_onnx_read_tensor(r, p->indices, what, &indices));
    QN_TRY(check_parts(r, what, &t->type.shape, values, indices));
    t->type.dtype = values->type.dtype;
    size_t size = values->text ? sizeof(QnText) : qn_dtype_bytes(t->type.dtype);
    size_t count = (size_t)qn_shape_count(&t->type.shape);
    QN_TRY(qn_onnx_may_grow(r, what, (uint64_t)count * size));
    void *dense = qn_arena_array(r->arena, QN_MAX(count, 1), size);
    if (!dense)
        return QN_ENOMEM;
    if (values->text) {
        QnText *text = dense;
        for (size_t i = 0; i < count; i++)
            text[i].s = "";
        t->text = text;
    } else {
        t->data = dense;
    }
    *out = t;
    return scatter(r, what, values, indices, size, t);
}
#endif

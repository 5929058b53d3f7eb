/* Unique: what differs among the elements, or among the slices along an axis. Its results' shapes
 * depend on the elements, so that it is computed while a model is imported. */
#include "ir/dtype.h"
#include "onnx/mapping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* x as (outer, n, inner): slice i is x[:, i, :]. Without an axis, n elements. */
typedef struct Slices {
    const QnTensor *x;
    const double *number; /* NULL: i64, u64 and strings, which doubles do not hold */
    int64_t outer, n, inner;
} Slices;

typedef struct Ranked { /* qsort has no context */
    const Slices *of;
    int64_t i;
} Ranked;

static int compare_text(QnText a, QnText b)
{
    size_t both = QN_MIN(a.n, b.n);
    int c = both ? memcmp(a.s, b.s, both) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare_elements(const Slices *s, int64_t i, int64_t k)
{
    if (s->number) { /* NaN is one value, after all others */
        double a = s->number[i], b = s->number[k];
        return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b);
    }
    if (s->x->text)
        return compare_text(s->x->text[i], s->x->text[k]);
    if (s->x->type.dtype == QN_DTYPE_U64) {
        uint64_t a = ((const uint64_t *)s->x->data)[i], b = ((const uint64_t *)s->x->data)[k];
        return (a > b) - (a < b);
    }
    int64_t a = ((const int64_t *)s->x->data)[i], b = ((const int64_t *)s->x->data)[k];
    return (a > b) - (a < b);
}

static int compare_slices(const Slices *s, int64_t i, int64_t k)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t e = 0; e < s->inner; e++) {
            int c =
                compare_elements(s, (o * s->n + i) * s->inner + e, (o * s->n + k) * s->inner + e);
            if (c)
                return c;
        }
    return 0;
}

static int by_slice(const void *a, const void *b)
{
    const Ranked *p = a, *q = b;
    int c = compare_slices(p->of, p->i, q->i);
    return c ? c : (p->i > q->i) - (p->i < q->i);
}

/* Groups of equal slices: in order of value, or of their first. */
typedef struct Groups {
    int64_t n;
    int64_t *first, *count, *of; /* of[i]: the group of slice i */
} Groups;

static QnStatus group(QnOnnxNode *n, const Slices *s, bool sorted, Groups *out)
{
    Ranked *order = qn_arena_array(n->arena, (size_t)s->n + 1, sizeof *order);
    int64_t *place = qn_arena_array(n->arena, (size_t)s->n + 1, sizeof *place);
    out->first = qn_arena_array(n->arena, (size_t)s->n + 1, sizeof *out->first);
    out->count = qn_arena_array(n->arena, (size_t)s->n + 1, sizeof *out->count);
    out->of = qn_arena_array(n->arena, (size_t)s->n + 1, sizeof *out->of);
    if (!order || !place || !out->first || !out->count || !out->of)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++)
        order[i] = (Ranked){ s, i };
    qsort(order, (size_t)s->n, sizeof *order, by_slice);
    for (int64_t k = 0, last = -1; k < s->n; k++) { /* place[i]: the first of i's group */
        if (last < 0 || compare_slices(s, last, order[k].i)) {
            last = order[k].i;
            if (sorted)
                out->first[out->n++] = last;
        }
        place[order[k].i] = last;
    }
    for (int64_t i = 0; i < s->n && !sorted; i++)
        if (place[i] == i)
            out->first[out->n++] = i;
    int64_t *number = qn_arena_array(n->arena, (size_t)s->n + 1, sizeof *number);
    if (!number)
        return QN_ENOMEM;
    for (int64_t k = 0; k < out->n; k++)
        number[out->first[k]] = k;
    for (int64_t i = 0; i < s->n; i++) {
        out->of[i] = number[place[i]];
        out->count[out->of[i]]++;
    }
    return QN_OK;
}

static QnStatus give_slices(QnOnnxNode *n, const Slices *s, const Groups *g, const QnShape *shape)
{
    const QnTensor *x = s->x;
    QnTensor *y = x->text ? qn_onnx_tensor_text(n, shape) : qn_onnx_tensor(n, x->type.dtype, shape);
    if (!y)
        return QN_ENOMEM;
    size_t size = x->text ? sizeof(QnText) : qn_dtype_bytes(x->type.dtype);
    const char *from = x->text ? (const char *)x->text : x->data;
    char *to = x->text ? (char *)y->text : (char *)y->data;
    size_t row = (size_t)s->inner * size;
    for (int64_t o = 0; o < s->outer && row; o++)
        for (int64_t k = 0; k < g->n; k++, to += row)
            memcpy(to, from + (size_t)(o * s->n + g->first[k]) * row, row);
    return qn_onnx_out_known(n, 0, y);
}

static QnStatus give_counts(QnOnnxNode *n, int i, const int64_t *v, int64_t count)
{
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_I64, &QN_SHAPE(count));
    if (t && count)
        memcpy((void *)t->data, v, (size_t)count * sizeof *v);
    return qn_onnx_out_known(n, i, t);
}

static QnStatus import_unique(QnOnnxNode *n)
{
    Groups g = { 0 };
    int axis;
    QN_ONNX_NEED(n, 0);
    const QnTensor *x = n->in[0]->known;
    QnShape shape = x->type.shape;
    int64_t count = qn_shape_count(&shape);
    Slices s = { .x = x, .outer = 1, .n = count, .inner = 1 };
    if (qn_onnx_attr(n, "axis")) {
        QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", 0), shape.rank, &axis));
        s.n = shape.dim[axis];
        for (int i = 0; i < shape.rank; i++)
            *(i < axis ? &s.outer : &s.inner) *= i == axis ? 1 : shape.dim[i];
    } else {
        shape = QN_SHAPE(count);
        axis = 0;
    }
    if (!x->text && !qn_dtype_is_wide(x->type.dtype)) {
        double *v = qn_arena_array(n->arena, (size_t)count + 1, sizeof *v);
        if (!v)
            return QN_ENOMEM;
        qn_dtype_to_f64(x->type.dtype, x->data, v, count);
        s.number = v;
    }
    QN_TRY(group(n, &s, qn_onnx_int(n, "sorted", 1) != 0, &g));
    shape.dim[axis] = g.n;
    QN_TRY(give_slices(n, &s, &g, &shape));
    QN_TRY(give_counts(n, 1, g.first, g.n));
    QN_TRY(give_counts(n, 2, g.of, s.n));
    return give_counts(n, 3, g.count, g.n);
}

const QnOnnxMap qn_onnx_unique[] = {
    { "Unique", NULL, 11, 0, import_unique, NULL },
    { 0 },
};

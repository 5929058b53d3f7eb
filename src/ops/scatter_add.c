/* The adjoint of gather: y = x, then y[.., index j, ..] += u[.., j, ..] for j in order, so that the
 * sum of equal indices has one order. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x, y: (outer, n, inner), i: (m), u: (outer, m, inner). First y = x, and for each index where the
 * same one comes next (work[j], -1: nowhere) and whether it came before (work[m + j]); then a work
 * group for each index that is the first of its kind adds all of them, one after the other: no
 * atomics, and one order. What is out of range adds nothing. */
#define SCATTER_ADD(name, INDEX)                                                                   \
    QN_KERNEL name##_link(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const INDEX *i,    \
                          QN_GLOBAL const QN_T *u, QN_GLOBAL qn_long *work, qn_long count,         \
                          qn_long n, qn_long inner, qn_long m, qn_long outer)                      \
    {                                                                                              \
        qn_long at = qn_item();                                                                    \
        if (at < count)                                                                            \
            qn_store(y, at, qn_load(x, at));                                                       \
        if (at >= m)                                                                               \
            return;                                                                                \
        qn_long row = i[at] < 0 ? i[at] + n : i[at], next = at + 1, last = at - 1;                 \
        while (next < m && (i[next] < 0 ? i[next] + n : i[next]) != row)                           \
            next++;                                                                                \
        while (last >= 0 && (i[last] < 0 ? i[last] + n : i[last]) != row)                          \
            last--;                                                                                \
        work[at] = next < m ? next : -1;                                                           \
        work[m + at] = last >= 0 || row < 0 || row >= n;                                           \
    }                                                                                              \
    QN_KERNEL name##_add(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const INDEX *i,     \
                         QN_GLOBAL const QN_T *u, QN_GLOBAL qn_long *work, qn_long count,          \
                         qn_long n, qn_long inner, qn_long m, qn_long outer)                       \
    {                                                                                              \
        qn_long first = qn_group();                                                                \
        if (work[m + first] != 0)                                                                  \
            return;                                                                                \
        qn_long row = i[first] < 0 ? i[first] + n : i[first];                                      \
        for (qn_long c = qn_lid(); c < outer * inner; c += qn_group_size()) {                      \
            qn_long o = qn_div(c, inner), k = c - o * inner, at = (o * n + row) * inner + k;       \
            float s = qn_load(y, at);                                                              \
            for (qn_long j = first; j >= 0; j = work[j])                                           \
                s += qn_load(u, (o * m + j) * inner + k);                                          \
            qn_store(y, at, s);                                                                    \
        }                                                                                          \
    }

SCATTER_ADD(scatter_add_i64, qn_long)
SCATTER_ADD(scatter_add_i32, int)
#endif

#ifdef QN_HOST
#include "ops/region.h"
#include "ops/whole.h"

typedef struct Attr {
    int64_t axis;
} Attr;

static const QnAttrField scatter_add_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which indices pick" },
};

static QnStatus scatter_add_infer(QnInfer *c)
{
    int64_t asked = ((const Attr *)c->attr)->axis;
    const QnShape *s = &c->in[0]->shape, *u = &c->in[2]->shape;
    QnShape want;
    int axis;
    QN_TRY(qn_region_check_index("scatter_add", c->in[1]));
    if (c->in[0]->dtype == QN_DTYPE_BOOL || c->in[0]->dtype != c->in[2]->dtype)
        return qn_fail(QN_EDTYPE, "scatter_add: cannot add %s to %s; both must be one number type",
                       qn_dtype_name(c->in[2]->dtype), qn_dtype_name(c->in[0]->dtype));
    if (!qn_shape_axis(s, asked, &axis))
        return qn_fail(QN_EARG, "scatter_add: axis %lld is out of range for rank %d",
                       (long long)asked, s->rank);
    QN_TRY(qn_region_replace("scatter_add", s, axis, &c->in[1]->shape, &want));
    bool fits = want.rank == u->rank;
    for (int i = 0; fits && i < u->rank; i++)
        fits = qn_region_may_equal(want.dim[i], u->dim[i]);
    if (!fits) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "scatter_add: updates are %s, must be %s", qn_shape_text(u, a),
                       qn_shape_text(&want, b));
    }
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnCost scatter_add_cost(const QnNode *n)
{
    double x = (double)qn_type_bytes(&n->in[0]->type), u = (double)qn_type_bytes(&n->in[2]->type);
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[2]->type.shape),
                     .bytes_read = x + u + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = x };
}

/* y[at] += u[from] */
static void scatter_add_to(const QnRefArgs *a, int64_t at, int64_t from)
{
    double *y = &a->out[0][at];
    if (qn_whole_is(a))
        qn_whole_put(a, 0, at,
                     qn_whole_add(qn_dtype_whole_of(a->in_type[0]->dtype, *y, a->i64_bits),
                                  qn_whole_at(a, 2, from)));
    else
        *y += a->in[2][from];
}

static QnStatus scatter_add_ref(const QnRefArgs *a)
{
    int axis = 0;
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    const QnShape *s = &a->in_type[0]->shape;
    qn_shape_axis(s, ((const Attr *)a->attr)->axis, &axis);
    QnRows r = qn_util_rows(s, axis);
    int64_t m = qn_shape_count(&a->in_type[1]->shape);
    memcpy(a->out[0], a->in[0], (size_t)qn_shape_count(s) * sizeof(double));
    for (int64_t j = 0; j < m; j++) {
        int64_t to;
        QN_TRY(qn_region_index("scatter_add", a->in[1][j], j, r.n, true, &to));
        for (int64_t o = 0; o < r.outer; o++) {
            for (int64_t k = 0; k < r.inner; k++)
                scatter_add_to(a, (o * r.n + to) * r.inner + k, (o * m + j) * r.inner + k);
        }
    }
    return QN_OK;
}

static void scatter_add_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = dy[0];
    dx[2] = qn_gather(g, dy[0], n->in[1], ((const Attr *)n->attr)->axis);
}

static QnStatus scatter_add_call(const QnNode *n, QnDeviceCall *c)
{
    int axis = 0;
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "scatter_add: the device text is for floating point");
    qn_shape_axis(&n->in[0]->type.shape, ((const Attr *)n->attr)->axis, &axis);
    QnRows r = qn_util_rows(&n->in[0]->type.shape, axis);
    bool wide = n->in[1]->type.dtype == QN_DTYPE_I64;
    int64_t count = qn_shape_count(&n->out[0].type.shape);
    int64_t m = count ? qn_shape_count(&n->in[1]->type.shape) : 0;
    *c = (QnDeviceCall){ .kernel = wide ? "scatter_add_i64_link" : "scatter_add_i32_link",
                         .n_groups = (QN_MAX(count, m) + QN_GROUP - 1) / QN_GROUP,
                         .group_size = QN_GROUP,
                         .then = wide ? "scatter_add_i64_add" : "scatter_add_i32_add",
                         .then_groups = m,
                         .has_work = true,
                         .work_bytes = 2 * m * 8 };
    qn_device_int(c, count);
    qn_device_int(c, r.n);
    qn_device_int(c, r.inner);
    qn_device_int(c, m);
    qn_device_int(c, r.outer);
    return QN_OK;
}

static const QnSample scatter_add_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 1, { 9 }, QN_DTYPE_I64, -4, 3 }, { 2, { 9, 7 } } }, .n_in = 3 },
    { .in = { { 3, { 2, 5, 3 } }, { 2, { 2, 65 }, QN_DTYPE_I32, 0, 4 }, { 4, { 2, 2, 65, 3 } } },
      .n_in = 3,
      .attr = &(Attr){ -2 } },
};

QN_API QnValue *qn_scatter_add(QnGraph *g, QnValue *x, QnValue *indices, QnValue *u, int64_t axis)
{
    return qn_emit3(g, &qn_op_scatter_add, &(Attr){ axis }, x, indices, u);
}

const QnOp qn_op_scatter_add = {
    .name = "scatter_add",
    .version = 1,
    .doc = "slices added where indices say, along an axis",
    .n_in = 3,
    .traits = QN_WHOLE,
    .index_in = 1u << 1,
    QN_ATTRS(Attr, scatter_add_fields),
    .infer = scatter_add_infer,
    .cost = scatter_add_cost,
    .ref = scatter_add_ref,
    .grad = scatter_add_grad,
    .inplace = 1,
    .device = QN_TEXT(scatter_add),
    .call = scatter_add_call,
    QN_SAMPLES(scatter_add_samples),
};
#endif

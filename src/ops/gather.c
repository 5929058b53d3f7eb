/* Slices of x picked along an axis by indices: y[.., j, ..] = x[.., index j, ..]. Negative indices
 * count from the end; an index out of range is an error of the run. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x: (outer, n, inner), i: (m), y: (outer, m, inner). An index out of range gives NaN here. */
QN_SCALAR float gather_pick(QN_GLOBAL const QN_T *x, qn_long at, qn_long j, qn_long n,
                            qn_long inner, qn_long m)
{
    qn_long k = at % inner, o = at / inner / m;
    j = j < 0 ? j + n : j;
    return j >= 0 && j < n ? qn_load(x, (o * n + j) * inner + k) : QN_INF - QN_INF;
}

QN_KERNEL gather_i64(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const qn_long *i,
                     qn_long count, qn_long n, qn_long inner, qn_long m)
{
    qn_long at = qn_item();
    if (at < count)
        qn_store(y, at, gather_pick(x, at, i[at / inner % m], n, inner, m));
}

QN_KERNEL gather_i32(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const int *i,
                     qn_long count, qn_long n, qn_long inner, qn_long m)
{
    qn_long at = qn_item();
    if (at < count)
        qn_store(y, at, gather_pick(x, at, i[at / inner % m], n, inner, m));
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t axis;
} Attr;

static const QnAttrField gather_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which indices pick" },
};

static QnStatus gather_infer(QnInfer *c)
{
    int64_t asked = ((const Attr *)c->attr)->axis;
    const QnShape *s = &c->in[0]->shape;
    int axis;
    QN_TRY(qn_region_check_index("gather", c->in[1]));
    if (!qn_shape_axis(s, asked, &axis))
        return qn_fail(QN_EARG, "gather: axis %lld is out of range for rank %d", (long long)asked,
                       s->rank);
    c->out[0].dtype = c->in[0]->dtype;
    return qn_region_replace("gather", s, axis, &c->in[1]->shape, &c->out[0].shape);
}

static QnCost gather_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->out[0].type);
    double all = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .bytes_read = fmin(bytes, all) + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = bytes };
}

static QnStatus gather_ref(const QnRefArgs *a)
{
    int axis = 0;
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    qn_shape_axis(&a->in_type[0]->shape, ((const Attr *)a->attr)->axis, &axis);
    QnRows r = qn_util_rows(&a->in_type[0]->shape, axis);
    int64_t m = qn_shape_count(&a->in_type[1]->shape);
    for (int64_t j = 0; j < m; j++) {
        int64_t from;
        QN_TRY(qn_region_index("gather", a->in[1][j], j, r.n, true, &from));
        for (int64_t o = 0; o < r.outer; o++)
            memcpy(a->out[0] + (o * m + j) * r.inner, a->in[0] + (o * r.n + from) * r.inner,
                   (size_t)r.inner * sizeof(double));
    }
    return QN_OK;
}

static void gather_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *t = &n->in[0]->type;
    QnValue *zeros = qn_full(g, 0, t->dtype, &t->shape);
    dx[0] = qn_scatter_add(g, zeros, n->in[1], dy[0], ((const Attr *)n->attr)->axis);
}

static QnStatus gather_call(const QnNode *n, QnDeviceCall *c)
{
    int axis = 0;
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "gather: the device text is for floating point");
    qn_shape_axis(&n->in[0]->type.shape, ((const Attr *)n->attr)->axis, &axis);
    QnRows r = qn_util_rows(&n->in[0]->type.shape, axis);
    bool wide = n->in[1]->type.dtype == QN_DTYPE_I64;
    *c = (QnDeviceCall){ .kernel = wide ? "gather_i64" : "gather_i32",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    qn_device_int(c, r.n);
    qn_device_int(c, r.inner);
    qn_device_int(c, qn_shape_count(&n->in[1]->type.shape));
    return QN_OK;
}

static const QnSample gather_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 1, { 5 }, QN_DTYPE_I64, -4, 3 } }, .n_in = 2 },
    { .in = { { 3, { 2, 130, 3 } }, { 2, { 2, 3 }, QN_DTYPE_I32, 0, 129 } },
      .n_in = 2,
      .attr = &(Attr){ -2 } },
    { .in = { { 2, { 3, 4 } }, { 0, { 0 }, QN_DTYPE_I64, -4, 3 } },
      .n_in = 2,
      .attr = &(Attr){ 1 } },
};

QN_API QnValue *qn_gather(QnGraph *g, QnValue *x, QnValue *indices, int64_t axis)
{
    return qn_emit2(g, &qn_op_gather, &(Attr){ axis }, x, indices);
}

static const QnOnnxMap gather_onnx[] = { { .name = "Gather", .since = 1 } };

const QnOp qn_op_gather = {
    .name = "gather",
    .version = 1,
    .doc = "slices picked along an axis by indices",
    .n_in = 2,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, gather_fields),
    .infer = gather_infer,
    .cost = gather_cost,
    .ref = gather_ref,
    .grad = gather_grad,
    .index_in = 2,
    .device = QN_TEXT(gather),
    .call = gather_call,
    QN_ONNX(gather_onnx),
    QN_SAMPLES(gather_samples),
};
#endif

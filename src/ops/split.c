/* A tensor cut along an axis into pieces of given sizes, or into equal ones. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x: (outer, n0 + n1 + …, inner), y_i: (outer, n_i, inner). m_i = n_i * inner; element k of a row
 * of x goes to output i, at l. */
#define SPLIT_ITEM(m)                                                                              \
    qn_long at = qn_item();                                                                        \
    if (at >= count)                                                                               \
        return;                                                                                    \
    qn_long o = at / (m), k = at % (m)

QN_KERNEL split_2(QN_GLOBAL QN_T *y0, QN_GLOBAL QN_T *y1, QN_GLOBAL const QN_T *x, qn_long count,
                  qn_long m0, qn_long m1)
{
    SPLIT_ITEM(m0 + m1);
    if (k < m0)
        qn_store(y0, o * m0 + k, qn_load(x, at));
    else
        qn_store(y1, o * m1 + k - m0, qn_load(x, at));
}

QN_KERNEL split_3(QN_GLOBAL QN_T *y0, QN_GLOBAL QN_T *y1, QN_GLOBAL QN_T *y2,
                  QN_GLOBAL const QN_T *x, qn_long count, qn_long m0, qn_long m1, qn_long m2)
{
    SPLIT_ITEM(m0 + m1 + m2);
    qn_long l = k - m0 - m1;
    if (k < m0)
        qn_store(y0, o * m0 + k, qn_load(x, at));
    else if (l < 0)
        qn_store(y1, o * m1 + k - m0, qn_load(x, at));
    else
        qn_store(y2, o * m2 + l, qn_load(x, at));
}

QN_KERNEL split_4(QN_GLOBAL QN_T *y0, QN_GLOBAL QN_T *y1, QN_GLOBAL QN_T *y2, QN_GLOBAL QN_T *y3,
                  QN_GLOBAL const QN_T *x, qn_long count, qn_long m0, qn_long m1, qn_long m2,
                  qn_long m3)
{
    SPLIT_ITEM(m0 + m1 + m2 + m3);
    qn_long l = k - m0 - m1;
    if (k < m0)
        qn_store(y0, o * m0 + k, qn_load(x, at));
    else if (l < 0)
        qn_store(y1, o * m1 + k - m0, qn_load(x, at));
    else if (l < m2)
        qn_store(y2, o * m2 + l, qn_load(x, at));
    else
        qn_store(y3, o * m3 + l - m2, qn_load(x, at));
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t axis;
    QnDims sizes;
    int64_t parts;
} Attr;

static const QnAttrField split_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "cut axis" },
    { .name = "sizes",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, sizes),
      .doc = "length of each piece; none: equal ones" },
    { .name = "parts",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, parts),
      .def = 1,
      .max = QN_MAX_OUT,
      .doc = "number of equal pieces when there are no sizes" },
};

static QnStatus split_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnType *x = c->in[0];
    int axis;
    if (!qn_shape_axis(&x->shape, a->axis, &axis))
        return qn_fail(QN_EARG, "split: axis %lld is out of range for rank %d", (long long)a->axis,
                       x->shape.rank);
    QnDim n = x->shape.dim[axis], sum = 0;
    int64_t parts = a->sizes.n ? a->sizes.n : a->parts;
    if (parts < 1 || (!a->sizes.n && n >= 0 && n % parts))
        return qn_fail(QN_ESHAPE,
                       "split: length %lld of axis %d does not fall into %lld equal "
                       "pieces",
                       (long long)n, axis, (long long)parts);
    c->n_out = (int)parts;
    for (int i = 0; i < c->n_out; i++) {
        QnDim size = a->sizes.n ? a->sizes.d[i] : qn_dim_div(c->graph, n, parts);
        c->out[i] = *x;
        c->out[i].shape.dim[axis] = size;
        sum = qn_dim_add(c->graph, sum, size);
    }
    if (a->sizes.n && !qn_region_may_equal(sum, n))
        return qn_fail(QN_ESHAPE, "split: the sizes add up to %lld, axis %d has length %lld",
                       (long long)sum, axis, (long long)n);
    return QN_OK;
}

static QnStatus split_ref(const QnRefArgs *a)
{
    int axis = 0;
    if (qn_shape_count(&a->in_type[0]->shape) == 0)
        return QN_OK;
    qn_shape_axis(&a->in_type[0]->shape, ((const Attr *)a->attr)->axis, &axis);
    QnRows x = qn_util_rows(&a->in_type[0]->shape, axis);
    int64_t at = 0;
    for (int k = 0; k < a->n_out; k++) {
        int64_t part = a->out_type[k]->shape.dim[axis] * x.inner;
        for (int64_t o = 0; o < x.outer; o++)
            memcpy(a->out[k] + o * part, a->in[0] + o * x.n * x.inner + at,
                   (size_t)part * sizeof(double));
        at += part;
    }
    return QN_OK;
}

static void split_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *parts[QN_MAX_OUT];
    for (int i = 0; i < n->n_out; i++)
        parts[i] = dy[i] ? dy[i] : qn_full(g, 0, n->in[0]->type.dtype, &n->out[i].type.shape);
    dx[0] = qn_concat(g, parts, n->n_out, ((const Attr *)n->attr)->axis);
}

static QnStatus split_call(const QnNode *n, QnDeviceCall *c)
{
    static const char *const kernels[] = { "split_2", "split_3", "split_4" };
    int axis = 0;
    if (n->n_out < 2 || n->n_out > 4 || !qn_dtype_is_float(n->out[0].type.dtype))
        return qn_fail(QN_EUNSUPPORTED,
                       "split: the device text gives two to four of floating point");
    qn_shape_axis(&n->in[0]->type.shape, ((const Attr *)n->attr)->axis, &axis);
    *c = (QnDeviceCall){ .kernel = kernels[n->n_out - 2],
                         .n_groups = qn_shape_count(&n->in[0]->type.shape) };
    qn_device_int(c, c->n_groups);
    for (int k = 0; k < n->n_out; k++) {
        QnRows r = qn_util_rows(&n->out[k].type.shape, axis);
        qn_device_int(c, r.n * r.inner);
    }
    return QN_OK;
}

static const QnSample split_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ 0, { 0 }, 2 } },
    { .in = { { 3, { 2, 130, 3 } } }, .n_in = 1, .attr = &(Attr){ -2, { 2, { 101, 29 } }, 0 } },
    { .in = { { 2, { 3, 9 } } }, .n_in = 1, .attr = &(Attr){ 1, { 3, { 2, 6, 1 } }, 0 } },
    { .in = { { 3, { 2, 130, 3 } } }, .n_in = 1, .attr = &(Attr){ 1, { 4, { 50, 1, 70, 9 } }, 0 } },
};

/* Pieces of these lengths, at most eight; qn_node_out gives them. NULL: the graph has failed. */
QN_API QnNode *qn_split_sizes(QnGraph *g, QnValue *x, int64_t axis, const QnDims *sizes)
{
    return qn_emit(g, &qn_op_split, &(Attr){ axis, *sizes, 1 }, &x, 1);
}

/* Equal pieces, at most 32; out[0..parts) are set, to poison if the graph has failed. */
QN_API void qn_split(QnGraph *g, QnValue *x, int64_t axis, int parts, QnValue **out)
{
    QnNode *n = qn_emit(g, &qn_op_split, &(Attr){ axis, { 0 }, parts }, &x, 1);
    for (int i = 0; i < parts; i++)
        out[i] = qn_node_out(g, n, i);
}

/* Lengths by attribute, by input, or as equal as they can be. */
static QnStatus import_sizes(QnOnnxNode *n, int64_t length, const int64_t **size, int64_t *count)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "split");
    if (a && a->kind == QN_ONNX_INTS) {
        *size = a->ints;
        *count = a->n;
        return QN_OK;
    }
    if (qn_onnx_has(n, 1))
        return qn_onnx_in_array(n, 1, size, count);
    int64_t parts = qn_onnx_int(n, "num_outputs", n->n_out);
    if (parts < 1 || parts > 1 << 16)
        return qn_fail(QN_EARG, "%lld outputs", (long long)parts);
    int64_t each = (length + parts - 1) / parts;
    int64_t *v = qn_arena_array(n->arena, (size_t)parts, sizeof *v);
    if (!v)
        return QN_ENOMEM;
    for (int64_t i = 0; i < parts; i++)
        v[i] = QN_MIN(each, QN_MAX(length - i * each, 0));
    *size = v;
    *count = parts;
    return QN_OK;
}

static QnStatus split_import(QnOnnxNode *n)
{
    int axis;
    const QnType *t = qn_onnx_type(n, 0);
    const int64_t *size = NULL;
    int64_t count = 0, at = 0;
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    int64_t length;
    QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", 0), t->shape.rank, &axis));
    length = t->shape.dim[axis];
    QN_TRY(import_sizes(n, length, &size, &count));
    for (int64_t i = 0; i < count; i++) {
        if (size[i] < 0 || size[i] > length - at)
            return qn_fail(QN_ESHAPE, "part %lld has length %lld, %lld are left", (long long)i,
                           (long long)size[i], (long long)(length - at));
        at += size[i];
    }
    if (at != length || count < n->n_out)
        return qn_fail(QN_ESHAPE, "%lld parts of %lld elements together for %d outputs of %lld",
                       (long long)count, (long long)at, n->n_out, (long long)length);
    QnValue *x = qn_onnx_in(n, 0);
    QnDims sizes = { .n = (int)count };
    QnNode *all = NULL;
    if (count <= QN_MAX_RANK) { /* as many as the operator's attribute holds */
        memcpy(sizes.d, size, (size_t)count * sizeof *size);
        all = qn_split_sizes(n->g, x, axis, &sizes);
        QN_TRY(qn_graph_check(n->g));
    }
    at = 0;
    for (int i = 0; i < n->n_out; at += size[i++])
        QN_TRY(
            qn_onnx_out(n, i, all ? &all->out[i] : qn_slice_axis(n->g, x, axis, at, at + size[i])));
    return QN_OK;
}

static const QnOnnxMap split_onnx[] = { { .name = "Split", .since = 1, .import = split_import } };

static QnStatus split_put(QnOnnxPut *p, const QnNode *n)
{
    int64_t axis = ((const Attr *)n->attr)->axis, size[QN_MAX_OUT];
    const char *out[QN_MAX_OUT];
    axis += axis < 0 ? n->in[0]->type.shape.rank : 0;
    for (int i = 0; i < n->n_out; i++) {
        size[i] = n->out[i].type.shape.dim[axis];
        out[i] = qn_put_value(p, &n->out[i]);
        if (size[i] < 0)
            return qn_fail(QN_EUNSUPPORTED, "a split of a symbolic dim");
    }
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_ints(p, size, n->n_out) };
    qn_put_attr_int(p, qn_put_node(p, "Split", in, 2, out, n->n_out), "axis", axis);
    return qn_put_status(p);
}

const QnOp qn_op_split = {
    .name = "split",
    .version = 1,
    .doc = "pieces along an axis",
    .n_in = 1,
    .n_out = -1,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, split_fields),
    .infer = split_infer,
    .ref = split_ref,
    .grad = split_grad,
    .device = QN_TEXT(split),
    .call = split_call,
    QN_ONNX(split_onnx),
    .onnx_put = split_put,
    .onnx_writes = "Split",
    QN_SAMPLES(split_samples),
};
#endif

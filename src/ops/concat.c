/* Tensors one after another along an axis. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x_i: (outer, n_i, inner), y: (outer, n0 + n1 + …, inner). m_i = n_i * inner; element k of a row
 * of y is in input i, at l. */
#define CONCAT_ITEM(m)                                                                             \
    qn_long at = qn_item();                                                                        \
    if (at >= count)                                                                               \
        return;                                                                                    \
    qn_long o = at / (m), k = at % (m)

QN_KERNEL concat_2(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x0, QN_GLOBAL const QN_T *x1,
                   qn_long count, qn_long m0, qn_long m1)
{
    CONCAT_ITEM(m0 + m1);
    qn_store(y, at, k < m0 ? qn_load(x0, o * m0 + k) : qn_load(x1, o * m1 + k - m0));
}

QN_KERNEL concat_3(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x0, QN_GLOBAL const QN_T *x1,
                   QN_GLOBAL const QN_T *x2, qn_long count, qn_long m0, qn_long m1, qn_long m2)
{
    CONCAT_ITEM(m0 + m1 + m2);
    qn_long l = k - m0 - m1;
    qn_store(y, at,
             k < m0  ? qn_load(x0, o * m0 + k)
             : l < 0 ? qn_load(x1, o * m1 + k - m0)
                     : qn_load(x2, o * m2 + l));
}

QN_KERNEL concat_4(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x0, QN_GLOBAL const QN_T *x1,
                   QN_GLOBAL const QN_T *x2, QN_GLOBAL const QN_T *x3, qn_long count, qn_long m0,
                   qn_long m1, qn_long m2, qn_long m3)
{
    CONCAT_ITEM(m0 + m1 + m2 + m3);
    qn_long l = k - m0 - m1;
    qn_store(y, at,
             k < m0   ? qn_load(x0, o * m0 + k)
             : l < 0  ? qn_load(x1, o * m1 + k - m0)
             : l < m2 ? qn_load(x2, o * m2 + l)
                      : qn_load(x3, o * m3 + l - m2));
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t axis;
} Attr;

static const QnAttrField concat_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which they follow" },
};

static QnStatus concat_infer(QnInfer *c)
{
    int64_t asked = ((const Attr *)c->attr)->axis;
    QnType y = *c->in[0];
    int axis;
    if (!qn_shape_axis(&y.shape, asked, &axis))
        return qn_fail(QN_EARG, "concat: axis %lld is out of range for rank %d", (long long)asked,
                       y.shape.rank);
    for (int k = 1; k < c->n_in; k++) {
        const QnType *t = c->in[k];
        if (t->dtype != y.dtype)
            return qn_fail(QN_EDTYPE, "concat: input %d is %s, input 0 %s; cast one of them", k,
                           qn_dtype_name(t->dtype), qn_dtype_name(y.dtype));
        bool fits = t->shape.rank == y.shape.rank;
        for (int i = 0; fits && i < y.shape.rank; i++) {
            QnDim a = y.shape.dim[i], b = t->shape.dim[i];
            fits = i == axis || qn_region_may_equal(a, b);
            y.shape.dim[i] = i == axis ? qn_dim_add(c->graph, a, b) : a >= 0 ? a : b;
        }
        if (!fits) {
            char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
            return qn_fail(QN_ESHAPE,
                           "concat: inputs 0 and %d are %s and %s; all axes but %d must "
                           "agree",
                           k, qn_shape_text(&c->in[0]->shape, p), qn_shape_text(&t->shape, q),
                           axis);
        }
    }
    c->out[0] = y;
    return QN_OK;
}

static QnStatus concat_ref(const QnRefArgs *a)
{
    int axis = 0;
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    qn_shape_axis(&a->in_type[0]->shape, ((const Attr *)a->attr)->axis, &axis);
    QnRows y = qn_util_rows(&a->out_type[0]->shape, axis);
    int64_t at = 0;
    for (int k = 0; k < a->n_in; k++) {
        int64_t part = a->in_type[k]->shape.dim[axis] * y.inner;
        for (int64_t o = 0; o < y.outer; o++)
            memcpy(a->out[0] + o * y.n * y.inner + at, a->in[k] + o * part,
                   (size_t)part * sizeof(double));
        at += part;
    }
    return QN_OK;
}

/* Pieces of x along axis for inputs [from, to), by eighths, as one split takes eight sizes. */
static void cut(QnGraph *g, QnNode *n, QnValue *x, int axis, int from, int to, QnValue **dx)
{
    QnDims sizes = { 0 };
    int start[QN_MAX_RANK + 1], per = QN_MAX(1, (to - from + QN_MAX_RANK - 1) / QN_MAX_RANK);
    if (to - from == 1) {
        dx[from] = x;
        return;
    }
    for (int k = from; k < to; k += per) {
        QnDim size = 0;
        for (int i = k; i < QN_MIN(k + per, to); i++)
            size = qn_dim_add(g, size, n->in[i]->type.shape.dim[axis]);
        start[sizes.n] = k;
        sizes.d[sizes.n++] = size;
    }
    start[sizes.n] = to;
    QnNode *parts = qn_split_sizes(g, x, axis, &sizes);
    for (int k = 0; k < sizes.n; k++)
        cut(g, n, qn_node_out(g, parts, k), axis, start[k], start[k + 1], dx);
}

static void concat_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    int axis = 0;
    qn_shape_axis(&n->out[0].type.shape, ((const Attr *)n->attr)->axis, &axis);
    cut(g, n, dy[0], axis, 0, n->n_in, dx);
}

static QnStatus concat_call(const QnNode *n, QnDeviceCall *c)
{
    static const char *const kernels[] = { "concat_2", "concat_3", "concat_4" };
    int axis = 0;
    if (n->n_in < 2 || n->n_in > 4 || !qn_dtype_is_float(n->out[0].type.dtype))
        return qn_fail(QN_EUNSUPPORTED,
                       "concat: the device text joins two to four of floating point");
    qn_shape_axis(&n->out[0].type.shape, ((const Attr *)n->attr)->axis, &axis);
    *c = (QnDeviceCall){ .kernel = kernels[n->n_in - 2],
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    for (int k = 0; k < n->n_in; k++) {
        QnRows r = qn_util_rows(&n->in[k]->type.shape, axis);
        qn_device_int(c, r.n * r.inner);
    }
    return QN_OK;
}

static const QnSample concat_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 2, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 4 } }, { 3, { 2, 130, 4 } }, { 3, { 2, 1, 4 } } },
      .n_in = 3,
      .attr = &(Attr){ -2 } },
    { .in = { { 2, { 3, 2 } }, { 2, { 3, 5 } } }, .n_in = 2, .attr = &(Attr){ 1 } },
    { .in = { { 1, { 5 } } }, .n_in = 1 },
    { .in = { { 2, { 3, 20 } }, { 2, { 3, 1 } }, { 2, { 3, 40 } }, { 2, { 3, 9 } } },
      .n_in = 4,
      .attr = &(Attr){ 1 } },
};

QN_API QnValue *qn_concat(QnGraph *g, QnValue *const *x, int n, int64_t axis)
{
    return n == 1 ? x[0] : qn_emitn(g, &qn_op_concat, &(Attr){ axis }, x, n);
}

/* Tensors of one shape along a new axis. */
QN_API QnValue *qn_stack(QnGraph *g, QnValue *const *x, int n, int64_t axis)
{
    QnValue **wide = qn_arena_array(g->arena, (size_t)QN_MAX(n, 1), sizeof *wide);
    if (!wide)
        return qn_graph_poison(g);
    for (int i = 0; i < n; i++)
        wide[i] = qn_unsqueeze(g, x[i], axis);
    return qn_concat(g, wide, n, axis);
}

static QnStatus concat_import(QnOnnxNode *n)
{
    if (n->n_in < 1 || n->n_in > QN_MAX_IN)
        return qn_onnx_refuse(n, "%d inputs; 1 to %d are joined", n->n_in, QN_MAX_IN);
    QnValue **x = qn_arena_array(n->arena, (size_t)n->n_in, sizeof(QnValue *));
    if (!x)
        return QN_ENOMEM;
    for (int i = 0; i < n->n_in; i++)
        x[i] = qn_onnx_in(n, i);
    return qn_onnx_out0(n, qn_concat(n->g, x, n->n_in, qn_onnx_int(n, "axis", 1)));
}

static const QnOnnxMap concat_onnx[] = {
    { .name = "Concat", .since = 1, .import = concat_import },
};

static QnStatus concat_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_attr_int(p, qn_put_same(p, n, "Concat"), "axis", ((const Attr *)n->attr)->axis);
    return qn_put_status(p);
}

const QnOp qn_op_concat = {
    .name = "concat",
    .version = 1,
    .doc = "tensors one after another along an axis",
    .n_in = 1,
    .n_in_max = QN_MAX_IN,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, concat_fields),
    .infer = concat_infer,
    .ref = concat_ref,
    .grad = concat_grad,
    .device = QN_TEXT(concat),
    .call = concat_call,
    QN_ONNX(concat_onnx),
    .onnx_put = concat_put,
    .onnx_writes = "Concat",
    QN_SAMPLES(concat_samples),
};
#endif

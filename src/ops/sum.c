/* y = sum of x over axes. Device and CPU kernels add in f32 or wider in a fixed order. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float sum_take(float s, float x)
{
    return s + x;
}

QN_SCALAR float sum_join(float a, float b)
{
    return a + b;
}

QN_SCALAR float sum_end(float s, qn_long n)
{
    return s;
}

QN_FOLD(sum, QN_T, qn_load, qn_store, float, 0.0f)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/whole.h"

static const QnAttrField sum_fields[] = { QN_REDUCE_FIELDS };

static QnStatus sum_infer(QnInfer *c)
{
    return qn_util_reduce_infer(c, "sum");
}

static QnCost sum_cost(const QnNode *n)
{
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static int64_t sum_whole(QnDtype dtype, int64_t s, int64_t x)
{
    (void)dtype;
    return qn_whole_add(s, x);
}

static QnStatus sum_ref(const QnRefArgs *a)
{
    if (qn_whole_is(a))
        return qn_fold_whole_ref(a, "sum", sum_whole, 0);
    const QnReduceAttr *attr = a->attr;
    const QnShape *s = &a->in_type[0]->shape;
    unsigned mask;
    QN_TRY(qn_util_axes_mask("sum", s, &attr->axes, &mask));
    QnShape keep = qn_util_keep_shape(s, mask);
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    qn_shape_strides(&keep, stride);
    for (int i = 0; i < s->rank; i++)
        stride[i] = mask >> i & 1 ? 0 : stride[i];
    memset(a->out[0], 0, (size_t)qn_shape_count(&a->out_type[0]->shape) * sizeof(double));
    for (int64_t i = 0, n = qn_shape_count(s); i < n; i++) {
        a->out[0][qn_util_offset(s->rank, index, stride)] += a->in[0][i];
        qn_util_next(s, index);
    }
    return QN_OK;
}

static void sum_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnReduceAttr *attr = n->attr;
    const QnShape *s = &n->in[0]->type.shape;
    unsigned mask = 0;
    qn_util_axes_mask("sum", s, &attr->axes, &mask); /* emission has checked it */
    QnShape keep = qn_util_keep_shape(s, mask);
    dx[0] = qn_expand(g, qn_reshape(g, dy[0], &keep), s);
}

static QnStatus sum_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "sum_fold", "sum_last", c);
}

static const QnSample sum_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 3, 130, 2 } } }, .n_in = 1, .attr = &(QnReduceAttr){ { 1, { 1 } }, false } },
    { .in = { { 4, { 2, 3, 4, 5 } } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 2, { -1, 2 } }, true } },
    { .in = { { 3, { 4, 3, 5 } } }, .n_in = 1, .attr = &(QnReduceAttr){ { 2, { 0, 2 } }, false } },
};

QN_API QnValue *qn_sum(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_sum, &(QnReduceAttr){ axes, keepdims }, x);
}

/* Sums x over the axes along which a tensor of shape `to` was broadcast to x's shape. */
QN_API QnValue *qn_sum_to(QnGraph *g, QnValue *x, const QnShape *to)
{
    if (qn_value_is_poison(x) || qn_shape_is_equal(&x->type.shape, to))
        return x;
    QnInts axes = { 0 };
    int lead = x->type.shape.rank - to->rank;
    for (int i = 0; i < x->type.shape.rank; i++) {
        if (i < lead || (to->dim[i - lead] == 1 && x->type.shape.dim[i] != 1))
            axes.v[axes.n++] = i;
    }
    return qn_reshape(g, axes.n ? qn_sum(g, x, axes, true) : x, to);
}

static QnStatus sum_import(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, qn_sum, false, 0);
}

static const QnOnnxMap sum_onnx[] = { { .name = "ReduceSum", .since = 1, .import = sum_import } };

static QnStatus sum_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_reduce(p, n, "ReduceSum", 13);
    return qn_put_status(p);
}

const QnOp qn_op_sum = {
    .name = "sum",
    .version = 1,
    .doc = "sum over axes",
    .n_in = 1,
    .traits = QN_REDUCE | QN_WHOLE,
    QN_ATTRS(QnReduceAttr, sum_fields),
    .infer = sum_infer,
    .cost = sum_cost,
    .ref = sum_ref,
    .grad = sum_grad,
    .device = QN_TEXT(sum),
    .call = sum_call,
    QN_ONNX(sum_onnx),
    .onnx_put = sum_put,
    .onnx_writes = "ReduceSum",
    QN_SAMPLES(sum_samples),
};
#endif

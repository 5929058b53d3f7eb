/* A region of a tensor, with steps that may be negative. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL slice_copy(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long count, QN_ARG8(d),
                     QN_ARG8(s), qn_long offset)
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, qn_load(x, offset + qn_strided(i, QN_PASS8(d), QN_PASS8(s))));
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/region.h"

static const QnAttrField slice_fields[] = {
    { .name = "axes",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, axes),
      .doc = "sliced axes" },
    { .name = "starts",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, starts),
      .doc = "first element of each" },
    { .name = "ends",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, ends),
      .doc = "element before which each stops" },
    { .name = "steps",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, steps),
      .doc = "distance of the elements taken; none: 1" },
};

static QnStatus slice_infer(QnInfer *c)
{
    QnRegion r;
    QN_TRY(qn_region_slice(c->graph, "slice", &c->in[0]->shape, c->attr, &r));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = r.shape;
    return QN_OK;
}

/* Strides and offset in x of the region's elements. */
static QnStatus strides_of(const QnShape *s, const QnSliceAttr *a, int64_t stride[QN_MAX_RANK],
                           int64_t *offset)
{
    QnRegion r;
    QN_TRY(qn_region_slice(NULL, "slice", s, a, &r)); /* no symbols: needs no graph */
    qn_shape_strides(s, stride);
    *offset = qn_util_offset(s->rank, r.start, stride);
    for (int i = 0; i < s->rank; i++)
        stride[i] *= r.step[i];
    return QN_OK;
}

static QnStatus slice_ref(const QnRefArgs *a)
{
    int64_t stride[QN_MAX_RANK], offset;
    QN_TRY(strides_of(&a->in_type[0]->shape, a->attr, stride, &offset));
    qn_region_copy(&a->out_type[0]->shape, stride, offset, a->in[0], a->out[0]);
    return QN_OK;
}

static void slice_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *t = &n->in[0]->type;
    dx[0] = qn_slice_put(g, qn_full(g, 0, t->dtype, &t->shape), dy[0], n->attr);
}

static QnStatus slice_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t stride[QN_MAX_RANK], offset;
    QN_TRY(strides_of(&n->in[0]->type.shape, n->attr, stride, &offset));
    QN_TRY(qn_region_call("slice_copy", n, &n->out[0].type.shape, stride, c));
    qn_device_int(c, offset);
    return QN_OK;
}

static const QnSample slice_samples[] = {
    { .in = { { 2, { 4, 7 } } },
      .n_in = 1,
      .attr = &(QnSliceAttr){ { 1, { 0 } }, { 1, { 1 } }, { 1, { 3 } }, { 0 } } },
    { .in = { { 3, { 2, 130, 3 } } },
      .n_in = 1,
      .attr =
          &(QnSliceAttr){
              { 2, { 1, -1 } }, { 2, { -5, 0 } }, { 2, { INT64_MIN, 9 } }, { 2, { -3, 2 } } } },
    { .in = { { 3, { 3, 4, 5 } } },
      .n_in = 1,
      .attr = &(QnSliceAttr){ { 3, { 0, 1, 2 } },
                              { 3, { -1, 3, 1 } },
                              { 3, { 0, 0, -1 } },
                              { 3, { -1, -2, 2 } } } },
};

QN_API QnValue *qn_slice(QnGraph *g, QnValue *x, const QnSliceAttr *attr)
{
    return qn_emit1(g, &qn_op_slice, attr, x);
}

/* Elements [start, end) of one axis; negative bounds count from the end. */
QN_API QnValue *qn_slice_axis(QnGraph *g, QnValue *x, int64_t axis, int64_t start, int64_t end)
{
    QnSliceAttr a = { .axes = QN_AXES(axis), .starts = QN_AXES(start), .ends = QN_AXES(end) };
    return qn_slice(g, x, &a);
}

static QnStatus slice_import(QnOnnxNode *n)
{
    QnSliceAttr a = { .axes = { 0 } };
    bool has_axes = true;
    if (n->opset < 10) {
        qn_onnx_ints(n, "starts", &a.starts);
        qn_onnx_ints(n, "ends", &a.ends);
        has_axes = qn_onnx_ints(n, "axes", &a.axes);
    } else {
        QN_TRY(qn_onnx_in_ints(n, 1, &a.starts));
        QN_TRY(qn_onnx_in_ints(n, 2, &a.ends));
        has_axes = qn_onnx_has(n, 3);
        if (has_axes)
            QN_TRY(qn_onnx_in_ints(n, 3, &a.axes));
        if (qn_onnx_has(n, 4))
            QN_TRY(qn_onnx_in_ints(n, 4, &a.steps));
    }
    for (; !has_axes && a.axes.n < a.starts.n; a.axes.n++)
        a.axes.v[a.axes.n] = a.axes.n;
    return qn_onnx_out0(n, qn_slice(n->g, qn_onnx_in(n, 0), &a));
}

static const QnOnnxMap slice_onnx[] = { { .name = "Slice", .since = 1, .import = slice_import } };

static QnStatus slice_put(QnOnnxPut *p, const QnNode *n)
{
    const QnSliceAttr *a = n->attr;
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_ints(p, a->starts.v, a->starts.n),
                         qn_put_ints(p, a->ends.v, a->ends.n), qn_put_ints(p, a->axes.v, a->axes.n),
                         a->steps.n ? qn_put_ints(p, a->steps.v, a->steps.n) : NULL };
    qn_put_as(p, &n->out[0], "Slice", in, 5);
    return qn_put_status(p);
}

const QnOp qn_op_slice = {
    .name = "slice",
    .version = 1,
    .doc = "a region, with steps",
    .n_in = 1,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(QnSliceAttr, slice_fields),
    .infer = slice_infer,
    .ref = slice_ref,
    .grad = slice_grad,
    .device = QN_TEXT(slice),
    .call = slice_call,
    QN_ONNX(slice_onnx),
    .onnx_put = slice_put,
    .onnx_writes = "Slice",
    QN_SAMPLES(slice_samples),
};
#endif

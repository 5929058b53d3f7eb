/* start, start + step, start + 2 step, … : n elements. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL arange_float(QN_GLOBAL QN_T *y, qn_long count, float start, float step)
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, start + step * (float)i);
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double start, step;
    QnDims dims;
    QnDtype dtype;
} Attr;

static const QnAttrField arange_fields[] = {
    { .name = "start", .kind = QN_ATTR_FLOAT, .offset = offsetof(Attr, start), .doc = "first" },
    { .name = "step",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, step),
      .def = 1,
      .doc = "distance of neighbours" },
    { .name = "dims",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, dims),
      .doc = "number of elements, one dim" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type; i64 counts exactly up to 2^53" },
};

static QnStatus arange_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    if (a->dims.n != 1)
        return qn_fail(QN_ESHAPE, "arange: %d dims; it has one", a->dims.n);
    if (a->dtype == QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE, "arange: bool cannot count");
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(1, a->dims.d);
    return QN_OK;
}

static QnStatus arange_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++)
        a->out[0][i] = attr->start + attr->step * (double)i;
    return QN_OK;
}

static QnStatus arange_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    if (!qn_dtype_is_float(a->dtype))
        return qn_fail(QN_EUNSUPPORTED, "arange: the device text is for floating point");
    *c = (QnDeviceCall){ .kernel = "arange_float",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    qn_device_float(c, a->start);
    qn_device_float(c, a->step);
    return QN_OK;
}

static const QnSample arange_samples[] = {
    { .attr = &(Attr){ 0, 1, { 1, { 130 } }, QN_DTYPE_F32 }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ 7, -2, { 1, { 5 } }, QN_DTYPE_I64 }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ -0.5, 0.25, { 1, { 9 } }, QN_DTYPE_F32 }, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_arange(QnGraph *g, double start, double step, QnDim n, QnDtype dtype)
{
    return qn_emit0(g, &qn_op_arange, &(Attr){ start, step, { 1, { n } }, dtype });
}

/* Integers, exactly: the elements as a constant where doubles would round. */
static QnStatus arange_import_int(QnOnnxNode *n, QnDtype dtype)
{
    int64_t from, to, step;
    QN_TRY(qn_onnx_in_int(n, 0, &from));
    QN_TRY(qn_onnx_in_int(n, 1, &to));
    QN_TRY(qn_onnx_in_int(n, 2, &step));
    if (step == 0)
        return qn_fail(QN_EARG, "the delta is 0");
    uint64_t way = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t count = (step > 0 ? to > from : to < from) ? (way - 1) / size + 1 : 0;
    const int64_t most = INT64_C(1) << 53;
    if (count > INT64_MAX / 8)
        return qn_fail(QN_ESHAPE, "a range of %llu numbers", (unsigned long long)count);
    if (from > -most && from < most && to > -most && to < most)
        return qn_onnx_out0(n, qn_arange(n->g, (double)from, (double)step, (int64_t)count, dtype));
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_I64, &QN_SHAPE((int64_t)count));
    if (!t)
        return QN_ENOMEM;
    for (uint64_t i = 0; i < count; i++)
        ((int64_t *)t->data)[i] = (int64_t)((uint64_t)from + i * (uint64_t)step);
    return qn_onnx_out0(
        n, qn_cast(n->g, qn_constant(n->g, QN_DTYPE_I64, &t->type.shape, t->data), dtype));
}

static QnStatus arange_import(QnOnnxNode *n)
{
    double from, to, step;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a number");
    QnDtype dtype = t->dtype;
    if (qn_dtype_is_int(dtype))
        return arange_import_int(n, dtype);
    QN_TRY(qn_onnx_in_double(n, 0, &from));
    QN_TRY(qn_onnx_in_double(n, 1, &to));
    QN_TRY(qn_onnx_in_double(n, 2, &step));
    double count = ceil((to - from) / step);
    if (!(fabs(count) < 0x1p60))
        return qn_fail(QN_ESHAPE, "a range from %g to %g by %g", from, to, step);
    return qn_onnx_out0(n, qn_arange(n->g, from, step, (int64_t)fmax(count, 0), dtype));
}

static const QnOnnxMap arange_onnx[] = {
    { .name = "Range", .since = 11, .import = arange_import },
};

const QnOp qn_op_arange = {
    .name = "arange",
    .version = 1,
    .doc = "equally spaced numbers",
    .traits = QN_LEAF | QN_NO_GRAD,
    QN_ATTRS(Attr, arange_fields),
    .infer = arange_infer,
    .ref = arange_ref,
    .device = QN_TEXT(arange),
    .call = arange_call,
    QN_ONNX(arange_onnx),
    QN_SAMPLES(arange_samples),
};
#endif

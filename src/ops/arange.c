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
    QN_SAMPLES(arange_samples),
};
#endif

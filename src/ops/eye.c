/* A matrix with ones on a diagonal, zeros elsewhere. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL eye_float(QN_GLOBAL QN_T *y, qn_long count, qn_long columns, qn_long k)
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, i % columns - i / columns == k ? 1.0f : 0.0f);
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    QnDims dims;
    int64_t k;
    QnDtype dtype;
} Attr;

static const QnAttrField eye_fields[] = {
    { .name = "dims",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, dims),
      .doc = "rows and columns" },
    { .name = "k",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, k),
      .doc = "diagonal; 0: the main one, positive: above" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type" },
};

static QnStatus eye_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    if (a->dims.n != 2)
        return qn_fail(QN_ESHAPE, "eye: %d dims; it has two", a->dims.n);
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(2, a->dims.d);
    return QN_OK;
}

static QnStatus eye_ref(const QnRefArgs *a)
{
    const QnShape *s = &a->out_type[0]->shape;
    for (int64_t i = 0, n = qn_shape_count(s); i < n; i++)
        a->out[0][i] = i % s->dim[1] - i / s->dim[1] == ((const Attr *)a->attr)->k;
    return QN_OK;
}

static QnStatus eye_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    if (!qn_dtype_is_float(a->dtype))
        return qn_fail(QN_EUNSUPPORTED, "eye: the device text is for floating point");
    *c = (QnDeviceCall){ .kernel = "eye_float", .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    qn_device_int(c, n->out[0].type.shape.dim[1]);
    qn_device_int(c, a->k);
    return QN_OK;
}

static const QnSample eye_samples[] = {
    { .attr = &(Attr){ { 2, { 13, 10 } }, 0, QN_DTYPE_F32 }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ { 2, { 3, 5 } }, 2, QN_DTYPE_F32 }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ { 2, { 3, 4 } }, -1, QN_DTYPE_I32 }, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_eye(QnGraph *g, QnDim rows, QnDim columns, int64_t k, QnDtype dtype)
{
    return qn_emit0(g, &qn_op_eye, &(Attr){ { 2, { rows, columns } }, k, dtype });
}

static QnStatus eye_import(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    if (!t || t->shape.rank != 2)
        return qn_fail(QN_ESHAPE, "input 0 must be a matrix of numbers");
    QnDtype dtype = t->dtype;
    int64_t asked = qn_onnx_int(n, "dtype", 0);
    if (asked && !qn_onnx_dtype(asked, &dtype))
        return qn_onnx_refuse(n, "element type %lld", (long long)asked);
    return qn_onnx_out0(
        n, qn_eye(n->g, t->shape.dim[0], t->shape.dim[1], qn_onnx_int(n, "k", 0), dtype));
}

static const QnOnnxMap eye_onnx[] = { { .name = "EyeLike", .since = 9, .import = eye_import } };

const QnOp qn_op_eye = {
    .name = "eye",
    .version = 1,
    .doc = "ones on a diagonal",
    .traits = QN_LEAF | QN_NO_GRAD,
    QN_ATTRS(Attr, eye_fields),
    .infer = eye_infer,
    .ref = eye_ref,
    .device = QN_TEXT(eye),
    .call = eye_call,
    QN_ONNX(eye_onnx),
    QN_SAMPLES(eye_samples),
};
#endif

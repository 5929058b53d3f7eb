/* A tensor of one repeated number. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"

typedef struct Attr {
    double value;
    QnDtype dtype;
    QnDims dims;
} Attr;

static const QnAttrField full_fields[] = {
    { .name = "value", .kind = QN_ATTR_FLOAT, .offset = offsetof(Attr, value), .doc = "element" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type" },
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "shape" },
};

static QnStatus full_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    return QN_OK;
}

static QnStatus full_ref(const QnRefArgs *a)
{
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++)
        a->out[0][i] = ((const Attr *)a->attr)->value;
    return QN_OK;
}

static const QnSample full_samples[] = {
    { .attr = &(Attr){ 2.5, QN_DTYPE_F32, { 2, { 3, 4 } } }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ -3, QN_DTYPE_I64, { 0 } }, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_full(QnGraph *g, double value, QnDtype dtype, const QnShape *shape)
{
    Attr a = { value, dtype, { shape->rank, { 0 } } };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit0(g, &qn_op_full, &a);
}

/* A scalar of x's dtype, which broadcasts to anything. */
QN_API QnValue *qn_scalar_like(QnGraph *g, QnValue *x, double value)
{
    return qn_value_is_poison(x) ? qn_graph_poison(g)
                                 : qn_full(g, value, x->type.dtype, &(QnShape){ 0 });
}

/* The number of a full node; false: v is no such node. */
QN_API bool qn_full_value(const QnValue *v, double *value)
{
    if (v->node->op != &qn_op_full)
        return false;
    *value = ((const Attr *)v->node->attr)->value;
    return true;
}

static QnStatus full_import(QnOnnxNode *n)
{
    QnInts dims;
    const QnOnnxAttr *a = qn_onnx_attr(n, "value");
    const QnTensor *t = a && a->kind == QN_ONNX_TENSOR ? a->tensor : NULL;
    QN_TRY(qn_onnx_in_ints(n, 0, &dims));
    if (dims.n > QN_MAX_RANK || (t && t->text))
        return qn_onnx_refuse(n, "%d dims, or strings", dims.n);
    if (t && qn_shape_count(&t->type.shape) != 1)
        return qn_fail(QN_ESHAPE, "the attribute 'value' must be one number");
    QnShape s = { .rank = dims.n };
    for (int i = 0; i < dims.n; i++) {
        s.dim[i] = dims.v[i];
        if (dims.v[i] < 0)
            return qn_fail(QN_ESHAPE, "dim %d is %lld", i, (long long)dims.v[i]);
    }
    double v = 0;
    if (!t)
        return qn_onnx_out0(n, qn_full(n->g, 0, QN_DTYPE_F32, &s));
    qn_dtype_to_f64(t->type.dtype, t->data, &v, 1);
    if (qn_dtype_is_storage(t->type.dtype) || fabs(v) > 0x1p53) /* no double, or not for sure */
        return qn_onnx_out0(
            n, qn_expand(n->g, qn_constant(n->g, t->type.dtype, &(QnShape){ 0 }, t->data), &s));
    return qn_onnx_out0(n, qn_full(n->g, v, t->type.dtype, &s));
}

static const QnOnnxMap full_onnx[] = {
    { .name = "ConstantOfShape", .since = 9, .import = full_import },
};

static QnStatus full_put(QnOnnxPut *p, const QnNode *n)
{
    const Attr *a = n->attr;
    const QnShape *s = &n->out[0].type.shape;
    if (s->rank == 0) {
        qn_put_as(p, &n->out[0], "Identity",
                  (const char *[]){ qn_put_number(p, a->dtype, a->value) }, 1);
        return qn_put_status(p);
    }
    if (!qn_shape_is_concrete(s))
        return qn_fail(QN_EUNSUPPORTED, "a constant of a symbolic shape; give --batch");
    const char *in[] = { qn_put_number(p, a->dtype, a->value), qn_put_shape(p, s) };
    qn_put_as(p, &n->out[0], "Expand", in, 2);
    return qn_put_status(p);
}

const QnOp qn_op_full = {
    .name = "full",
    .version = 1,
    .doc = "one number repeated",
    .traits = QN_LEAF | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, full_fields),
    .infer = full_infer,
    .ref = full_ref,
    QN_ONNX(full_onnx),
    .onnx_put = full_put,
    .onnx_writes = "Expand,Identity",
    QN_SAMPLES(full_samples),
};
#endif

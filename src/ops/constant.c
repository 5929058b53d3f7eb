/* A tensor whose elements are written in the graph. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx_put.h"

typedef struct Attr {
    QnDtype dtype;
    QnDims dims;
    QnData data;
} Attr;

static const QnAttrField constant_fields[] = {
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type" },
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "shape" },
    { .name = "data",
      .kind = QN_ATTR_DATA,
      .offset = offsetof(Attr, data),
      .doc = "elements, row-major" },
};

static QnStatus constant_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    int64_t bytes = qn_type_bytes(&c->out[0]);
    if (bytes < 0 || (size_t)bytes != a->data.bytes)
        return qn_fail(QN_ESHAPE, "constant: %zu bytes of data, the shape needs %lld",
                       a->data.bytes, (long long)bytes);
    return QN_OK;
}

static QnStatus constant_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    int64_t n = qn_shape_count(&a->out_type[0]->shape);
    if (qn_dtype_is_wide(attr->dtype) && a->i64_bits)
        memcpy(a->out[0], attr->data.p, attr->data.bytes);
    else
        qn_dtype_to_f64(attr->dtype, attr->data.p, a->out[0], n);
    return QN_OK;
}

static const QnSample constant_samples[] = {
    { .attr = &(Attr){ QN_DTYPE_F32, { 1, { 2 } }, { 8, (const float[]){ 1, -2.5f } } },
      .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ QN_DTYPE_I64, { 1, { 1 } }, { 8, (const int64_t[]){ 1LL << 60 } } },
      .flags = QN_SAMPLE_NO_GRAD },
};

static QnValue *emit_constant(QnGraph *g, QnDtype dtype, const QnShape *shape, const void *data,
                              bool lasting)
{
    QnType t = { .dtype = dtype, .shape = *shape };
    bool fits = shape->rank >= 0 && shape->rank <= QN_MAX_RANK; /* else emission refuses it */
    int64_t bytes = fits ? qn_type_bytes(&t) : 0;
    Attr a = { dtype,
               { shape->rank, { 0 } },
               { .bytes = bytes < 0 ? 0 : (size_t)bytes, .p = data, .lasting = lasting } };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit0(g, &qn_op_constant, &a);
}

/* Copies the elements. */
QN_API QnValue *qn_constant(QnGraph *g, QnDtype dtype, const QnShape *shape, const void *data)
{
    return emit_constant(g, dtype, shape, data, false);
}

/* Does not copy them: they must stay as they are for longer than the graph, its copies and plans.
 */
QN_API QnValue *qn_constant_lasting(QnGraph *g, QnDtype dtype, const QnShape *shape,
                                    const void *data)
{
    return emit_constant(g, dtype, shape, data, true);
}

/* Takes elements that lie in the graph's own arena, without copying them. */
QN_API QnValue *qn_constant_of_arena(QnGraph *g, QnDtype dtype, const QnShape *shape,
                                     const void *data)
{
    QnValue *v = emit_constant(g, dtype, shape, data, true);
    if (!qn_value_is_poison(v)) /* from now on they are the node's, to be copied with it */
        ((Attr *)(uintptr_t)v->node->attr)->data.lasting = false;
    return v;
}

/* The elements of a constant node; NULL: v is no such node. */
QN_API const void *qn_constant_data(const QnValue *v)
{
    return v->node->op == &qn_op_constant ? ((const Attr *)v->node->attr)->data.p : NULL;
}

static QnStatus constant_put(QnOnnxPut *p, const QnNode *n)
{
    const Attr *a = n->attr;
    QnTensor *t = qn_arena_alloc(p->arena, sizeof *t);
    if (!t)
        return QN_ENOMEM;
    *t = (QnTensor){ .type = n->out[0].type, .data = a->data.p };
    qn_put_tensor(p, qn_put_value(p, &n->out[0]), t);
    return qn_put_status(p);
}

const QnOp qn_op_constant = {
    .name = "constant",
    .version = 1,
    .doc = "elements written in the graph",
    .traits = QN_LEAF | QN_NO_GRAD | QN_NO_FOLD | QN_MOVES_DATA,
    QN_ATTRS(Attr, constant_fields),
    .infer = constant_infer,
    .ref = constant_ref,
    .onnx_put = constant_put,
    QN_SAMPLES(constant_samples),
};
#endif

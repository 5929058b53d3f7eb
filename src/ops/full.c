/* A tensor of one repeated number. */
#include "ops/dialect.h"

#ifdef QN_HOST

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

const QnOp qn_op_full = {
    .name = "full",
    .version = 1,
    .doc = "one number repeated",
    .traits = QN_LEAF | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, full_fields),
    .infer = full_infer,
    .ref = full_ref,
    QN_SAMPLES(full_samples),
};
#endif

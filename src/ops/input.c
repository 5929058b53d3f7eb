/* A tensor that the caller feeds at each run. */
#include "ops/dialect.h"

#ifdef QN_HOST

typedef struct Attr {
    const char *name;
    QnDtype dtype;
    QnDims dims;
} Attr;

static const QnAttrField input_fields[] = {
    { .name = "name",
      .kind = QN_ATTR_STRING,
      .offset = offsetof(Attr, name),
      .doc = "by which it is fed" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type" },
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "shape" },
};

static QnStatus input_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    return QN_OK;
}

static QnCost input_cost(const QnNode *n)
{
    (void)n;
    return (QnCost){ 0 };
}

static const QnSample input_samples[] = {
    { .attr = &(Attr){ "x", QN_DTYPE_F32, { 2, { 3, 4 } } }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ "ids", QN_DTYPE_I64, { 1, { 5 } } }, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_input(QnGraph *g, const char *name, QnDtype dtype, const QnShape *shape)
{
    Attr a = { name, dtype, { shape->rank, { 0 } } };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit0(g, &qn_op_input, &a);
}

/* The name of an input node. */
QN_API const char *qn_input_name(const QnNode *n)
{
    return ((const Attr *)n->attr)->name;
}

const QnOp qn_op_input = {
    .name = "input",
    .version = 1,
    .doc = "a tensor fed at each run",
    .traits = QN_LEAF | QN_INPUT | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, input_fields),
    .infer = input_infer,
    .cost = input_cost,
    QN_SAMPLES(input_samples),
};
#endif

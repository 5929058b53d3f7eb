/* One element for each index: along axis 0, y[i,j] = x[index[i,j], j]. Negative indices count from
 * the end; an index out of range is an error of the run. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t axis;
} Attr;

static const QnAttrField gather_elements_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which indices pick" },
};

static QnStatus gather_elements_infer(QnInfer *c)
{
    QN_TRY(qn_region_check_index("gather_elements", c->in[1]));
    QN_TRY(qn_region_check_elements("gather_elements", &c->in[0]->shape, &c->in[1]->shape,
                                    ((const Attr *)c->attr)->axis));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = c->in[1]->shape;
    return QN_OK;
}

static QnCost gather_elements_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->out[0].type);
    double all = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .bytes_read = fmin(bytes, all) + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = bytes };
}

static QnStatus gather_elements_ref(const QnRefArgs *a)
{
    const QnShape *s = &a->in_type[0]->shape, *to = &a->in_type[1]->shape;
    int64_t index[QN_MAX_RANK] = { 0 }, stride[QN_MAX_RANK];
    int axis = 0;
    qn_shape_axis(s, ((const Attr *)a->attr)->axis, &axis);
    qn_shape_strides(s, stride);
    for (int64_t i = 0, n = qn_shape_count(to); i < n; i++) {
        int64_t j;
        QN_TRY(qn_region_index("gather_elements", a->in[1][i], i, s->dim[axis], true, &j));
        int64_t at = qn_util_offset(s->rank, index, stride) + (j - index[axis]) * stride[axis];
        a->out[0][i] = a->in[0][at];
        qn_util_next(to, index);
    }
    return QN_OK;
}

static void gather_elements_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *t = &n->in[0]->type;
    QnValue *zeros = qn_full(g, 0, t->dtype, &t->shape);
    dx[0] = qn_scatter_elements(g, zeros, n->in[1], dy[0], ((const Attr *)n->attr)->axis,
                                QN_SCATTER_ADD);
}

static const QnSample gather_elements_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 3, 6 }, QN_DTYPE_I64, -4, 3 } }, .n_in = 2 },
    { .in = { { 3, { 2, 5, 3 } }, { 3, { 2, 130, 3 }, QN_DTYPE_I32, 0, 4 } },
      .n_in = 2,
      .attr = &(Attr){ -2 } },
};

QN_API QnValue *qn_gather_elements(QnGraph *g, QnValue *x, QnValue *indices, int64_t axis)
{
    return qn_emit2(g, &qn_op_gather_elements, &(Attr){ axis }, x, indices);
}

static const QnOnnxMap gather_elements_onnx[] = { { .name = "GatherElements", .since = 11 } };

const QnOp qn_op_gather_elements = {
    .name = "gather_elements",
    .version = 1,
    .doc = "one element for each index, along an axis",
    .n_in = 2,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, gather_elements_fields),
    .infer = gather_elements_infer,
    .cost = gather_elements_cost,
    .ref = gather_elements_ref,
    .grad = gather_elements_grad,
    .index_in = 2,
    QN_ONNX(gather_elements_onnx),
    QN_SAMPLES(gather_elements_samples),
};
#endif

/* Slices of x by tuples of indices: indices (…,k) give (…) + x's axes after the first k. With
 * batch_dims b the first b axes of x and indices are common. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t batch_dims;
} Attr;

static const QnAttrField gather_nd_fields[] = {
    { .name = "batch_dims",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, batch_dims),
      .max = QN_MAX_RANK - 1,
      .doc = "leading axes that x and indices share" },
};

static QnStatus gather_nd_infer(QnInfer *c)
{
    QN_TRY(qn_region_check_index("gather_nd", c->in[1]));
    c->out[0].dtype = c->in[0]->dtype;
    return qn_region_tuple_shape("gather_nd", &c->in[0]->shape, &c->in[1]->shape,
                                 ((const Attr *)c->attr)->batch_dims, &c->out[0].shape);
}

static QnCost gather_nd_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->out[0].type);
    double all = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .bytes_read = fmin(bytes, all) + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = bytes };
}

static QnStatus gather_nd_ref(const QnRefArgs *a)
{
    QnTuples t = qn_region_tuples(&a->in_type[0]->shape, &a->in_type[1]->shape,
                                  ((const Attr *)a->attr)->batch_dims);
    for (int64_t p = 0; p < t.n; p++) {
        int64_t at;
        QN_TRY(qn_region_tuple("gather_nd", &t, a->in[1], p, &at));
        memcpy(a->out[0] + p * t.slice, a->in[0] + at, (size_t)t.slice * sizeof(double));
    }
    return QN_OK;
}

static void gather_nd_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *t = &n->in[0]->type;
    QnValue *zeros = qn_full(g, 0, t->dtype, &t->shape);
    dx[0] = qn_scatter_nd(g, zeros, n->in[1], dy[0], ((const Attr *)n->attr)->batch_dims,
                          QN_SCATTER_ADD);
}

static const QnSample gather_nd_samples[] = {
    { .in = { { 3, { 4, 4, 7 } }, { 2, { 5, 2 }, QN_DTYPE_I64, -4, 3 } }, .n_in = 2 },
    { .in = { { 3, { 2, 5, 3 } }, { 3, { 2, 65, 1 }, QN_DTYPE_I32, 0, 4 } },
      .n_in = 2,
      .attr = &(Attr){ 1 } },
    { .in = { { 2, { 3, 3 } }, { 1, { 2 }, QN_DTYPE_I64, 0, 2 } }, .n_in = 2 },
};

QN_API QnValue *qn_gather_nd(QnGraph *g, QnValue *x, QnValue *indices, int64_t batch_dims)
{
    return qn_emit2(g, &qn_op_gather_nd, &(Attr){ batch_dims }, x, indices);
}

static const QnOnnxMap gather_nd_onnx[] = { { .name = "GatherND", .since = 11 } };

const QnOp qn_op_gather_nd = {
    .name = "gather_nd",
    .version = 1,
    .doc = "slices by tuples of indices",
    .n_in = 2,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, gather_nd_fields),
    .infer = gather_nd_infer,
    .cost = gather_nd_cost,
    .ref = gather_nd_ref,
    .grad = gather_nd_grad,
    .index_in = 2,
    QN_ONNX(gather_nd_onnx),
    QN_SAMPLES(gather_nd_samples),
};
#endif

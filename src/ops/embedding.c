/* Rows of a table by ids: table (V,D) and ids (…) give (…,D). An id outside 0..V-1 is an error of
 * the run that names it. The gradient is summed in the ids' order, so that it is the same always.
 */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* An id out of range gives NaN here. */
QN_KERNEL embedding_i64(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *table, QN_GLOBAL const qn_long *id,
                        qn_long count, qn_long v, qn_long d)
{
    qn_long at = qn_item();
    if (at >= count)
        return;
    qn_long row = id[at / d];
    qn_store(y, at, row >= 0 && row < v ? qn_load(table, row * d + at % d) : QN_INF - QN_INF);
}

QN_KERNEL embedding_i32(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *table, QN_GLOBAL const int *id,
                        qn_long count, qn_long v, qn_long d)
{
    qn_long at = qn_item();
    if (at >= count)
        return;
    qn_long row = id[at / d];
    qn_store(y, at, row >= 0 && row < v ? qn_load(table, row * d + at % d) : QN_INF - QN_INF);
}
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/region.h"

static QnStatus embedding_infer(QnInfer *c)
{
    const QnShape *t = &c->in[0]->shape;
    QN_TRY(qn_region_check_index("embedding", c->in[1]));
    if (t->rank != 2) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "embedding: the table is %s, must be (V,D)",
                       qn_shape_text(t, text));
    }
    c->out[0].dtype = c->in[0]->dtype;
    return qn_region_replace("embedding", t, 0, &c->in[1]->shape, &c->out[0].shape);
}

static QnCost embedding_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->out[0].type);
    double all = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .bytes_read = fmin(bytes, all) + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = bytes };
}

static QnStatus embedding_ref(const QnRefArgs *a)
{
    int64_t v = a->in_type[0]->shape.dim[0], d = a->in_type[0]->shape.dim[1];
    for (int64_t j = 0, m = qn_shape_count(&a->in_type[1]->shape); j < m; j++) {
        int64_t row;
        QN_TRY(qn_region_index("embedding", a->in[1][j], j, v, false, &row));
        memcpy(a->out[0] + j * d, a->in[0] + row * d, (size_t)d * sizeof(double));
    }
    return QN_OK;
}

static void embedding_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *t = &n->in[0]->type;
    dx[0] = qn_scatter_add(g, qn_full(g, 0, t->dtype, &t->shape), n->in[1], dy[0], 0);
}

static QnStatus embedding_call(const QnNode *n, QnDeviceCall *c)
{
    const QnType *t = &n->in[0]->type;
    if (!qn_dtype_is_float(t->dtype))
        return qn_fail(QN_EUNSUPPORTED, "embedding: the device text is for floating point");
    bool wide = n->in[1]->type.dtype == QN_DTYPE_I64;
    *c = (QnDeviceCall){ .kernel = wide ? "embedding_i64" : "embedding_i32",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    qn_device_int(c, t->shape.dim[0]);
    qn_device_int(c, t->shape.dim[1]);
    return QN_OK;
}

static const QnSample embedding_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 3, 2 }, QN_DTYPE_I64, 0, 3 } }, .n_in = 2 },
    { .in = { { 2, { 5, 130 } }, { 1, { 9 }, QN_DTYPE_I32, 0, 4 } }, .n_in = 2 },
};

QN_API QnValue *qn_embedding(QnGraph *g, QnValue *table, QnValue *ids)
{
    return qn_emit2(g, &qn_op_embedding, NULL, table, ids);
}

static QnStatus embedding_put(QnOnnxPut *p, const QnNode *n)
{
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_value(p, n->in[1]) };
    qn_put_attr_int(p, qn_put_as(p, &n->out[0], "Gather", in, 2), "axis", 0);
    return qn_put_status(p);
}

const QnOp qn_op_embedding = {
    .name = "embedding",
    .version = 1,
    .doc = "rows of a table by ids",
    .n_in = 2,
    .traits = QN_MOVES_DATA,
    .infer = embedding_infer,
    .cost = embedding_cost,
    .ref = embedding_ref,
    .grad = embedding_grad,
    .index_in = 2,
    .device = QN_TEXT(embedding),
    .call = embedding_call,
    .onnx_put = embedding_put,
    .onnx_writes = "Gather",
    QN_SAMPLES(embedding_samples),
};
#endif

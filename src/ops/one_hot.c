/* ids (…) become rows (…,depth) that are 1 at the id and 0 elsewhere; an id outside 0..depth-1
 * gives a row of zeros. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL one_hot_i64(QN_GLOBAL QN_T *y, QN_GLOBAL const qn_long *id, qn_long count, qn_long depth)
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, id[i / depth] == i % depth ? 1.0f : 0.0f);
}

QN_KERNEL one_hot_i32(QN_GLOBAL QN_T *y, QN_GLOBAL const int *id, qn_long count, qn_long depth)
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, id[i / depth] == i % depth ? 1.0f : 0.0f);
}
#endif

#ifdef QN_HOST
#include "ops/region.h"

typedef struct Attr {
    int64_t depth;
    QnDtype dtype;
} Attr;

static const QnAttrField one_hot_fields[] = {
    { .name = "depth",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, depth),
      .def = 1,
      .min = 1,
      .max = 1e15,
      .doc = "number of classes" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type" },
};

static QnStatus one_hot_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QN_TRY(qn_region_check_index("one_hot", c->in[0]));
    c->out[0].shape = c->in[0]->shape;
    c->out[0].dtype = a->dtype;
    QnShape *s = &c->out[0].shape;
    if (s->rank == QN_MAX_RANK)
        return qn_fail(QN_ESHAPE, "one_hot: ids of rank %d leave no room for an axis", s->rank);
    s->dim[s->rank++] = a->depth;
    return QN_OK;
}

static QnStatus one_hot_ref(const QnRefArgs *a)
{
    int64_t depth = ((const Attr *)a->attr)->depth;
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++)
        a->out[0][i] = a->in[0][i / depth] == (double)(i % depth);
    return QN_OK;
}

static QnStatus one_hot_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    bool wide = n->in[0]->type.dtype == QN_DTYPE_I64;
    if (!qn_dtype_is_float(a->dtype))
        return qn_fail(QN_EUNSUPPORTED, "one_hot: the device text is for floating point");
    *c = (QnDeviceCall){ .kernel = wide ? "one_hot_i64" : "one_hot_i32",
                         .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    qn_device_int(c, a->depth);
    return QN_OK;
}

static const QnSample one_hot_samples[] = {
    { .in = { { 2, { 3, 4 }, QN_DTYPE_I64, -1, 5 } },
      .n_in = 1,
      .attr = &(Attr){ 5, QN_DTYPE_F32 },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 1, { 7 }, QN_DTYPE_I32, 0, 129 } },
      .n_in = 1,
      .attr = &(Attr){ 130, QN_DTYPE_F32 },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 0, { 0 }, QN_DTYPE_I64, 0, 2 } },
      .n_in = 1,
      .attr = &(Attr){ 3, QN_DTYPE_BOOL },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_one_hot(QnGraph *g, QnValue *ids, int64_t depth, QnDtype dtype)
{
    return qn_emit1(g, &qn_op_one_hot, &(Attr){ depth, dtype }, ids);
}

const QnOp qn_op_one_hot = {
    .name = "one_hot",
    .version = 1,
    .doc = "rows that are 1 at the id",
    .n_in = 1,
    .traits = QN_NO_GRAD | QN_ANY_DTYPE,
    QN_ATTRS(Attr, one_hot_fields),
    .infer = one_hot_infer,
    .ref = one_hot_ref,
    .device = QN_TEXT(one_hot),
    .call = one_hot_call,
    QN_SAMPLES(one_hot_samples),
};
#endif

/* Where max_pool takes its elements from: i64 of its output's shape, counted over all of x in
 * row-major order, or with column_major with the first spatial axis fastest inside each plane. The
 * first of equal elements, NaN counts as greatest; -1 for a window in padding alone. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/util.h"
#include "ops/window.h"

typedef struct Attr {
    QnPoolAttr pool; /* first: QN_POOL_FIELDS */
    bool column_major;
} Attr;

static const QnAttrField max_pool_indices_fields[] = {
    QN_POOL_FIELDS,
    { .name = "column_major",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, column_major),
      .doc = "spatial axes count in the opposite order" },
};

static QnStatus max_pool_indices_infer(QnInfer *c)
{
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "max_pool_indices: needs floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    c->out[0].dtype = QN_DTYPE_I64;
    return qn_window_pool_shape(c->graph, "max_pool_indices", c->attr, &c->in[0]->shape,
                                &c->out[0].shape);
}

static QnCost max_pool_indices_cost(const QnNode *n)
{
    QnWindow w = qn_window_pool(n->attr, &n->in[0]->type.shape, &n->out[0].type.shape);
    return (QnCost){ .flops = (double)qn_shape_count(&n->out[0].type.shape) *
                              (double)(w.k[0] * w.k[1] * w.k[2]),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus max_pool_indices_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnWindow w = qn_window_pool(&attr->pool, &a->in_type[0]->shape, &a->out_type[0]->shape);
    int64_t windows = w.out[0] * w.out[1] * w.out[2], cells = w.in[0] * w.in[1] * w.in[2];
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++) {
        int64_t plane = i / windows * cells;
        int64_t at = qn_window_argmax(&w, a->in[0] + plane, i % windows);
        if (at >= 0 && attr->column_major) {
            int64_t p = at / w.in[2] / w.in[1], q = at / w.in[2] % w.in[1], r = at % w.in[2];
            at = p + w.in[0] * (q + w.in[1] * r);
        }
        a->out[0][i] = (double)(at < 0 ? -1 : plane + at);
    }
    return QN_OK;
}

static const QnSample max_pool_indices_samples[] = {
    { .in = { { 4, { 2, 3, 6, 4 }, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 2, { 2, 2 } } }, false } },
    { .in = { { 4, { 1, 2, 7, 8 }, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 2, { 3, 3 } },
                         .strides = { 2, { 2, 2 } },
                         .pads = { 4, { 1, 0, 1, 1 } },
                         .ceil_mode = true },
                       true } },
    { .in = { { 3, { 1, 1, 130 }, .distinct = true } },
      .n_in = 1,
      .attr =
          &(Attr){ { .kernel = { 1, { 3 } }, .strides = { 1, { 2 } }, .dilations = { 1, { 2 } } },
                   false } },
};

QN_API QnValue *qn_max_pool_indices(QnGraph *g, QnValue *x, const QnPoolAttr *attr,
                                    bool column_major)
{
    return qn_emit1(g, &qn_op_max_pool_indices, &(Attr){ *attr, column_major }, x);
}

const QnOp qn_op_max_pool_indices = {
    .name = "max_pool_indices",
    .version = 1,
    .doc = "where max_pool takes its elements from",
    .n_in = 1,
    .traits = QN_NO_GRAD,
    QN_ATTRS(Attr, max_pool_indices_fields),
    .infer = max_pool_indices_infer,
    .cost = max_pool_indices_cost,
    .ref = max_pool_indices_ref,
    QN_SAMPLES(max_pool_indices_samples),
};
#endif

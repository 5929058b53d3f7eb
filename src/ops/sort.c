/* The elements along an axis in order, and the indices (i64) they had. Equal elements keep their
 * order; NaN counts as the greatest. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/rank.h"

typedef struct Attr {
    int64_t axis;
    bool descending;
} Attr;

static const QnAttrField sort_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "sorted axis" },
    { .name = "descending",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, descending),
      .doc = "greatest first" },
};

static QnStatus sort_infer(QnInfer *c)
{
    int64_t asked = ((const Attr *)c->attr)->axis;
    int axis;
    if (!qn_shape_axis(&c->in[0]->shape, asked, &axis))
        return qn_fail(QN_EARG, "sort: axis %lld is out of range for rank %d", (long long)asked,
                       c->in[0]->shape.rank);
    c->out[0] = c->out[1] = *c->in[0];
    c->out[1].dtype = QN_DTYPE_I64;
    return QN_OK;
}

static QnStatus sort_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    const QnShape *s = &a->in_type[0]->shape;
    int axis = 0;
    qn_shape_axis(s, attr->axis, &axis);
    return qn_rank_ref(a, axis, s->dim[axis], attr->descending);
}

static void sort_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_rank_grad(g, n, dy[0], ((const Attr *)n->attr)->axis);
}

static const QnSample sort_samples[] = {
    { .in = { { 2, { 4, 7 }, .distinct = true } }, .n_in = 1 },
    { .in = { { 3, { 2, 130, 3 }, .lo = -9, .hi = 9, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ 1, true } },
    { .in = { { 1, { 9 }, QN_DTYPE_I32, -3, 3 } },
      .n_in = 1,
      .attr = &(Attr){ 0, false },
      .flags = QN_SAMPLE_NO_GRAD }, /* integers */
};

/* out[0]: values, out[1]: indices; poison if the graph has failed. */
QN_API void qn_sort(QnGraph *g, QnValue *x, int64_t axis, bool descending, QnValue *out[2])
{
    QnNode *n = qn_emit(g, &qn_op_sort, &(Attr){ axis, descending }, &x, 1);
    out[0] = qn_node_out(g, n, 0);
    out[1] = qn_node_out(g, n, 1);
}

/* The indices alone. */
QN_API QnValue *qn_argsort(QnGraph *g, QnValue *x, int64_t axis, bool descending)
{
    QnValue *out[2];
    qn_sort(g, x, axis, descending, out);
    return out[1];
}

const QnOp qn_op_sort = {
    .name = "sort",
    .version = 1,
    .doc = "elements in order along an axis and where they were",
    .n_in = 1,
    .n_out = 2,
    .traits = QN_ROWWISE | QN_WHOLE,
    QN_ATTRS(Attr, sort_fields),
    .infer = sort_infer,
    .ref = sort_ref,
    .grad = sort_grad,
    QN_SAMPLES(sort_samples),
};
#endif

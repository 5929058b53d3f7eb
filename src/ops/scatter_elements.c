/* y = x, then along axis 0 y[index[i,j], j] is replaced by, or combined with, u[i,j], in row-major
 * order of u. With replacement equal indices keep the last; the gradient counts each update as if
 * it were the one kept. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"
#include "ops/scatter.h"

typedef struct Attr {
    int64_t axis;
    int reduction;
} Attr;

static const QnAttrField scatter_elements_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which indices pick" },
    { .name = "reduction",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(Attr, reduction),
      .names = qn_scatter_names,
      .doc = "how an update meets what is there; none: it replaces it" },
};

static QnStatus scatter_elements_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *i = &c->in[1]->shape, *u = &c->in[2]->shape;
    QN_TRY(qn_region_check_index("scatter_elements", c->in[1]));
    QN_TRY(qn_region_check_elements("scatter_elements", &c->in[0]->shape, i, a->axis));
    bool fits = i->rank == u->rank;
    for (int k = 0; fits && k < u->rank; k++)
        fits = qn_region_may_equal(i->dim[k], u->dim[k]);
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "scatter_elements: updates are %s, indices %s; they must agree",
                       qn_shape_text(u, p), qn_shape_text(i, q));
    }
    if (c->in[0]->dtype != c->in[2]->dtype ||
        (a->reduction != QN_SCATTER_NONE &&
         (c->in[0]->dtype == QN_DTYPE_BOOL || qn_dtype_is_storage(c->in[0]->dtype))))
        return qn_fail(QN_EDTYPE, "scatter_elements: %s cannot be combined with %s",
                       qn_dtype_name(c->in[2]->dtype), qn_dtype_name(c->in[0]->dtype));
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnCost scatter_elements_cost(const QnNode *n)
{
    double x = (double)qn_type_bytes(&n->in[0]->type), u = (double)qn_type_bytes(&n->in[2]->type);
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[2]->type.shape),
                     .bytes_read = x + u + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = x };
}

static QnStatus scatter_elements_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    const QnShape *s = &a->in_type[0]->shape, *from = &a->in_type[1]->shape;
    int64_t index[QN_MAX_RANK] = { 0 }, stride[QN_MAX_RANK];
    int axis = 0;
    qn_shape_axis(s, attr->axis, &axis);
    qn_shape_strides(s, stride);
    memcpy(a->out[0], a->in[0], (size_t)qn_shape_count(s) * sizeof(double));
    for (int64_t i = 0, n = qn_shape_count(from); i < n; i++) {
        int64_t j;
        QN_TRY(qn_region_index("scatter_elements", a->in[1][i], i, s->dim[axis], true, &j));
        int64_t at = qn_util_offset(s->rank, index, stride) + (j - index[axis]) * stride[axis];
        qn_scatter_at(a, attr->reduction, at, i);
        qn_util_next(from, index);
    }
    return QN_OK;
}

static void scatter_elements_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    const QnType *u = &n->in[2]->type;
    if (a->reduction > QN_SCATTER_ADD) {
        qn_fail(QN_EUNSUPPORTED, "scatter_elements: no gradient with reduction %s",
                qn_scatter_names[a->reduction]);
        qn_graph_poison(g);
        return;
    }
    dx[0] = dy[0];
    if (a->reduction == QN_SCATTER_NONE)
        dx[0] = qn_scatter_elements(g, dy[0], n->in[1], qn_full(g, 0, u->dtype, &u->shape), a->axis,
                                    QN_SCATTER_NONE);
    dx[2] = qn_gather_elements(g, dy[0], n->in[1], a->axis);
}

static const QnSample scatter_elements_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 3, 6 }, QN_DTYPE_I64, -4, 3 }, { 2, { 3, 6 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_ADD } },
    { .in = { { 3, { 2, 5, 3 } }, { 3, { 2, 130, 3 }, QN_DTYPE_I32, 0, 4 }, { 3, { 2, 130, 3 } } },
      .n_in = 3,
      .attr = &(Attr){ -2, QN_SCATTER_ADD } },
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 1 }, QN_DTYPE_I64, -7, 6 }, { 2, { 4, 1 } } },
      .n_in = 3,
      .attr = &(Attr){ 1, QN_SCATTER_NONE } },
    { .in = { { 2, { 4, 7 } }, { 2, { 5, 7 }, QN_DTYPE_I64, 0, 3 }, { 2, { 5, 7 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_MUL },
      .flags = QN_SAMPLE_NO_GRAD }, /* refused with reductions other than add */
    { .in = { { 2, { 4, 7 } }, { 2, { 5, 7 }, QN_DTYPE_I64, 0, 3 }, { 2, { 5, 7 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_MAX },
      .flags = QN_SAMPLE_NO_GRAD }, /* as above */
};

QN_API QnValue *qn_scatter_elements(QnGraph *g, QnValue *x, QnValue *indices, QnValue *u,
                                    int64_t axis, QnScatter reduction)
{
    return qn_emit3(g, &qn_op_scatter_elements, &(Attr){ axis, (int)reduction }, x, indices, u);
}

static const QnOnnxMap scatter_elements_onnx[] = {
    { .name = "Scatter", .since = 9, .until = 10 },
    { .name = "ScatterElements", .since = 11 },
};

const QnOp qn_op_scatter_elements = {
    .name = "scatter_elements",
    .version = 1,
    .doc = "elements replaced or combined where indices say",
    .n_in = 3,
    .traits = QN_ANY_DTYPE | QN_WHOLE,
    .index_in = 1u << 1,
    QN_ATTRS(Attr, scatter_elements_fields),
    .infer = scatter_elements_infer,
    .cost = scatter_elements_cost,
    .ref = scatter_elements_ref,
    .grad = scatter_elements_grad,
    .inplace = 1,
    QN_ONNX(scatter_elements_onnx),
    QN_SAMPLES(scatter_elements_samples),
};
#endif

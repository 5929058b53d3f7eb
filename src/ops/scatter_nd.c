/* y = x, then the slices that tuples of indices name (see gather_nd) are replaced by, or have added
 * to them, those of u, in order. With replacement equal tuples keep the last; the gradient counts
 * each update as if it were the one kept. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"
#include "ops/scatter.h"

typedef struct Attr {
    int64_t batch_dims;
    int reduction;
} Attr;

static const QnAttrField scatter_nd_fields[] = {
    { .name = "batch_dims",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, batch_dims),
      .max = QN_MAX_RANK - 1,
      .doc = "leading axes that x and indices share" },
    { .name = "reduction",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(Attr, reduction),
      .names = qn_scatter_names,
      .doc = "how an update meets what is there; none: it replaces it" },
};

static QnStatus scatter_nd_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *u = &c->in[2]->shape;
    QnShape want;
    QN_TRY(qn_region_check_index("scatter_nd", c->in[1]));
    QN_TRY(qn_region_tuple_shape("scatter_nd", &c->in[0]->shape, &c->in[1]->shape, a->batch_dims,
                                 &want));
    bool fits = want.rank == u->rank;
    for (int i = 0; fits && i < u->rank; i++)
        fits = qn_region_may_equal(want.dim[i], u->dim[i]);
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "scatter_nd: updates are %s, must be %s", qn_shape_text(u, p),
                       qn_shape_text(&want, q));
    }
    if (c->in[0]->dtype != c->in[2]->dtype ||
        (a->reduction != QN_SCATTER_NONE &&
         (c->in[0]->dtype == QN_DTYPE_BOOL || qn_dtype_is_storage(c->in[0]->dtype))))
        return qn_fail(QN_EDTYPE, "scatter_nd: %s cannot be combined with %s",
                       qn_dtype_name(c->in[2]->dtype), qn_dtype_name(c->in[0]->dtype));
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnCost scatter_nd_cost(const QnNode *n)
{
    double x = (double)qn_type_bytes(&n->in[0]->type), u = (double)qn_type_bytes(&n->in[2]->type);
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[2]->type.shape),
                     .bytes_read = x + u + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = x };
}

static QnStatus scatter_nd_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnTuples t = qn_region_tuples(&a->in_type[0]->shape, &a->in_type[1]->shape, attr->batch_dims);
    memcpy(a->out[0], a->in[0], (size_t)qn_shape_count(&a->in_type[0]->shape) * sizeof(double));
    for (int64_t p = 0; p < t.n; p++) {
        int64_t at;
        QN_TRY(qn_region_tuple("scatter_nd", &t, a->in[1], p, &at));
        for (int64_t i = 0; i < t.slice; i++)
            qn_scatter_at(a, attr->reduction, at + i, p * t.slice + i);
    }
    return QN_OK;
}

static void scatter_nd_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    const QnType *u = &n->in[2]->type;
    if (a->reduction > QN_SCATTER_ADD) {
        qn_fail(QN_EUNSUPPORTED, "scatter_nd: no gradient with reduction %s",
                qn_scatter_names[a->reduction]);
        qn_graph_poison(g);
        return;
    }
    dx[0] = dy[0];
    if (a->reduction == QN_SCATTER_NONE)
        dx[0] = qn_scatter_nd(g, dy[0], n->in[1], qn_full(g, 0, u->dtype, &u->shape), a->batch_dims,
                              QN_SCATTER_NONE);
    dx[2] = qn_gather_nd(g, dy[0], n->in[1], a->batch_dims);
}

static const QnSample scatter_nd_samples[] = {
    { .in = { { 3, { 4, 4, 7 } }, { 2, { 5, 2 }, QN_DTYPE_I64, -4, 3 }, { 2, { 5, 7 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_ADD } },
    { .in = { { 3, { 2, 5, 3 } }, { 3, { 2, 65, 1 }, QN_DTYPE_I32, 0, 4 }, { 3, { 2, 65, 3 } } },
      .n_in = 3,
      .attr = &(Attr){ 1, QN_SCATTER_ADD } },
    { .in = { { 2, { 5, 3 } }, { 2, { 1, 1 }, QN_DTYPE_I64, 0, 4 }, { 2, { 1, 3 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_NONE } },
    { .in = { { 2, { 4, 7 } }, { 2, { 5, 1 }, QN_DTYPE_I64, 0, 3 }, { 2, { 5, 7 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_MUL },
      .flags = QN_SAMPLE_NO_GRAD }, /* refused with reductions other than add */
    { .in = { { 2, { 4, 7 } }, { 2, { 5, 2 }, QN_DTYPE_I64, 0, 3 }, { 1, { 5 } } },
      .n_in = 3,
      .attr = &(Attr){ 0, QN_SCATTER_MIN },
      .flags = QN_SAMPLE_NO_GRAD }, /* as above */
};

QN_API QnValue *qn_scatter_nd(QnGraph *g, QnValue *x, QnValue *indices, QnValue *u,
                              int64_t batch_dims, QnScatter reduction)
{
    return qn_emit3(g, &qn_op_scatter_nd, &(Attr){ batch_dims, (int)reduction }, x, indices, u);
}

static const QnOnnxMap scatter_nd_onnx[] = { { .name = "ScatterND", .since = 11 } };

const QnOp qn_op_scatter_nd = {
    .name = "scatter_nd",
    .version = 1,
    .doc = "slices replaced or combined where tuples of indices say",
    .n_in = 3,
    .traits = QN_ANY_DTYPE | QN_WHOLE,
    .index_in = 1u << 1,
    QN_ATTRS(Attr, scatter_nd_fields),
    .infer = scatter_nd_infer,
    .cost = scatter_nd_cost,
    .ref = scatter_nd_ref,
    .grad = scatter_nd_grad,
    .inplace = 1,
    QN_ONNX(scatter_nd_onnx),
    QN_SAMPLES(scatter_nd_samples),
};
#endif

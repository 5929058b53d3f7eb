/* The k greatest (or least) elements along an axis, in order, and their indices (i64). Of equal
 * ones the first comes first; NaN counts as the greatest. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/rank.h"

typedef struct Attr {
    int64_t k, axis;
    bool largest;
} Attr;

static const QnAttrField topk_fields[] = {
    { .name = "k",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, k),
      .def = 1,
      .max = 1e15,
      .doc = "how many" },
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "searched axis" },
    { .name = "largest",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, largest),
      .def = 1,
      .doc = "the greatest, not the least" },
};

static QnStatus topk_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *s = &c->in[0]->shape;
    int axis;
    if (!qn_shape_axis(s, a->axis, &axis))
        return qn_fail(QN_EARG, "topk: axis %lld is out of range for rank %d", (long long)a->axis,
                       s->rank);
    if (s->dim[axis] >= 0 && a->k > s->dim[axis])
        return qn_fail(QN_ESHAPE, "topk: k is %lld, axis %d has length %lld", (long long)a->k, axis,
                       (long long)s->dim[axis]);
    c->out[0] = *c->in[0];
    c->out[0].shape.dim[axis] = a->k;
    c->out[1] = c->out[0];
    c->out[1].dtype = QN_DTYPE_I64;
    return QN_OK;
}

static QnStatus topk_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    int axis = 0;
    qn_shape_axis(&a->in_type[0]->shape, attr->axis, &axis);
    return qn_rank_ref(a, axis, attr->k, attr->largest);
}

static void topk_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_rank_grad(g, n, dy[0], ((const Attr *)n->attr)->axis);
}

static const QnSample topk_samples[] = {
    { .in = { { 2, { 4, 7 }, .distinct = true } }, .n_in = 1, .attr = &(Attr){ 3, -1, true } },
    { .in = { { 3, { 2, 130, 3 }, .lo = -9, .hi = 9, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ 5, 1, false } },
    { .in = { { 1, { 9 }, QN_DTYPE_I32, -3, 3 } },
      .n_in = 1,
      .attr = &(Attr){ 9, 0, true },
      .flags = QN_SAMPLE_NO_GRAD }, /* integers */
};

/* out[0]: values, out[1]: indices; poison if the graph has failed. */
QN_API void qn_topk(QnGraph *g, QnValue *x, int64_t k, int64_t axis, bool largest, QnValue *out[2])
{
    QnNode *n = qn_emit(g, &qn_op_topk, &(Attr){ k, axis, largest }, &x, 1);
    out[0] = qn_node_out(g, n, 0);
    out[1] = qn_node_out(g, n, 1);
}

static QnStatus topk_import(QnOnnxNode *n)
{
    int64_t k = qn_onnx_int(n, "k", 1);
    QnValue *out[2];
    if (n->opset >= 10)
        QN_TRY(qn_onnx_in_int(n, 1, &k));
    qn_topk(n->g, qn_onnx_in(n, 0), k, qn_onnx_int(n, "axis", -1),
            qn_onnx_int(n, "largest", 1) != 0, out);
    QN_TRY(qn_onnx_out(n, 0, out[0]));
    return qn_onnx_out(n, 1, out[1]);
}

static const QnOnnxMap topk_onnx[] = { { .name = "TopK", .since = 1, .import = topk_import } };

const QnOp qn_op_topk = {
    .name = "topk",
    .version = 1,
    .doc = "the k greatest elements along an axis and where they are",
    .n_in = 1,
    .n_out = 2,
    .traits = QN_ROWWISE | QN_WHOLE,
    QN_ATTRS(Attr, topk_fields),
    .infer = topk_infer,
    .ref = topk_ref,
    .grad = topk_grad,
    QN_ONNX(topk_onnx),
    QN_SAMPLES(topk_samples),
};
#endif

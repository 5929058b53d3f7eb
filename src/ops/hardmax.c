/* 1 at the greatest element along an axis, 0 elsewhere; the first of equals. A NaN counts as
 * greatest. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t axis;
} Attr;

static const QnAttrField hardmax_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which one element is 1" },
};

static QnStatus hardmax_infer(QnInfer *c)
{
    int axis;
    QN_TRY(qn_util_axis_infer(c, "hardmax", ((const Attr *)c->attr)->axis));
    qn_shape_axis(&c->in[0]->shape, ((const Attr *)c->attr)->axis, &axis);
    if (c->in[0]->shape.dim[axis] == 0)
        return qn_fail(QN_ESHAPE, "hardmax: axis %d has length 0; nothing is greatest", axis);
    return QN_OK;
}

static void hardmax_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnType *t = &n->in[0]->type;
    QnShape row = qn_util_keep_shape(&t->shape, ~0u);
    int axis = 0;
    qn_shape_axis(&t->shape, ((const Attr *)n->attr)->axis, &axis);
    row.dim[axis] = t->shape.dim[axis];
    QnValue *at = qn_arange(g, 0, 1, t->shape.dim[axis], QN_DTYPE_I64);
    QnValue *best = qn_argmax(g, n->in[0], axis, true);
    out[0] = qn_cast(g, qn_equal(g, qn_reshape(g, at, &row), best), t->dtype);
}

static const QnSample hardmax_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 2, 130, 3 } } }, .n_in = 1, .attr = &(Attr){ 1 } },
};

QN_API QnValue *qn_hardmax(QnGraph *g, QnValue *x, int64_t axis)
{
    return qn_emit1(g, &qn_op_hardmax, &(Attr){ axis }, x);
}

static QnStatus hardmax_import(QnOnnxNode *n)
{
    return qn_onnx_rowwise(n, qn_hardmax);
}

static const QnOnnxMap hardmax_onnx[] = {
    { .name = "Hardmax", .since = 1, .import = hardmax_import },
};

const QnOp qn_op_hardmax = {
    .name = "hardmax",
    .version = 1,
    .doc = "1 at the greatest element along an axis, 0 elsewhere",
    .n_in = 1,
    .traits = QN_NO_GRAD,
    QN_ATTRS(Attr, hardmax_fields),
    .infer = hardmax_infer,
    .lower = hardmax_lower,
    QN_ONNX(hardmax_onnx),
    QN_SAMPLES(hardmax_samples),
};
#endif

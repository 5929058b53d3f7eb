/* x by its norm along an axis: y = x / (sum of |x|^p)^(1/p), p 1 or 2. Where all are 0, so is y. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t axis, p;
} Attr;

static const QnAttrField lp_normalize_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which the norm is taken" },
    { .name = "p",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, p),
      .def = 2,
      .min = 1,
      .max = 2,
      .doc = "of the norm: 1 sums sizes, 2 squares" },
};

static QnStatus lp_normalize_infer(QnInfer *c)
{
    return qn_util_axis_infer(c, "lp_normalize", ((const Attr *)c->attr)->axis);
}

static void lp_normalize_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = n->in[0]->type.dtype;
    QnValue *x = qn_cast(g, n->in[0], qn_norm_stat(t));
    QnInts axis = QN_INTS(a->axis);
    QnValue *norm = a->p == 1 ? qn_norm_l1(g, x, axis, true) : qn_norm_l2(g, x, axis, true);
    QnValue *none = qn_equal(g, norm, qn_scalar_like(g, norm, 0));
    norm = qn_where(g, none, qn_scalar_like(g, norm, 1), norm);
    out[0] = qn_cast(g, qn_div(g, x, norm), t);
}

static const QnSample lp_normalize_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 2, 130, 3 }, .keep_off = 0.01 } }, .n_in = 1, .attr = &(Attr){ 1, 1 } },
    { .in = { { 2, { 3, 5 }, .keep_off = 0.01 } }, .n_in = 1, .attr = &(Attr){ 0, 2 } },
};

QN_API QnValue *qn_lp_normalize(QnGraph *g, QnValue *x, int64_t axis, int64_t p)
{
    return qn_emit1(g, &qn_op_lp_normalize, &(Attr){ axis, p }, x);
}

static const QnOnnxMap lp_normalize_onnx[] = { { .name = "LpNormalization", .since = 1 } };

const QnOp qn_op_lp_normalize = {
    .name = "lp_normalize",
    .version = 1,
    .doc = "x by its norm along an axis",
    .n_in = 1,
    QN_ATTRS(Attr, lp_normalize_fields),
    .infer = lp_normalize_infer,
    .lower = lp_normalize_lower,
    QN_ONNX(lp_normalize_onnx),
    QN_SAMPLES(lp_normalize_samples),
};
#endif

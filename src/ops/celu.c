/* CELU: y = x for x > 0, alpha (e^(x / alpha) - 1) otherwise. Barron 2017. */
#include "ops/dialect.h"

QN_SCALAR float celu_f(float x, float alpha)
{
    return x > 0.0f ? x : alpha * qn_expm1f(x / alpha);
}
QN_MAP1P(celu, p0)

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double alpha;
} Attr;

static const QnAttrField celu_fields[] = {
    { .name = "alpha",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, alpha),
      .def = 1,
      .min = 1e-6,
      .max = 1e6,
      .doc = "y tends to -alpha" },
};

static double celu_ref(const double *x, const double *param)
{
    return x[0] > 0 ? x[0] : param[0] * expm1(x[0] / param[0]);
}

/* below zero dx = dy (y / alpha + 1) */
static void celu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    double alpha = ((const Attr *)n->attr)->alpha;
    QnValue *y = &n->out[0], *on = qn_greater(g, y, qn_scalar_like(g, y, 0));
    QnValue *slope = qn_add_scalar(g, qn_mul_scalar(g, y, 1 / alpha), 1);
    dx[0] = qn_where(g, on, dy[0], qn_mul(g, dy[0], slope));
}

static const QnSample celu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } },
      .n_in = 1,
      .attr = &(Attr){ 0.5 },
      .lo = -3,
      .hi = 3 },
};

QN_API QnValue *qn_celu(QnGraph *g, QnValue *x, double alpha)
{
    return qn_emit1(g, &qn_op_celu, &(Attr){ alpha }, x);
}

static const QnOnnxMap celu_onnx[] = { { .name = "Celu", .since = 12 } };

const QnOp qn_op_celu = {
    .name = "celu",
    .version = 1,
    .doc = "x > 0 ? x : alpha (e^(x / alpha) - 1)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, celu_fields),
    .grad = celu_grad,
    .map = &(const QnMapInfo){ .ref = celu_ref, .flops = 20 },
    .device = QN_TEXT(celu),
    QN_ONNX(celu_onnx),
    QN_SAMPLES(celu_samples),
};
#endif

/* y = x * sigmoid(alpha x). Ramachandran et al. 2017; with alpha 1 it is silu. */
#include "ops/dialect.h"

QN_SCALAR float swish_f(float x, float alpha)
{
    return x / (1.0f + qn_expf(-alpha * x));
}
QN_MAP1P(swish, p0)

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double alpha;
} Attr;

static const QnAttrField swish_fields[] = {
    { .name = "alpha",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, alpha),
      .def = 1,
      .doc = "steepness of the sigmoid" },
};

static double swish_ref(const double *x, const double *param)
{
    return x[0] / (1 + exp(-param[0] * x[0]));
}

/* dx = dy (s + alpha y (1 - s)), s = sigmoid(alpha x) */
static void swish_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    double alpha = ((const Attr *)n->attr)->alpha;
    QnValue *y = &n->out[0], *s = qn_sigmoid(g, qn_mul_scalar(g, n->in[0], alpha));
    QnValue *rest = qn_mul_scalar(g, qn_sub(g, y, qn_mul(g, y, s)), alpha);
    dx[0] = qn_mul(g, dy[0], qn_add(g, s, rest));
}

static const QnSample swish_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -6, .hi = 6 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .attr = &(Attr){ 1.7 }, .lo = -50, .hi = 50 },
};

QN_API QnValue *qn_swish(QnGraph *g, QnValue *x, double alpha)
{
    return qn_emit1(g, &qn_op_swish, &(Attr){ alpha }, x);
}

static const QnOnnxMap swish_onnx[] = { { .name = "Swish", .since = 24 } };

const QnOp qn_op_swish = {
    .name = "swish",
    .version = 1,
    .doc = "x * sigmoid(alpha x)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, swish_fields),
    .grad = swish_grad,
    .map = &(const QnMapInfo){ .ref = swish_ref, .flops = 12 },
    .device = QN_TEXT(swish),
    QN_ONNX(swish_onnx),
    QN_SAMPLES(swish_samples),
};
#endif

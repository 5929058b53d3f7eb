/* y = x for x > alpha, 0 otherwise. Konda et al. 2014. */
#include "ops/dialect.h"

QN_SCALAR float thresholded_relu_f(float x, float alpha)
{
    return x > alpha ? x : 0.0f;
}
QN_MAP1P(thresholded_relu, p0)

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double alpha;
} Attr;

static const QnAttrField thresholded_relu_fields[] = {
    { .name = "alpha",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, alpha),
      .def = 1,
      .doc = "what is greater passes" },
};

static double thresholded_relu_ref(const double *x, const double *param)
{
    return x[0] > param[0] ? x[0] : 0;
}

static void thresholded_relu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0];
    QnValue *on = qn_greater(g, x, qn_scalar_like(g, x, ((const Attr *)n->attr)->alpha));
    dx[0] = qn_where(g, on, dy[0], qn_scalar_like(g, dy[0], 0));
}

static const QnSample thresholded_relu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 0.5 } },
      .n_in = 1,
      .attr = &(Attr){ -0.5 },
      .lo = -3,
      .hi = 3 },
};

QN_API QnValue *qn_thresholded_relu(QnGraph *g, QnValue *x, double alpha)
{
    return qn_emit1(g, &qn_op_thresholded_relu, &(Attr){ alpha }, x);
}

static const QnOnnxMap thresholded_relu_onnx[] = { { .name = "ThresholdedRelu", .since = 1 } };

const QnOp qn_op_thresholded_relu = {
    .name = "thresholded_relu",
    .version = 1,
    .doc = "x > alpha ? x : 0",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, thresholded_relu_fields),
    .grad = thresholded_relu_grad,
    .map = &(const QnMapInfo){ .ref = thresholded_relu_ref, .flops = 1 },
    .device = QN_TEXT(thresholded_relu),
    QN_ONNX(thresholded_relu_onnx),
    QN_SAMPLES(thresholded_relu_samples),
};
#endif

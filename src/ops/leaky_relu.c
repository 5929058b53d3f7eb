/* y = x for x > 0, alpha x otherwise */
#include "ops/dialect.h"

QN_SCALAR float leaky_relu_f(float x, float alpha)
{
    return x > 0.0f ? x : alpha * x;
}
QN_MAP1P(leaky_relu, p0)

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double alpha;
} Attr;

static const QnAttrField leaky_relu_fields[] = {
    { .name = "alpha",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, alpha),
      .def = 0.01,
      .doc = "slope below zero" },
};

static double leaky_relu_ref(const double *x, const double *param)
{
    return x[0] > 0 ? x[0] : param[0] * x[0];
}

/* by the output where its sign is that of x */
static void leaky_relu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    double alpha = ((const Attr *)n->attr)->alpha;
    QnValue *side = alpha >= 0 ? &n->out[0] : n->in[0];
    QnValue *on = qn_greater(g, side, qn_scalar_like(g, side, 0));
    dx[0] = qn_where(g, on, dy[0], qn_mul_scalar(g, dy[0], alpha));
}

static const QnSample leaky_relu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .attr = &(Attr){ -0.3 } },
};

QN_API QnValue *qn_leaky_relu(QnGraph *g, QnValue *x, double alpha)
{
    return qn_emit1(g, &qn_op_leaky_relu, &(Attr){ alpha }, x);
}

static const QnOnnxMap leaky_relu_onnx[] = { { .name = "LeakyRelu", .since = 1 } };

const QnOp qn_op_leaky_relu = {
    .name = "leaky_relu",
    .version = 1,
    .doc = "x > 0 ? x : alpha x",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, leaky_relu_fields),
    .grad = leaky_relu_grad,
    .map = &(const QnMapInfo){ .ref = leaky_relu_ref, .flops = 2 },
    .device = QN_TEXT(leaky_relu),
    QN_ONNX(leaky_relu_onnx),
    QN_SAMPLES(leaky_relu_samples),
};
#endif

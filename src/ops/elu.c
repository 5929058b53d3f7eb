/* ELU: y = x for x > 0, alpha (e^x - 1) otherwise. Clevert et al. 2015. */
#include "ops/dialect.h"

QN_SCALAR float elu_f(float x, float alpha)
{
    return x > 0.0f ? x : alpha * qn_expm1f(x);
}
QN_MAP1P(elu, p0)

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double alpha;
} Attr;

static const QnAttrField elu_fields[] = {
    { .name = "alpha",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, alpha),
      .def = 1,
      .doc = "y tends to -alpha" },
};

static double elu_ref(const double *x, const double *param)
{
    return x[0] > 0 ? x[0] : param[0] * expm1(x[0]);
}

/* below zero dx = dy (y + alpha); by the output where its sign is that of x */
static void elu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    double alpha = ((const Attr *)n->attr)->alpha;
    QnValue *y = &n->out[0], *side = alpha >= 0 ? y : n->in[0];
    QnValue *on = qn_greater(g, side, qn_scalar_like(g, side, 0));
    dx[0] = qn_where(g, on, dy[0], qn_mul(g, dy[0], qn_add_scalar(g, y, alpha)));
}

static const QnSample elu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } },
      .n_in = 1,
      .attr = &(Attr){ 0.7 },
      .lo = -3,
      .hi = 3 },
};

QN_API QnValue *qn_elu(QnGraph *g, QnValue *x, double alpha)
{
    return qn_emit1(g, &qn_op_elu, &(Attr){ alpha }, x);
}

static const QnOnnxMap elu_onnx[] = { { .name = "Elu", .since = 1 } };

const QnOp qn_op_elu = {
    .name = "elu",
    .version = 1,
    .doc = "x > 0 ? x : alpha (e^x - 1)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, elu_fields),
    .grad = elu_grad,
    .map = &(const QnMapInfo){ .ref = elu_ref, .flops = 16 },
    .device = QN_TEXT(elu),
    QN_ONNX(elu_onnx),
    QN_SAMPLES(elu_samples),
};
#endif

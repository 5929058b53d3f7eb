/* y = x + bias for x < -lambd, x - bias for x > lambd, 0 between: soft shrinkage where the bias is
 * lambd, hard where it is 0. */
#include "ops/dialect.h"

QN_SCALAR float shrink_f(float x, float lambd, float bias)
{
    float high = x > lambd ? x - bias : 0.0f;
    return x < -lambd ? x + bias : high;
}
QN_MAP1P(shrink, p0, p1)

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    double lambd, bias;
} Attr;

static const QnAttrField shrink_fields[] = {
    { .name = "lambd",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, lambd),
      .def = 0.5,
      .doc = "what lies within it of zero becomes zero" },
    { .name = "bias",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, bias),
      .doc = "taken from the size of what stays" },
};

static double shrink_ref(const double *x, const double *param)
{
    return x[0] < -param[0] ? x[0] + param[1] : x[0] > param[0] ? x[0] - param[1] : 0;
}

static void shrink_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0];
    double lambd = ((const Attr *)n->attr)->lambd;
    QnValue *on = qn_logical_or(g, qn_less(g, x, qn_scalar_like(g, x, -lambd)),
                                qn_greater(g, x, qn_scalar_like(g, x, lambd)));
    dx[0] = qn_where(g, on, dy[0], qn_scalar_like(g, dy[0], 0));
}

static const QnSample shrink_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 0.5 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 1.5 } },
      .n_in = 1,
      .attr = &(Attr){ 1.5, 0.75 },
      .lo = -3,
      .hi = 3 },
};

QN_API QnValue *qn_shrink(QnGraph *g, QnValue *x, double lambd, double bias)
{
    return qn_emit1(g, &qn_op_shrink, &(Attr){ lambd, bias }, x);
}

static const QnOnnxMap shrink_onnx[] = { { .name = "Shrink", .since = 9 } };

const QnOp qn_op_shrink = {
    .name = "shrink",
    .version = 1,
    .doc = "zero near zero, moved toward it elsewhere",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, shrink_fields),
    .grad = shrink_grad,
    .map = &(const QnMapInfo){ .ref = shrink_ref, .flops = 2 },
    .device = QN_TEXT(shrink),
    QN_ONNX(shrink_onnx),
    QN_SAMPLES(shrink_samples),
};
#endif

/* y = tan x, x in radians */
#include "ops/dialect.h"

QN_SCALAR float tan_f(float x)
{
    return qn_tanf(x);
}
QN_MAP1(tan)

#ifdef QN_HOST
#include "ops/onnx.h"

static double tan_ref(const double *x, const double *param)
{
    (void)param;
    return tan(x[0]);
}

/* dx = dy (1 + y^2) */
static void tan_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0];
    dx[0] = qn_mul(g, dy[0], qn_add_scalar(g, qn_mul(g, y, y), 1));
}

static const QnSample tan_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -1.2, .hi = 1.2 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = 2, .hi = 4.2 },
};

QN_API QnValue *qn_tan(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_tan, NULL, x);
}

static const QnOnnxMap tan_onnx[] = { { .name = "Tan", .since = 7 } };

const QnOp qn_op_tan = {
    .name = "tan",
    .version = 1,
    .doc = "tangent",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = tan_grad,
    .map = &(const QnMapInfo){ .ref = tan_ref, .flops = 20 },
    .device = QN_TEXT(tan),
    QN_ONNX(tan_onnx),
    QN_SAMPLES(tan_samples),
};
#endif

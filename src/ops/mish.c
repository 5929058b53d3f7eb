/* Mish: y = x tanh(ln(1 + e^x)). Misra 2019. With p = e^x, tanh(ln(1 + p)) = n / (n + 2), n = p^2 +
 * 2 p. */
#include "ops/dialect.h"

QN_SCALAR float mish_f(float x)
{
    float p = qn_expf(qn_minf(x, 20.0f)), n = p * (p + 2.0f); /* from 20 on the factor is 1 */
    return x * (n / (n + 2.0f));
}
QN_MAP1(mish)

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"

static double mish_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] * tanh(fmax(x[0], 0) + log1p(exp(-fabs(x[0]))));
}

/* t = tanh(softplus(x)): dx = dy (t + x (1 - t^2) sigmoid(x)) */
static void mish_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0], *t = qn_tanh(g, qn_softplus(g, x));
    QnValue *rest = qn_sub(g, qn_scalar_like(g, t, 1), qn_square(g, t));
    QnValue *bend = qn_mul(g, x, qn_mul(g, rest, qn_sigmoid(g, x)));
    dx[0] = qn_mul(g, dy[0], qn_add(g, t, bend));
}

static const QnSample mish_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -4, .hi = 4 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -30, .hi = 30 },
};

QN_API QnValue *qn_mish(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_mish, NULL, x);
}

static const QnOnnxMap mish_onnx[] = { { .name = "Mish", .since = 18 } };

/* Before opset 18: x tanh(softplus(x)). */
static QnStatus mish_put(QnOnnxPut *p, const QnNode *n)
{
    if (qn_put_opset(p) >= 18) {
        qn_put_same(p, n, "Mish");
        return qn_put_status(p);
    }
    const char *x = qn_put_value(p, n->in[0]), *s = qn_put_1(p, "Softplus", &x, 1);
    const char *t = qn_put_1(p, "Tanh", &s, 1);
    qn_put_as(p, &n->out[0], "Mul", (const char *[]){ x, t }, 2);
    return qn_put_status(p);
}

const QnOp qn_op_mish = {
    .name = "mish",
    .version = 1,
    .doc = "x tanh(softplus(x))",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = mish_grad,
    .map = &(const QnMapInfo){ .ref = mish_ref, .flops = 18 },
    .device = QN_TEXT(mish),
    QN_ONNX(mish_onnx),
    .onnx_put = mish_put,
    .onnx_writes = "Mish,Mul,Softplus,Tanh",
    QN_SAMPLES(mish_samples),
};
#endif

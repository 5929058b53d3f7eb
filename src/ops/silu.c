/* SiLU, also called swish: y = x * sigmoid(x). Elfwing et al. 2017, Ramachandran et al. 2017. */
#include "ops/dialect.h"

QN_SCALAR float silu_f(float x)
{
    return x / (1.0f + qn_expf(-x));
}
QN_MAP1(silu)

#ifdef QN_HOST
#include "ops/onnx_put.h"

static double silu_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] / (1 + exp(-x[0]));
}

/* dx = dy * (s + y * (1 - s)), s = sigmoid(x) */
static void silu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *s = qn_sigmoid(g, n->in[0]);
    QnValue *slope = qn_add(g, s, qn_sub(g, y, qn_mul(g, y, s)));
    dx[0] = qn_mul(g, dy[0], slope);
}

static const QnSample silu_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -6, .hi = 6 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -90, .hi = 90 },
};

QN_API QnValue *qn_silu(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_silu, NULL, x);
}

static QnStatus silu_put(QnOnnxPut *p, const QnNode *n)
{
    const char *x = qn_put_value(p, n->in[0]), *s = qn_put_1(p, "Sigmoid", &x, 1);
    qn_put_as(p, &n->out[0], "Mul", (const char *[]){ x, s }, 2);
    return qn_put_status(p);
}

const QnOp qn_op_silu = {
    .name = "silu",
    .version = 1,
    .doc = "x * sigmoid(x)",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = silu_grad,
    .map = &(const QnMapInfo){ .ref = silu_ref, .flops = 12 },
    .device = QN_TEXT(silu),
    .onnx_put = silu_put,
    .onnx_writes = "Mul,Sigmoid",
    QN_SAMPLES(silu_samples),
};
#endif

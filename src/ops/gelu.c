/* GELU, exact: y = x Phi(x), Phi the normal distribution. Hendrycks and Gimpel 2016. */
#include "ops/dialect.h"

QN_SCALAR float gelu_f(float x)
{
    return x * qn_normal_cdff(x);
}
QN_MAP1(gelu)

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"

static double gelu_ref(const double *x, const double *param)
{
    (void)param;
    return 0.5 * x[0] * erfc(-x[0] * M_SQRT1_2);
}

/* dx = dy (Phi(x) + x phi(x)), phi the normal density */
static void gelu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0];
    QnValue *e = qn_erf(g, qn_mul_scalar(g, x, M_SQRT1_2));
    QnValue *upper = qn_add_scalar(g, qn_mul_scalar(g, e, 0.5), 0.5);
    QnValue *density = qn_exp(g, qn_mul_scalar(g, qn_square(g, x), -0.5));
    density = qn_mul_scalar(g, density, 0.5 * M_SQRT1_2 * M_2_SQRTPI); /* 1 / sqrt(2 pi) */
    dx[0] = qn_mul(g, dy[0], qn_add(g, upper, qn_mul(g, x, density)));
}

static const QnSample gelu_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -10, .hi = 10 },
};

QN_API QnValue *qn_gelu(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_gelu, NULL, x);
}

static QnStatus gelu_import(QnOnnxNode *n)
{
    bool by_tanh = qn_onnx_is(n, "approximate", "tanh", "none");
    if (!by_tanh && !qn_onnx_is(n, "approximate", "none", "none"))
        return qn_onnx_refuse(n, "an approximation that is neither none nor tanh");
    QnValue *x = qn_onnx_in(n, 0);
    return qn_onnx_out0(n, by_tanh ? qn_gelu_tanh(n->g, x) : qn_gelu(n->g, x));
}

static const QnOnnxMap gelu_onnx[] = { { .name = "Gelu", .since = 20, .import = gelu_import } };

/* Before opset 20: x / 2 (1 + erf(x / sqrt 2)). */
static QnStatus gelu_put(QnOnnxPut *p, const QnNode *n)
{
    if (qn_put_opset(p) >= 20) {
        qn_put_same(p, n, "Gelu");
        return qn_put_status(p);
    }
    QnDtype t = n->out[0].type.dtype;
    const char *x = qn_put_value(p, n->in[0]);
    const char *z =
        qn_put_1(p, "Mul", (const char *[]){ x, qn_put_number(p, t, 0.70710678118654752440) }, 2);
    const char *e = qn_put_1(p, "Erf", &z, 1);
    const char *one = qn_put_1(p, "Add", (const char *[]){ e, qn_put_number(p, t, 1) }, 2);
    const char *half = qn_put_1(p, "Mul", (const char *[]){ x, qn_put_number(p, t, 0.5) }, 2);
    qn_put_as(p, &n->out[0], "Mul", (const char *[]){ half, one }, 2);
    return qn_put_status(p);
}

const QnOp qn_op_gelu = {
    .name = "gelu",
    .version = 1,
    .doc = "x times the normal distribution function",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = gelu_grad,
    .map = &(const QnMapInfo){ .ref = gelu_ref, .flops = 25 },
    .device = QN_TEXT(gelu),
    QN_ONNX(gelu_onnx),
    .onnx_put = gelu_put,
    .onnx_writes = "Add,Erf,Gelu,Mul",
    QN_SAMPLES(gelu_samples),
};
#endif

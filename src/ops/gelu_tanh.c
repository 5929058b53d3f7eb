/* GELU approximated: y = x (1 + tanh(c (x + 0.044715 x^3))) / 2, c = sqrt(2 / pi). Hendrycks and
 * Gimpel 2016. */
#include "ops/dialect.h"

QN_SCALAR float gelu_tanh_f(float x)
{
    return 0.5f * x * (1.0f + qn_tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
}
QN_MAP1(gelu_tanh)

#ifdef QN_HOST
#include "ops/onnx_put.h"

#define GELU_C (M_SQRT1_2 * M_2_SQRTPI) /* sqrt(2 / pi) */

static double gelu_tanh_ref(const double *x, const double *param)
{
    (void)param;
    return 0.5 * x[0] * (1 + tanh(GELU_C * (x[0] + 0.044715 * x[0] * x[0] * x[0])));
}

static void gelu_tanh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_gelu_tanh_grad(g, dy[0], n->in[0]);
}

static const QnSample gelu_tanh_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .lo = -10, .hi = 10 },
};

QN_API QnValue *qn_gelu_tanh(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_gelu_tanh, NULL, x);
}

/* Before opset 20: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). */
static QnStatus gelu_tanh_put(QnOnnxPut *p, const QnNode *n)
{
    if (qn_put_opset(p) >= 20) {
        qn_put_attr_text(p, qn_put_same(p, n, "Gelu"), "approximate", "tanh");
        return qn_put_status(p);
    }
    QnDtype t = n->out[0].type.dtype;
    const char *x = qn_put_value(p, n->in[0]), *in[2] = { x, x };
    in[0] = qn_put_1(p, "Mul", in, 2); /* x^2 */
    in[0] = qn_put_1(p, "Mul", in, 2);
    in[1] = qn_put_number(p, t, 0.044715);
    in[0] = qn_put_1(p, "Mul", in, 2);
    in[1] = x;
    in[0] = qn_put_1(p, "Add", in, 2);
    in[1] = qn_put_number(p, t, 0.79788456080286535588);
    in[0] = qn_put_1(p, "Mul", in, 2);
    in[0] = qn_put_1(p, "Tanh", in, 1);
    in[1] = qn_put_number(p, t, 1);
    const char *one = qn_put_1(p, "Add", in, 2);
    const char *half = qn_put_1(p, "Mul", (const char *[]){ x, qn_put_number(p, t, 0.5) }, 2);
    qn_put_as(p, &n->out[0], "Mul", (const char *[]){ half, one }, 2);
    return qn_put_status(p);
}

const QnOp qn_op_gelu_tanh = {
    .name = "gelu_tanh",
    .version = 1,
    .doc = "GELU by its tanh approximation",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = gelu_tanh_grad,
    .map = &(const QnMapInfo){ .ref = gelu_tanh_ref, .flops = 24 },
    .device = QN_TEXT(gelu_tanh),
    .onnx_put = gelu_tanh_put,
    .onnx_writes = "Add,Gelu,Mul,Tanh",
    QN_SAMPLES(gelu_tanh_samples),
};
#endif

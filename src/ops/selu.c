/* SELU: y = scale x for x > 0, scale alpha (e^x - 1) otherwise. Klambauer et al. 2017. */
#include "ops/dialect.h"

QN_SCALAR float selu_f(float x)
{
    return 1.05070098f * (x > 0.0f ? x : 1.67326324f * qn_expm1f(x));
}
QN_MAP1(selu)

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717

static double selu_ref(const double *x, const double *param)
{
    (void)param;
    return SELU_SCALE * (x[0] > 0 ? x[0] : SELU_ALPHA * expm1(x[0]));
}

/* below zero dx = dy (y + scale alpha) */
static void selu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *on = qn_greater(g, y, qn_scalar_like(g, y, 0));
    QnValue *up = qn_mul_scalar(g, dy[0], SELU_SCALE);
    dx[0] = qn_where(g, on, up, qn_mul(g, dy[0], qn_add_scalar(g, y, SELU_SCALE * SELU_ALPHA)));
}

static const QnSample selu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -20, .hi = 20 },
};

QN_API QnValue *qn_selu(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_selu, NULL, x);
}

static QnStatus selu_import(QnOnnxNode *n)
{
    bool old = n->opset < 6;
    double alpha = qn_onnx_float(n, "alpha", old ? 1.6732 : 1.67326319217681884765625);
    double gamma = qn_onnx_float(n, "gamma", old ? 1.0507 : 1.05070102214813232421875);
    QnValue *x = qn_onnx_in(n, 0);
    if (fabs(alpha - 1.67326319217681884765625) < 1e-6 && fabs(gamma - 1.0507010221481323) < 1e-6)
        return qn_onnx_out0(n, qn_selu(n->g, x));
    return qn_onnx_out0(n, qn_mul(n->g, qn_elu(n->g, x, alpha), qn_scalar_like(n->g, x, gamma)));
}

static const QnOnnxMap selu_onnx[] = { { .name = "Selu", .since = 1, .import = selu_import } };

/* Its attributes are by default what we have. */
static QnStatus selu_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_same(p, n, "Selu");
    return qn_put_status(p);
}

const QnOp qn_op_selu = {
    .name = "selu",
    .version = 1,
    .doc = "scale (x > 0 ? x : alpha (e^x - 1))",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    .grad = selu_grad,
    .map = &(const QnMapInfo){ .ref = selu_ref, .flops = 17 },
    .device = QN_TEXT(selu),
    QN_ONNX(selu_onnx),
    .onnx_put = selu_put,
    .onnx_writes = "Selu",
    QN_SAMPLES(selu_samples),
};
#endif

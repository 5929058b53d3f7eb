/* y = max(x, 0) */
#include "ops/dialect.h"

QN_SCALAR float relu_f(float x)
{
    return x < 0.0f ? 0.0f : x;
}

QN_SCALAR qn_long relu_i(qn_long x)
{
    return x < 0 ? 0 : x;
}

QN_SCALAR qn_ulong relu_u(qn_ulong x)
{
    return x;
}
QN_MAP1(relu)

#ifdef QN_HOST
#include "ops/onnx.h"

static double relu_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] < 0 ? 0 : x[0];
}

static uint64_t relu_ref_uint(const uint64_t *x)
{
    return relu_u(x[0]);
}

static int64_t relu_ref_int(const int64_t *x)
{
    return relu_i(x[0]);
}

/* by the output, so that x need not be kept */
static void relu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *y = &n->out[0], *on = qn_greater(g, y, qn_scalar_like(g, y, 0));
    dx[0] = qn_where(g, on, dy[0], qn_scalar_like(g, dy[0], 0));
}

static const QnSample relu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_relu(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_relu, NULL, x);
}

static const QnOnnxMap relu_onnx[] = { { .name = "Relu", .since = 1 } };

const QnOp qn_op_relu = {
    .name = "relu",
    .version = 1,
    .doc = "max(x, 0)",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = relu_grad,
    .map =
        &(const QnMapInfo){
            .ref = relu_ref, .ref_int = relu_ref_int, .ref_uint = relu_ref_uint, .flops = 1 },
    .device = QN_TEXT(relu),
    QN_ONNX(relu_onnx),
    QN_SAMPLES(relu_samples),
};
#endif

/* y = |x| */
#include "ops/dialect.h"

QN_SCALAR float abs_f(float x)
{
    return qn_absf(x);
}

QN_SCALAR qn_long abs_i(qn_long x)
{
    return x < 0 ? (qn_long)(0 - (qn_ulong)x) : x;
}

QN_SCALAR qn_ulong abs_u(qn_ulong x)
{
    return x;
}
QN_MAP1(abs)

#ifdef QN_HOST
#include "ops/onnx.h"

static double abs_ref(const double *x, const double *param)
{
    (void)param;
    return fabs(x[0]);
}

static uint64_t abs_ref_uint(const uint64_t *x)
{
    return abs_u(x[0]);
}

static int64_t abs_ref_int(const int64_t *x)
{
    return abs_i(x[0]);
}

static void abs_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_mul(g, dy[0], qn_sign(g, n->in[0]));
}

static const QnSample abs_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -1000, .hi = 1000 },
};

QN_API QnValue *qn_abs(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_abs, NULL, x);
}

static const QnOnnxMap abs_onnx[] = { { .name = "Abs", .since = 1 } };

const QnOp qn_op_abs = {
    .name = "abs",
    .version = 1,
    .doc = "|x|",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = abs_grad,
    .map =
        &(const QnMapInfo){
            .ref = abs_ref, .ref_int = abs_ref_int, .ref_uint = abs_ref_uint, .flops = 1 },
    .device = QN_TEXT(abs),
    QN_ONNX(abs_onnx),
    QN_SAMPLES(abs_samples),
};
#endif

/* y = -1, 0 or 1 as x is negative, zero or positive; NaN stays NaN. */
#include "ops/dialect.h"

QN_SCALAR float sign_f(float x)
{
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

QN_SCALAR qn_long sign_i(qn_long x)
{
    return (x > 0) - (x < 0);
}

QN_SCALAR qn_ulong sign_u(qn_ulong x)
{
    return x != 0;
}
QN_MAP1(sign)

#ifdef QN_HOST
#include "ops/onnx.h"

static double sign_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] > 0 ? 1 : x[0] < 0 ? -1 : x[0];
}

static uint64_t sign_ref_uint(const uint64_t *x)
{
    return sign_u(x[0]);
}

static int64_t sign_ref_int(const int64_t *x)
{
    return sign_i(x[0]);
}

static const QnSample sign_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 } }, .n_in = 1, .lo = -1000, .hi = 1000 },
};

QN_API QnValue *qn_sign(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_sign, NULL, x);
}

static const QnOnnxMap sign_onnx[] = { { .name = "Sign", .since = 9 } };

const QnOp qn_op_sign = {
    .name = "sign",
    .version = 1,
    .doc = "-1, 0 or 1",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_NO_GRAD,
    .map =
        &(const QnMapInfo){
            .ref = sign_ref, .ref_int = sign_ref_int, .ref_uint = sign_ref_uint, .flops = 1 },
    .device = QN_TEXT(sign),
    QN_ONNX(sign_onnx),
    QN_SAMPLES(sign_samples),
};
#endif

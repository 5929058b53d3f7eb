/* y = the nearest integer, halves to the even one */
#include "ops/dialect.h"

QN_SCALAR float round_f(float x)
{
    return qn_rintf(x);
}
QN_MAP1(round)

#ifdef QN_HOST
#include "ops/onnx.h"

static double round_ref(const double *x, const double *param)
{
    (void)param;
    return rint(x[0]);
}

static const QnSample round_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 0.5 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 0.5 } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_round(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_round, NULL, x);
}

static const QnOnnxMap round_onnx[] = { { .name = "Round", .since = 11 } };

const QnOp qn_op_round = {
    .name = "round",
    .version = 1,
    .doc = "nearest integer, halves to even",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    .map = &(const QnMapInfo){ .ref = round_ref, .flops = 1 },
    .device = QN_TEXT(round),
    QN_ONNX(round_onnx),
    QN_SAMPLES(round_samples),
};
#endif

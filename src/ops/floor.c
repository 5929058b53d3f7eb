/* y = the greatest integer <= x */
#include "ops/dialect.h"

QN_SCALAR float floor_f(float x)
{
    return qn_floorf(x);
}
QN_MAP1(floor)

#ifdef QN_HOST
#include "ops/onnx.h"

static double floor_ref(const double *x, const double *param)
{
    (void)param;
    return floor(x[0]);
}

static const QnSample floor_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_floor(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_floor, NULL, x);
}

static const QnOnnxMap floor_onnx[] = { { .name = "Floor", .since = 1 } };

const QnOp qn_op_floor = {
    .name = "floor",
    .version = 1,
    .doc = "greatest integer up to x",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    .map = &(const QnMapInfo){ .ref = floor_ref, .flops = 1 },
    .device = QN_TEXT(floor),
    QN_ONNX(floor_onnx),
    QN_SAMPLES(floor_samples),
};
#endif

/* y = whether x is not a number */
#include "ops/dialect.h"

QN_SCALAR float is_nan_f(float x)
{
    return x != x ? 1.0f : 0.0f;
}
QN_MAP1(is_nan)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus is_nan_infer(QnInfer *c)
{
    QN_TRY(qn_infer_map(c, &qn_op_is_nan));
    c->out[0].dtype = QN_DTYPE_BOOL;
    return QN_OK;
}

static double is_nan_ref(const double *x, const double *param)
{
    (void)param;
    return isnan(x[0]) ? 1 : 0;
}

static const QnSample is_nan_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1 },
};

QN_API QnValue *qn_is_nan(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_is_nan, NULL, x);
}

static const QnOnnxMap is_nan_onnx[] = { { .name = "IsNaN", .since = 9 } };

const QnOp qn_op_is_nan = {
    .name = "is_nan",
    .version = 1,
    .doc = "whether x is not a number",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = is_nan_infer,
    .map = &(const QnMapInfo){ .ref = is_nan_ref, .flops = 1 },
    .device = QN_TEXT(is_nan),
    QN_ONNX(is_nan_onnx),
    QN_SAMPLES(is_nan_samples),
};
#endif

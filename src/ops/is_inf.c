/* y = whether x is infinite */
#include "ops/dialect.h"

QN_SCALAR float is_inf_f(float x)
{
    return qn_absf(x) == QN_INF ? 1.0f : 0.0f;
}
QN_MAP1(is_inf)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus is_inf_infer(QnInfer *c)
{
    QN_TRY(qn_infer_map(c, &qn_op_is_inf));
    c->out[0].dtype = QN_DTYPE_BOOL;
    return QN_OK;
}

static double is_inf_ref(const double *x, const double *param)
{
    (void)param;
    return isinf(x[0]) ? 1 : 0;
}

static const QnSample is_inf_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 1, { 130 } } }, .n_in = 1 },
};

QN_API QnValue *qn_is_inf(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_is_inf, NULL, x);
}

static QnStatus is_inf_import(QnOnnxNode *n)
{
    bool up = qn_onnx_int(n, "detect_positive", 1) != 0;
    bool down = qn_onnx_int(n, "detect_negative", 1) != 0;
    QnValue *x = qn_onnx_in(n, 0);
    if (qn_dtype_is_storage(x->type.dtype))
        x = qn_cast(n->g, x, QN_DTYPE_F32);
    QnValue *y = qn_is_inf(n->g, x), *zero = qn_scalar_like(n->g, x, 0);
    if (!up)
        y = qn_logical_and(n->g, y, qn_less(n->g, x, zero));
    if (!down)
        y = qn_logical_and(n->g, y, qn_greater(n->g, x, zero));
    return qn_onnx_out0(n, y);
}

static const QnOnnxMap is_inf_onnx[] = {
    { .name = "IsInf", .since = 10, .import = is_inf_import },
};

const QnOp qn_op_is_inf = {
    .name = "is_inf",
    .version = 1,
    .doc = "whether x is infinite",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = is_inf_infer,
    .map = &(const QnMapInfo){ .ref = is_inf_ref, .flops = 1 },
    .device = QN_TEXT(is_inf),
    QN_ONNX(is_inf_onnx),
    QN_SAMPLES(is_inf_samples),
};
#endif

/* y = whether a >= b, on every dtype, with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float greater_equal_f(float a, float b)
{
    return a >= b ? 1.0f : 0.0f;
}

QN_SCALAR qn_long greater_equal_i(qn_long a, qn_long b)
{
    return a >= b;
}

QN_SCALAR qn_ulong greater_equal_u(qn_ulong a, qn_ulong b)
{
    return a >= b;
}
QN_MAP2(greater_equal)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus greater_equal_infer(QnInfer *c)
{
    QN_TRY(qn_infer_map(c, &qn_op_greater_equal));
    c->out[0].dtype = QN_DTYPE_BOOL;
    return QN_OK;
}

static double greater_equal_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] >= x[1];
}

static uint64_t greater_equal_ref_uint(const uint64_t *x)
{
    return greater_equal_u(x[0], x[1]);
}

static int64_t greater_equal_ref_int(const int64_t *x)
{
    return greater_equal_i(x[0], x[1]);
}

static const QnSample greater_equal_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 },
              { 2, { 3, 1 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 3 },
              { 0, .dtype = QN_DTYPE_U8, .lo = 1, .hi = 2 } },
      .n_in = 2 },
};

QN_API QnValue *qn_greater_equal(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_greater_equal, NULL, a, b);
}

static const QnOnnxMap greater_equal_onnx[] = { { .name = "GreaterOrEqual", .since = 12 } };

const QnOp qn_op_greater_equal = {
    .name = "greater_equal",
    .version = 1,
    .doc = "whether a >= b",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = greater_equal_infer,
    .map = &(const QnMapInfo){ .ref = greater_equal_ref,
                               .ref_int = greater_equal_ref_int,
                               .ref_uint = greater_equal_ref_uint,
                               .flops = 1 },
    .device = QN_TEXT(greater_equal),
    QN_ONNX(greater_equal_onnx),
    QN_SAMPLES(greater_equal_samples),
};
#endif

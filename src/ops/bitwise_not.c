/* y = not x, bit by bit, of integers; the not of a bool is logical_not */
#include "ops/dialect.h"

QN_SCALAR qn_long bitwise_not_i(qn_long x)
{
    return ~x;
}

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus bitwise_not_infer(QnInfer *c)
{
    if (!qn_dtype_is_int(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "bitwise_not: needs an integer operand, not %s%s",
                       qn_dtype_name(c->in[0]->dtype),
                       c->in[0]->dtype == QN_DTYPE_BOOL ? ", which logical_not takes" : "");
    return qn_infer_map(c, &qn_op_bitwise_not);
}

static double bitwise_not_ref(const double *x, const double *param)
{
    (void)param;
    return -x[0] - 1;
}

static int64_t bitwise_not_ref_int(const int64_t *x)
{
    return bitwise_not_i(x[0]);
}

static const QnSample bitwise_not_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_I32, .lo = -99, .hi = 99 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 255 } }, .n_in = 1 },
};

QN_API QnValue *qn_bitwise_not(QnGraph *g, QnValue *x)
{
    if (!qn_value_is_poison(x) && x->type.dtype == QN_DTYPE_BOOL)
        return qn_logical_not(g, x);
    return qn_emit1(g, &qn_op_bitwise_not, NULL, x);
}

static const QnOnnxMap bitwise_not_onnx[] = { { .name = "BitwiseNot", .since = 18 } };

const QnOp qn_op_bitwise_not = {
    .name = "bitwise_not",
    .version = 1,
    .doc = "not x, bit by bit",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = bitwise_not_infer,
    .map = &(const QnMapInfo){ .ref = bitwise_not_ref, .ref_int = bitwise_not_ref_int, .flops = 1 },
    .device = QN_TEXT(bitwise_not),
    QN_ONNX(bitwise_not_onnx),
    QN_SAMPLES(bitwise_not_samples),
};
#endif

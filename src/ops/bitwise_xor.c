/* y = a xor b, bit by bit, with broadcasting; bools are one bit */
#include "ops/dialect.h"

QN_SCALAR float bitwise_xor_f(float a, float b) /* of bools */
{
    return (a != 0.0f) != (b != 0.0f) ? 1.0f : 0.0f;
}

QN_SCALAR qn_long bitwise_xor_i(qn_long a, qn_long b)
{
    return a ^ b;
}
QN_MAP2(bitwise_xor)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus bitwise_xor_infer(QnInfer *c)
{
    if (qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "bitwise_xor: needs integer or bool operands, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_infer_map(c, &qn_op_bitwise_xor);
}

static double bitwise_xor_ref(const double *x, const double *param)
{
    (void)param;
    return (x[0] != 0) != (x[1] != 0);
}

static int64_t bitwise_xor_ref_int(const int64_t *x)
{
    return bitwise_xor_i(x[0], x[1]);
}

static const QnSample bitwise_xor_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_I32, .lo = -99, .hi = 99 },
              { 2, { 4, 7 }, .dtype = QN_DTYPE_I32, .lo = -99, .hi = 99 } },
      .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 255 },
              { 2, { 3, 1 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 255 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 0, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } },
      .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 1e15 },
              { 1, { 9 }, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 1e15 } },
      .n_in = 2 },
};

QN_API QnValue *qn_bitwise_xor(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_bitwise_xor, NULL, a, b);
}

static const QnOnnxMap bitwise_xor_onnx[] = { { .name = "BitwiseXor", .since = 18 } };

const QnOp qn_op_bitwise_xor = {
    .name = "bitwise_xor",
    .version = 1,
    .doc = "a xor b, bit by bit",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = bitwise_xor_infer,
    .map = &(const QnMapInfo){ .ref = bitwise_xor_ref, .ref_int = bitwise_xor_ref_int, .flops = 1 },
    .device = QN_TEXT(bitwise_xor),
    QN_ONNX(bitwise_xor_onnx),
    QN_SAMPLES(bitwise_xor_samples),
};
#endif

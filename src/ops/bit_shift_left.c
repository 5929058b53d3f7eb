/* y = a shifted left by b bits, of integers, with broadcasting; 0 where b is negative or as much as
 * the bits that there are */
#include "ops/dialect.h"

QN_SCALAR qn_ulong bit_shift_left_u(qn_ulong a, qn_ulong b)
{
    return b < 64 ? a << b : 0;
}

QN_SCALAR qn_long bit_shift_left_i(qn_long a, qn_long b)
{
    return (qn_long)bit_shift_left_u((qn_ulong)a, (qn_ulong)b);
}

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus bit_shift_left_infer(QnInfer *c)
{
    if (!qn_dtype_is_int(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "bit_shift_left: needs integer operands, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_infer_map(c, &qn_op_bit_shift_left);
}

static double bit_shift_left_ref(const double *x, const double *param)
{
    (void)param;
    return ldexp(x[0], (int)fmin(x[1], 4096));
}

static int64_t bit_shift_left_ref_int(const int64_t *x)
{
    return bit_shift_left_i(x[0], x[1]);
}

static const QnSample bit_shift_left_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 255 },
              { 2, { 4, 7 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 9 } },
      .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .dtype = QN_DTYPE_U32, .lo = 0, .hi = 1e9 },
              { 2, { 3, 1 }, .dtype = QN_DTYPE_U32, .lo = 0, .hi = 40 } },
      .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 1e6 },
              { 0, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 20 } },
      .n_in = 2 },
    { .in = { { 1, { 30 }, .dtype = QN_DTYPE_I8, .lo = -128, .hi = 127 },
              { 1, { 30 }, .dtype = QN_DTYPE_I8, .lo = -2, .hi = 9 } },
      .n_in = 2 },
};

QN_API QnValue *qn_bit_shift_left(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_bit_shift_left, NULL, a, b);
}

/* Of both directions. */
static QnStatus bit_shift_import(QnOnnxNode *n)
{
    QnValue *a = qn_onnx_in(n, 0), *b = qn_onnx_in(n, 1);
    if (qn_onnx_is(n, "direction", "LEFT", ""))
        return qn_onnx_out0(n, qn_bit_shift_left(n->g, a, b));
    if (qn_onnx_is(n, "direction", "RIGHT", ""))
        return qn_onnx_out0(n, qn_bit_shift_right(n->g, a, b));
    return qn_onnx_refuse(n, "the direction must be LEFT or RIGHT");
}

static const QnOnnxMap bit_shift_onnx[] = {
    { .name = "BitShift", .since = 11, .import = bit_shift_import },
};

const QnOp qn_op_bit_shift_left = {
    .name = "bit_shift_left",
    .version = 1,
    .doc = "a shifted left by b bits",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = bit_shift_left_infer,
    .map = &(const QnMapInfo){ .ref = bit_shift_left_ref,
                               .ref_int = bit_shift_left_ref_int,
                               .flops = 1 },
    .device = QN_TEXT(bit_shift_left),
    QN_ONNX(bit_shift_onnx),
    QN_SAMPLES(bit_shift_left_samples),
};
#endif

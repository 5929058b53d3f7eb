/* y = a shifted right by b bits, of integers, with broadcasting; the sign stays. Where b is
 * negative or as much as the bits that there are, nothing but the sign is left: 0 or -1. */
#include "ops/dialect.h"

QN_SCALAR qn_ulong bit_shift_right_u(qn_ulong a, qn_ulong b)
{
    return b < 64 ? a >> b : 0;
}

QN_SCALAR qn_long bit_shift_right_i(qn_long a, qn_long b)
{
    return a >> (b >= 0 && b < 64 ? b : 63);
}

#ifdef QN_HOST

static QnStatus bit_shift_right_infer(QnInfer *c)
{
    if (!qn_dtype_is_int(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "bit_shift_right: needs integer operands, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_infer_map(c, &qn_op_bit_shift_right);
}

static double bit_shift_right_ref(const double *x, const double *param)
{
    (void)param;
    return floor(ldexp(x[0], -(int)fmin(x[1], 4096)));
}

static int64_t bit_shift_right_ref_int(const int64_t *x)
{
    return bit_shift_right_i(x[0], x[1]);
}

static uint64_t bit_shift_right_ref_uint(const uint64_t *x)
{
    return bit_shift_right_u(x[0], x[1]);
}

static const QnSample bit_shift_right_samples[] = {
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

QN_API QnValue *qn_bit_shift_right(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_bit_shift_right, NULL, a, b);
}

const QnOp qn_op_bit_shift_right = {
    .name = "bit_shift_right",
    .version = 1,
    .doc = "a shifted right by b bits",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = bit_shift_right_infer,
    .map = &(const QnMapInfo){ .ref = bit_shift_right_ref,
                               .ref_int = bit_shift_right_ref_int,
                               .ref_uint = bit_shift_right_ref_uint,
                               .flops = 1 },
    .device = QN_TEXT(bit_shift_right),
    QN_SAMPLES(bit_shift_right_samples),
};
#endif

/* y = whether a differs from b, on every dtype, with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float not_equal_f(float a, float b)
{
    return a != b ? 1.0f : 0.0f;
}

QN_SCALAR qn_long not_equal_i(qn_long a, qn_long b)
{
    return a != b;
}
QN_MAP2(not_equal)

#ifdef QN_HOST

static QnStatus not_equal_infer(QnInfer *c)
{
    QN_TRY(qn_infer_map(c, &qn_op_not_equal));
    c->out[0].dtype = QN_DTYPE_BOOL;
    return QN_OK;
}

static double not_equal_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] != x[1];
}

static int64_t not_equal_ref_int(const int64_t *x)
{
    return not_equal_i(x[0], x[1]);
}

static const QnSample not_equal_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 },
              { 2, { 3, 1 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 3 },
              { 0, .dtype = QN_DTYPE_U8, .lo = 1, .hi = 2 } },
      .n_in = 2 },
};

QN_API QnValue *qn_not_equal(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_not_equal, NULL, a, b);
}

const QnOp qn_op_not_equal = {
    .name = "not_equal",
    .version = 1,
    .doc = "whether a differs from b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = not_equal_infer,
    .map = &(const QnMapInfo){ .ref = not_equal_ref, .ref_int = not_equal_ref_int, .flops = 1 },
    .device = QN_TEXT(not_equal),
    QN_SAMPLES(not_equal_samples),
};
#endif

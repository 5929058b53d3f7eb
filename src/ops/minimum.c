/* y = the smaller of a and b, NaN if one is; with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float minimum_f(float a, float b)
{
    return a != a || a < b ? a : b;
}

QN_SCALAR qn_long minimum_i(qn_long a, qn_long b)
{
    return a < b ? a : b;
}

QN_SCALAR qn_ulong minimum_u(qn_ulong a, qn_ulong b)
{
    return a < b ? a : b;
}
QN_MAP2(minimum)

#ifdef QN_HOST
#include "ops/onnx.h"

static double minimum_ref(const double *x, const double *param)
{
    (void)param;
    return isnan(x[0]) || x[0] < x[1] ? x[0] : x[1];
}

static uint64_t minimum_ref_uint(const uint64_t *x)
{
    return minimum_u(x[0], x[1]);
}

static int64_t minimum_ref_int(const int64_t *x)
{
    return minimum_i(x[0], x[1]);
}

/* where both are equal, to a alone */
static void minimum_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *a = n->in[0], *first = qn_less_equal(g, a, n->in[1]);
    QnValue *zero = qn_scalar_like(g, dy[0], 0);
    dx[0] = qn_sum_to(g, qn_where(g, first, dy[0], zero), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_where(g, first, zero, dy[0]), &n->in[1]->type.shape);
}

static const QnSample minimum_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 } },
      .n_in = 2 },
};

QN_API QnValue *qn_minimum(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_minimum, NULL, a, b);
}

static QnStatus minimum_import(QnOnnxNode *n)
{
    return qn_onnx_pairs(n, qn_minimum);
}

static const QnOnnxMap minimum_onnx[] = { { .name = "Min", .since = 1, .import = minimum_import } };

const QnOp qn_op_minimum = {
    .name = "minimum",
    .version = 1,
    .doc = "the smaller of a and b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT,
    .grad = minimum_grad,
    .map = &(const QnMapInfo){ .ref = minimum_ref,
                               .ref_int = minimum_ref_int,
                               .ref_uint = minimum_ref_uint,
                               .flops = 1 },
    .device = QN_TEXT(minimum),
    QN_ONNX(minimum_onnx),
    QN_SAMPLES(minimum_samples),
};
#endif

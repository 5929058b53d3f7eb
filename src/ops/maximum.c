/* y = the larger of a and b, NaN if one is; with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float maximum_f(float a, float b)
{
    return a != a || a > b ? a : b;
}

QN_SCALAR qn_long maximum_i(qn_long a, qn_long b)
{
    return a > b ? a : b;
}

QN_SCALAR qn_ulong maximum_u(qn_ulong a, qn_ulong b)
{
    return a > b ? a : b;
}
QN_MAP2(maximum)

#ifdef QN_HOST
#include "ops/onnx.h"

static double maximum_ref(const double *x, const double *param)
{
    (void)param;
    return isnan(x[0]) || x[0] > x[1] ? x[0] : x[1];
}

static uint64_t maximum_ref_uint(const uint64_t *x)
{
    return maximum_u(x[0], x[1]);
}

static int64_t maximum_ref_int(const int64_t *x)
{
    return maximum_i(x[0], x[1]);
}

/* where both are equal, to a alone */
static void maximum_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *a = n->in[0], *first = qn_greater_equal(g, a, n->in[1]);
    QnValue *zero = qn_scalar_like(g, dy[0], 0);
    dx[0] = qn_sum_to(g, qn_where(g, first, dy[0], zero), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_where(g, first, zero, dy[0]), &n->in[1]->type.shape);
}

static const QnSample maximum_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 } },
      .n_in = 2 },
};

QN_API QnValue *qn_maximum(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_maximum, NULL, a, b);
}

static QnStatus maximum_import(QnOnnxNode *n)
{
    return qn_onnx_pairs(n, qn_maximum);
}

static const QnOnnxMap maximum_onnx[] = { { .name = "Max", .since = 1, .import = maximum_import } };

const QnOp qn_op_maximum = {
    .name = "maximum",
    .version = 1,
    .doc = "the larger of a and b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT,
    .grad = maximum_grad,
    .map = &(const QnMapInfo){ .ref = maximum_ref,
                               .ref_int = maximum_ref_int,
                               .ref_uint = maximum_ref_uint,
                               .flops = 1 },
    .device = QN_TEXT(maximum),
    QN_ONNX(maximum_onnx),
    QN_SAMPLES(maximum_samples),
};
#endif

/* y = a / b, with broadcasting. Integers: rounded toward zero, and 0 where b is 0. */
#include "ops/dialect.h"

QN_SCALAR float div_f(float a, float b)
{
    return a / b;
}

QN_SCALAR qn_long div_i(qn_long a, qn_long b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (qn_long)(0 - (qn_ulong)a) : a / b;
}

QN_SCALAR qn_ulong div_u(qn_ulong a, qn_ulong b)
{
    return b == 0 ? 0 : a / b;
}
QN_MAP2(div)

#ifdef QN_HOST
#include "ops/onnx.h"

static double div_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] / x[1];
}

static uint64_t div_ref_uint(const uint64_t *x)
{
    return div_u(x[0], x[1]);
}

static int64_t div_ref_int(const int64_t *x)
{
    return div_i(x[0], x[1]);
}

/* db = -dy y / b */
static void div_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *b = n->in[1], *da = qn_div(g, dy[0], b);
    dx[0] = qn_sum_to(g, da, &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_neg(g, qn_mul(g, da, &n->out[0])), &n->in[1]->type.shape);
}

static const QnSample div_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 }, .lo = 0.3, .hi = 3 } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 } }, { 2, { 3, 1 }, .lo = 0.3, .hi = 3 } }, .n_in = 2 },
    { .in = { { 1, { 130 } }, { 0, .lo = 0.3, .hi = 3 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -9, .hi = 9 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -3, .hi = 3 } },
      .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 99 },
              { 1, { 9 }, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 3 } },
      .n_in = 2 },
};

QN_API QnValue *qn_div(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_div, NULL, a, b);
}

static const QnOnnxMap div_onnx[] = { { .name = "Div", .since = 7 } };

const QnOp qn_op_div = {
    .name = "div",
    .version = 1,
    .doc = "a / b",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = div_grad,
    .map =
        &(const QnMapInfo){
            .ref = div_ref, .ref_int = div_ref_int, .ref_uint = div_ref_uint, .flops = 4 },
    .device = QN_TEXT(div),
    QN_ONNX(div_onnx),
    QN_SAMPLES(div_samples),
};
#endif

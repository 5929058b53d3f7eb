/* y = a^b, with broadcasting. Integers: negative powers are rounded toward zero. */
#include "ops/dialect.h"

QN_SCALAR float pow_f(float a, float b)
{
    return qn_powf(a, b);
}

QN_SCALAR qn_long pow_i(qn_long a, qn_long b)
{
    qn_ulong y = 1, base = (qn_ulong)a;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (qn_ulong e = (qn_ulong)b; e; e >>= 1) {
        y = e & 1 ? y * base : y; /* wraps, as hardware does */
        base *= base;
    }
    return (qn_long)y;
}

QN_SCALAR qn_ulong pow_u(qn_ulong a, qn_ulong b)
{
    qn_ulong y = 1;
    for (qn_ulong e = b; e; e >>= 1) {
        y = e & 1 ? y * a : y;
        a *= a;
    }
    return y;
}
QN_MAP2(pow)

#ifdef QN_HOST
#include "ops/onnx.h"

static double pow_ref(const double *x, const double *param)
{
    (void)param;
    return pow(x[0], x[1]);
}

static uint64_t pow_ref_uint(const uint64_t *x)
{
    return pow_u(x[0], x[1]);
}

static int64_t pow_ref_int(const int64_t *x)
{
    return pow_i(x[0], x[1]);
}

/* da = dy b a^(b - 1); db = dy y ln a, and 0 where a has no logarithm */
static void pow_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *a = n->in[0], *b = n->in[1];
    QnValue *da = qn_mul(g, b, qn_pow(g, a, qn_add_scalar(g, b, -1)));
    QnValue *positive = qn_greater(g, a, qn_scalar_like(g, a, 0));
    QnValue *log_a = qn_log(g, qn_where(g, positive, a, qn_scalar_like(g, a, 1)));
    dx[0] = qn_sum_to(g, qn_mul(g, dy[0], da), &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_mul(g, dy[0], qn_mul(g, &n->out[0], log_a)), &n->in[1]->type.shape);
}

static const QnSample pow_samples[] = {
    { .in = { { 2, { 4, 7 }, .lo = 0.3, .hi = 3 }, { 2, { 4, 7 }, .lo = -2, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .lo = 0.3, .hi = 3 }, { 2, { 3, 1 }, .lo = -2, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .lo = 0.3, .hi = 3 }, { 0, .lo = -2, .hi = 2 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -3, .hi = 3 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = 0, .hi = 5 } },
      .n_in = 2 },
};

QN_API QnValue *qn_pow(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_pow, NULL, a, b);
}

/* Base and exponent may differ in type; the result has the base's. */
static QnStatus pow_import(QnOnnxNode *n)
{
    QnValue *a = qn_onnx_in(n, 0), *b = qn_onnx_in(n, 1);
    QnDtype from = a->type.dtype, by = b->type.dtype, at = QN_DTYPE_F32;
    if (from == by)
        return qn_onnx_out0(n, qn_pow(n->g, a, b));
    if (qn_dtype_is_int(from) && qn_dtype_is_int(by))
        at = QN_DTYPE_I64;
    else if (qn_dtype_is_int(from) || from == QN_DTYPE_F64 || by == QN_DTYPE_F64)
        at = QN_DTYPE_F64;
    QnValue *y = qn_pow(n->g, qn_cast(n->g, a, at), qn_cast(n->g, b, at));
    return qn_onnx_out0(n, qn_cast(n->g, y, from));
}

static const QnOnnxMap pow_onnx[] = { { .name = "Pow", .since = 7, .import = pow_import } };

const QnOp qn_op_pow = {
    .name = "pow",
    .version = 1,
    .doc = "a^b",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = pow_grad,
    .map =
        &(const QnMapInfo){
            .ref = pow_ref, .ref_int = pow_ref_int, .ref_uint = pow_ref_uint, .flops = 30 },
    .device = QN_TEXT(pow),
    QN_ONNX(pow_onnx),
    QN_SAMPLES(pow_samples),
};
#endif

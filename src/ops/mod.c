/* y = a - b floor(a / b): the remainder with the sign of b. Integers: 0 where b is 0. */
#include "ops/dialect.h"

QN_SCALAR float mod_f(float a, float b)
{
    float r = qn_fmodf(a, b);
    return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}

QN_SCALAR qn_long mod_i(qn_long a, qn_long b)
{
    if (b == 0 || b == -1)
        return 0;
    qn_long r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

QN_SCALAR qn_ulong mod_u(qn_ulong a, qn_ulong b)
{
    return b == 0 ? 0 : a % b;
}
QN_MAP2(mod)

#ifdef QN_HOST
#include "ops/onnx.h"

static double mod_ref(const double *x, const double *param)
{
    (void)param;
    double r = fmod(x[0], x[1]);
    return r != 0 && (r < 0) != (x[1] < 0) ? r + x[1] : r;
}

static uint64_t mod_ref_uint(const uint64_t *x)
{
    return mod_u(x[0], x[1]);
}

static int64_t mod_ref_int(const int64_t *x)
{
    return mod_i(x[0], x[1]);
}

/* db = -dy floor(a / b) */
static void mod_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *b = n->in[1], *q = qn_floor(g, qn_div(g, n->in[0], b));
    dx[0] = qn_sum_to(g, dy[0], &n->in[0]->type.shape);
    dx[1] = qn_sum_to(g, qn_neg(g, qn_mul(g, dy[0], q)), &n->in[1]->type.shape);
}

static const QnSample mod_samples[] = {
    { .in = { { 2, { 4, 7 }, .lo = -5, .hi = 5 }, { 2, { 4, 7 }, .lo = 0.5, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .lo = -5, .hi = 5 }, { 2, { 3, 1 }, .lo = 0.5, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .lo = -5, .hi = 5 }, { 0, .lo = 0.5, .hi = 2 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -9, .hi = 9 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -3, .hi = 3 } },
      .n_in = 2 },
    { .in = { { 2, { 4, 7 }, .lo = -5, .hi = 5 }, { 1, { 7 }, .lo = -2, .hi = -0.5 } }, .n_in = 2 },
};

QN_API QnValue *qn_mod(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_mod, NULL, a, b);
}

static QnStatus mod_import(QnOnnxNode *n)
{
    QnValue *a = qn_onnx_in(n, 0), *b = qn_onnx_in(n, 1);
    return qn_onnx_out0(n, qn_onnx_int(n, "fmod", 0) ? qn_fmod(n->g, a, b) : qn_mod(n->g, a, b));
}

static const QnOnnxMap mod_onnx[] = { { .name = "Mod", .since = 10, .import = mod_import } };

const QnOp qn_op_mod = {
    .name = "mod",
    .version = 1,
    .doc = "remainder with the sign of b",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .grad = mod_grad,
    .map =
        &(const QnMapInfo){
            .ref = mod_ref, .ref_int = mod_ref_int, .ref_uint = mod_ref_uint, .flops = 10 },
    .device = QN_TEXT(mod),
    QN_ONNX(mod_onnx),
    QN_SAMPLES(mod_samples),
};
#endif

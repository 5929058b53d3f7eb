/* y = a where c, else b; with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float where_f(float c, float a, float b)
{
    return c != 0.0f ? a : b;
}

QN_SCALAR qn_long where_i(qn_long c, qn_long a, qn_long b)
{
    return c ? a : b;
}
QN_MAP3(where)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus where_infer(QnInfer *c)
{
    QnDtype dtype = c->in[1]->dtype;
    if (c->in[0]->dtype != QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE,
                       "where: the condition must be bool, not %s; compare with zero first",
                       qn_dtype_name(c->in[0]->dtype));
    if (dtype != c->in[2]->dtype)
        return qn_fail(QN_EDTYPE, "where: branches are %s and %s; cast one of them",
                       qn_dtype_name(dtype), qn_dtype_name(c->in[2]->dtype));
    c->out[0].dtype = dtype;
    return qn_infer_broadcast(c, "where");
}

static double where_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] != 0 ? x[1] : x[2];
}

static int64_t where_ref_int(const int64_t *x)
{
    return where_i(x[0], x[1], x[2]);
}

static void where_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *zero = qn_scalar_like(g, dy[0], 0);
    dx[1] = qn_sum_to(g, qn_where(g, n->in[0], dy[0], zero), &n->in[1]->type.shape);
    dx[2] = qn_sum_to(g, qn_where(g, n->in[0], zero, dy[0]), &n->in[2]->type.shape);
}

static const QnSample where_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 2, { 4, 7 } },
              { 2, { 4, 7 } } },
      .n_in = 3 },
    { .in = { { 2, { 3, 1 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 3, { 2, 3, 5 } },
              { 1, { 5 } } },
      .n_in = 3 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 }, { 1, { 130 } }, { 0 } },
      .n_in = 3 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 } },
      .n_in = 3 },
};

QN_API QnValue *qn_where(QnGraph *g, QnValue *c, QnValue *a, QnValue *b)
{
    return qn_emit3(g, &qn_op_where, NULL, c, a, b);
}

static const QnOnnxMap where_onnx[] = { { .name = "Where", .since = 9 } };

const QnOp qn_op_where = {
    .name = "where",
    .version = 1,
    .doc = "c ? a : b",
    .n_in = 3,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_ANY_DTYPE,
    .infer = where_infer,
    .grad = where_grad,
    .map = &(const QnMapInfo){ .ref = where_ref, .ref_int = where_ref_int, .flops = 1 },
    .device = QN_TEXT(where),
    QN_ONNX(where_onnx),
    QN_SAMPLES(where_samples),
};
#endif

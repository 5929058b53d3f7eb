/* y = whether a = b, on every dtype, with broadcasting */
#include "ops/dialect.h"

QN_SCALAR float equal_f(float a, float b)
{
    return a == b ? 1.0f : 0.0f;
}

QN_SCALAR qn_long equal_i(qn_long a, qn_long b)
{
    return a == b;
}
QN_MAP2(equal)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus equal_infer(QnInfer *c)
{
    QN_TRY(qn_infer_map(c, &qn_op_equal));
    c->out[0].dtype = QN_DTYPE_BOOL;
    return QN_OK;
}

static double equal_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] == x[1];
}

static int64_t equal_ref_int(const int64_t *x)
{
    return equal_i(x[0], x[1]);
}

static const QnSample equal_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 5 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 },
              { 2, { 3, 1 }, .dtype = QN_DTYPE_I32, .lo = -2, .hi = 2 } },
      .n_in = 2 },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 3 },
              { 0, .dtype = QN_DTYPE_U8, .lo = 1, .hi = 2 } },
      .n_in = 2 },
};

QN_API QnValue *qn_equal(QnGraph *g, QnValue *a, QnValue *b)
{
    return qn_emit2(g, &qn_op_equal, NULL, a, b);
}

static QnStatus equal_import(QnOnnxNode *n)
{
    bool text = false;
    for (int i = 0; i < n->n_in; i++)
        text |= n->in[i] && n->in[i]->known && n->in[i]->known->text;
    return text ? qn_onnx_equal_text(n)
                : qn_onnx_out0(n, qn_equal(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1)));
}

static const QnOnnxMap equal_onnx[] = { { .name = "Equal", .since = 7, .import = equal_import } };

const QnOp qn_op_equal = {
    .name = "equal",
    .version = 1,
    .doc = "whether a = b",
    .n_in = 2,
    .traits = QN_MAP | QN_COMMUTATIVE | QN_ANY_LAYOUT | QN_NO_GRAD,
    .infer = equal_infer,
    .map = &(const QnMapInfo){ .ref = equal_ref, .ref_int = equal_ref_int, .flops = 1 },
    .device = QN_TEXT(equal),
    QN_ONNX(equal_onnx),
    QN_SAMPLES(equal_samples),
};
#endif

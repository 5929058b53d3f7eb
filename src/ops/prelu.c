/* Parametric ReLU: y = x for x > 0, slope * x otherwise; the slope broadcasts to x. He et al. 2015.
 */
#include "ops/dialect.h"

QN_SCALAR float prelu_f(float x, float slope)
{
    return x > 0.0f ? x : x * slope;
}

QN_SCALAR qn_long prelu_i(qn_long x, qn_long slope)
{
    return x > 0 ? x : (qn_long)((qn_ulong)x * (qn_ulong)slope); /* wraps, as hardware does */
}
QN_MAP2(prelu)

#ifdef QN_HOST
#include "ops/onnx.h"

static QnStatus prelu_infer(QnInfer *c)
{
    const QnShape *x = &c->in[0]->shape, *y = &c->out[0].shape;
    QN_TRY(qn_infer_map(c, &qn_op_prelu));
    bool fits = y->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->dim[i] < 0 || y->dim[i] == x->dim[i];
    if (!fits) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(
            QN_ESHAPE,
            "prelu: the slope %s does not broadcast to x %s; a slope for each channel of "
            "(N,C,H,W) is (C,1,1)",
            qn_shape_text(&c->in[1]->shape, a), qn_shape_text(x, b));
    }
    return QN_OK;
}

static double prelu_ref(const double *x, const double *param)
{
    (void)param;
    return x[0] > 0 ? x[0] : x[0] * x[1];
}

static int64_t prelu_ref_int(const int64_t *x)
{
    return prelu_i(x[0], x[1]);
}

static void prelu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *x = n->in[0], *zero = qn_scalar_like(g, x, 0), *on = qn_greater(g, x, zero);
    dx[0] = qn_where(g, on, dy[0], qn_mul(g, dy[0], n->in[1]));
    dx[1] = qn_sum_to(g, qn_where(g, on, zero, qn_mul(g, dy[0], x)), &n->in[1]->type.shape);
}

static const QnSample prelu_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01 }, { 2, { 4, 7 } } }, .n_in = 2 },
    { .in = { { 4, { 2, 3, 2, 5 }, .keep_off = 0.01 }, { 3, { 3, 1, 1 } } }, .n_in = 2 },
    { .in = { { 1, { 130 }, .keep_off = 0.01 }, { 0 } }, .n_in = 2 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -9, .hi = 9 },
              { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -3, .hi = 3 } },
      .n_in = 2 },
};

QN_API QnValue *qn_prelu(QnGraph *g, QnValue *x, QnValue *slope)
{
    return qn_emit2(g, &qn_op_prelu, NULL, x, slope);
}

/* Before opset 7, a slope for each channel had one axis. */
static QnStatus prelu_import(QnOnnxNode *n)
{
    QnValue *x = qn_onnx_in(n, 0), *slope = qn_onnx_in(n, 1);
    int rank = x->type.shape.rank;
    if (n->opset < 7 && slope->type.shape.rank == 1 && rank > 2 && slope->type.shape.dim[0] != 1) {
        QnShape s = { .rank = rank - 1, .dim = { slope->type.shape.dim[0] } };
        for (int i = 1; i < s.rank; i++)
            s.dim[i] = 1;
        slope = qn_reshape(n->g, slope, &s);
    }
    return qn_onnx_out0(n, qn_prelu(n->g, x, slope));
}

static const QnOnnxMap prelu_onnx[] = { { .name = "PRelu", .since = 1, .import = prelu_import } };

const QnOp qn_op_prelu = {
    .name = "prelu",
    .version = 1,
    .doc = "x > 0 ? x : slope * x",
    .n_in = 2,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    .infer = prelu_infer,
    .grad = prelu_grad,
    .map = &(const QnMapInfo){ .ref = prelu_ref, .ref_int = prelu_ref_int, .flops = 2 },
    .device = QN_TEXT(prelu),
    QN_ONNX(prelu_onnx),
    QN_SAMPLES(prelu_samples),
};
#endif

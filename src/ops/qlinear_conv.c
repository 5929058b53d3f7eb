/* Convolution of quantised tensors, quantised again:
 *   y = saturate(round((conv(x - x_zero, w - w_zero) + bias) * x_scale w_scale / y_scale) + y_zero)
 * Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (optional, i32 in units of
 * x_scale w_scale). Sums are exact in i32. w_scale and w_zero are scalars or (M), the others
 * scalars. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx_window.h"
#include "ops/quant.h"
#include "ops/region.h"
#include "ops/window.h"

static const QnAttrField qlinear_conv_fields[] = { QN_CONV_FIELDS };

static QnStatus qlinear_conv_bias(const QnInfer *c)
{
    const QnType *b = c->n_in > 8 ? c->in[8] : NULL;
    QnDim m = c->in[3]->shape.dim[0];
    if (!b || b->dtype == QN_DTYPE_COUNT)
        return QN_OK;
    if (b->dtype != QN_DTYPE_I32)
        return qn_fail(QN_EDTYPE, "qlinear_conv: the bias is %s; it must be i32",
                       qn_dtype_name(b->dtype));
    if (b->shape.rank != 1 || !qn_region_may_equal(b->shape.dim[0], m))
        return qn_fail(QN_ESHAPE,
                       "qlinear_conv: the bias must hold one number for each of %lld channels",
                       (long long)m);
    return QN_OK;
}

static QnStatus qlinear_conv_infer(QnInfer *c)
{
    QnDtype code = c->in[7]->dtype;
    QnInfer sum = { .graph = c->graph,
                    .attr = c->attr,
                    .n_in = 4,
                    .in = (const QnType *[]){ c->in[0], c->in[3], c->in[2], c->in[5] } };
    if (code != QN_DTYPE_I8 && code != QN_DTYPE_U8)
        return qn_fail(QN_EDTYPE, "qlinear_conv: the zero point of y is %s; it must be i8 or u8",
                       qn_dtype_name(code));
    QN_TRY(qn_quant_check_pair(c, "qlinear_conv", "x", 1, c->in[0]->dtype));
    QN_TRY(qn_quant_check_pair(c, "qlinear_conv", "w", 4, c->in[3]->dtype));
    QN_TRY(qn_quant_check_pair(c, "qlinear_conv", "y", 6, code));
    QN_TRY(qn_op_conv_integer.infer(&sum));
    const QnShape *y = &c->in[6]->shape;
    if (y->rank > 1 || (y->rank == 1 && y->dim[0] != 1))
        return qn_fail(QN_ESHAPE, "qlinear_conv: y has several scales; give one");
    QN_TRY(qlinear_conv_bias(c));
    c->out[0] = (QnType){ .dtype = code, .shape = sum.out[0].shape };
    return QN_OK;
}

/* Numbers of output channels (or one for all), as they broadcast to y of this rank. */
static QnValue *qlinear_conv_channels(QnGraph *g, QnValue *v, int rank)
{
    const QnShape *s = &v->type.shape;
    QnShape to = { .rank = rank - 1 };
    for (int i = 0; i < to.rank; i++)
        to.dim[i] = i == 0 && s->rank ? s->dim[0] : 1;
    return qn_reshape(g, v, &to);
}

static void qlinear_conv_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue **in = n->in;
    int rank = in[0]->type.shape.rank;
    QnDtype t = qn_norm_stat(in[1]->type.dtype);
    QnShape one = { 0 };
    QnValue *sum = qn_conv_integer(g, in[0], in[3], in[2], in[5], n->attr);
    if (n->n_in > 8 && in[8])
        sum = qn_add(g, sum, qlinear_conv_channels(g, in[8], rank));
    QnValue *x_scale = qn_reshape(g, qn_cast(g, in[1], t), &one);
    QnValue *y_scale = qn_reshape(g, qn_cast(g, in[6], t), &one);
    QnValue *w_scale = qlinear_conv_channels(g, qn_cast(g, in[4], t), rank);
    QnValue *factor = qn_div(g, qn_mul(g, w_scale, x_scale), y_scale);
    QnValue *v = qn_mul(g, qn_cast(g, sum, t), factor);
    out[0] = qn_quant_code(g, v, qn_reshape(g, in[7], &one), in[7]->type.dtype, true);
}

static const QnSample qlinear_conv_samples[] = {
    { .in = { { 4, { 2, 3, 5, 6 }, QN_DTYPE_U8, 0, 255 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_U8, 100, 150 },
              { 4, { 4, 3, 3, 3 }, QN_DTYPE_I8, -128, 127 },
              { 1, { 4 }, .lo = 0.01, .hi = 0.02 },
              { 1, { 4 }, QN_DTYPE_I8, -20, 20 },
              { 0, .lo = 0.2, .hi = 0.4 },
              { 0, { 0 }, QN_DTYPE_U8, 100, 150 },
              { 1, { 4 }, QN_DTYPE_I32, -9999, 9999 } },
      .n_in = 9,
      .attr = &(QnConvAttr){ .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 } },
    { .in = { { 3, { 1, 4, 130 }, QN_DTYPE_I8, -128, 127 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_I8, -20, 20 },
              { 3, { 2, 2, 4 }, QN_DTYPE_I8, -128, 127 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_I8, -20, 20 },
              { 0, .lo = 0.2, .hi = 0.4 },
              { 0, { 0 }, QN_DTYPE_I8, -20, 20 } },
      .n_in = 8,
      .attr = &(QnConvAttr){ .strides = { 1, { 3 } }, .groups = 2 } },
};

/* bias may be NULL. */
QN_API QnValue *qn_qlinear_conv(QnGraph *g, QnValue *x, QnValue *x_scale, QnValue *x_zero,
                                QnValue *w, QnValue *w_scale, QnValue *w_zero, QnValue *y_scale,
                                QnValue *y_zero, QnValue *bias, const QnConvAttr *attr)
{
    QnValue *in[] = { x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias };
    return qn_emitn(g, &qn_op_qlinear_conv, attr, in, bias ? 9 : 8);
}

static QnStatus qlinear_conv_import(QnOnnxNode *n)
{
    const QnShape *x;
    const QnType *w = qn_onnx_type(n, 3);
    QnValue *in[9];
    QnConvAttr attr;
    QN_TRY(qn_onnx_window_input(n, &x));
    if (!w)
        return qn_fail(QN_EDTYPE, "input 3 must be a tensor of numbers");
    QN_TRY(qn_onnx_window_conv(n, x, &w->shape, &attr));
    for (int i = 0; i < 8; i++)
        in[i] = qn_onnx_in(n, i);
    in[8] = qn_onnx_in_or(n, 8, NULL);
    return qn_onnx_out0(n, qn_qlinear_conv(n->g, in[0], in[1], in[2], in[3], in[4], in[5], in[6],
                                           in[7], in[8], &attr));
}

static const QnOnnxMap qlinear_conv_onnx[] = {
    { .name = "QLinearConv", .since = 10, .import = qlinear_conv_import },
};

const QnOp qn_op_qlinear_conv = {
    .name = "qlinear_conv",
    .version = 1,
    .doc = "convolution of quantised operands, quantised again",
    .n_in = 8,
    .n_in_max = 9,
    .traits = QN_NO_GRAD,
    QN_ATTRS(QnConvAttr, qlinear_conv_fields),
    .infer = qlinear_conv_infer,
    .lower = qlinear_conv_lower,
    QN_ONNX(qlinear_conv_onnx),
    QN_SAMPLES(qlinear_conv_samples),
};
#endif

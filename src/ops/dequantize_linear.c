/* y = (x - zero) * scale, in the scale's dtype; see ops/quant.h for the shapes of scale and zero.
 * Arithmetic in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/quant.h"

typedef struct Attr {
    QnQuantAttr at;
} Attr;

static const QnAttrField dequantize_linear_fields[] = { QN_QUANT_FIELDS(Attr, at) };

static QnStatus dequantize_linear_infer(QnInfer *c)
{
    QnDtype x = c->in[0]->dtype;
    if (!qn_quant_is_code(x))
        return qn_fail(QN_EDTYPE,
                       "dequantize_linear: x is %s; it takes integers of at most 32 bits and "
                       "floats of 8",
                       qn_dtype_name(x));
    QN_TRY(qn_quant_check(c, "dequantize_linear", &((const Attr *)c->attr)->at, x));
    c->out[0].dtype = c->in[1]->dtype;
    c->out[0].shape = c->in[0]->shape;
    return QN_OK;
}

static void dequantize_linear_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *shape = &n->in[0]->type.shape;
    QnDtype y = n->in[1]->type.dtype, t = qn_norm_stat(y);
    QnQuantView v = qn_quant_view(shape, &n->in[1]->type.shape, &a->at);
    QnValue *scale = qn_quant_param(g, &v, qn_cast(g, n->in[1], t));
    QnValue *x = qn_reshape(g, qn_cast(g, n->in[0], t), &v.work);
    if (n->n_in > 2 && n->in[2])
        x = qn_sub(g, x, qn_cast(g, qn_quant_param(g, &v, n->in[2]), t));
    out[0] = qn_reshape(g, qn_cast(g, qn_mul(g, x, scale), y), shape);
}

static const QnSample dequantize_linear_samples[] = {
    { .in = { { 2, { 4, 7 }, QN_DTYPE_U8, 0, 255 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_U8, 100, 150 } },
      .n_in = 3 },
    { .in = { { 3, { 2, 3, 130 }, QN_DTYPE_I8, -128, 127 },
              { 1, { 3 }, .lo = 0.01, .hi = 0.05 },
              { 1, { 3 }, QN_DTYPE_I8, -20, 20 } },
      .n_in = 3 },
    { .in = { { 2, { 6, 5 }, QN_DTYPE_I8, -128, 127 }, { 2, { 2, 5 }, .lo = 0.01, .hi = 0.05 } },
      .n_in = 2,
      .attr = &(Attr){ { 0, 3 } } },
    { .in = { { 2, { 3, 7 }, QN_DTYPE_I8, -128, 127 }, { 2, { 3, 2 }, .lo = 0.01, .hi = 0.05 } },
      .n_in = 2,
      .attr = &(Attr){ { 1, 4 } } },
    { .in = { { 2, { 6, 5 }, QN_DTYPE_I4, -8, 7 },
              { 2, { 2, 5 }, .lo = 0.01, .hi = 0.05 },
              { 2, { 2, 5 }, QN_DTYPE_I4, -8, 7 } },
      .n_in = 3,
      .attr = &(Attr){ { 0, 3 } } },
    { .in = { { 1, { 130 }, QN_DTYPE_F8E5M2, -50, 50 }, { 0, .lo = 0.01, .hi = 0.02 } },
      .n_in = 2,
      .flags = QN_SAMPLE_NO_GRAD }, /* x is of a storage type */
    { .in = { { 1, { 9 }, QN_DTYPE_I32, -9999, 9999 }, { 0, .lo = 0.01, .hi = 0.02 } },
      .n_in = 2,
      .attr = &(Attr){ { 0, 0 } } },
};

/* zero may be NULL: 0. */
QN_API QnValue *qn_dequantize_linear(QnGraph *g, QnValue *x, QnValue *scale, QnValue *zero,
                                     int64_t axis, int64_t block)
{
    return qn_emitn(g, &qn_op_dequantize_linear, &(Attr){ { axis, block } },
                    (QnValue *[]){ x, scale, zero }, zero ? 3 : 2);
}

static QnStatus dequantize_linear_import(QnOnnxNode *n)
{
    const QnType *scale = qn_onnx_type(n, 1);
    int64_t asked = qn_onnx_int(n, "output_dtype", 0);
    if (!scale)
        return qn_fail(QN_EDTYPE, "input 1, the scale, must be a tensor of numbers");
    QnDtype to = scale->dtype;
    if (asked && !qn_onnx_dtype(asked, &to))
        return qn_onnx_refuse(n, "output_dtype %lld", (long long)asked);
    QnValue *y =
        qn_dequantize_linear(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), qn_onnx_in_or(n, 2, NULL),
                             qn_onnx_int(n, "axis", 1), qn_onnx_int(n, "block_size", 0));
    return qn_onnx_out0(n, qn_cast(n->g, y, to));
}

static const QnOnnxMap dequantize_linear_onnx[] = {
    { .name = "DequantizeLinear", .since = 10, .import = dequantize_linear_import },
};

const QnOp qn_op_dequantize_linear = {
    .name = "dequantize_linear",
    .version = 1,
    .doc = "integers to floats by scale and zero point",
    .n_in = 2,
    .n_in_max = 3,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, dequantize_linear_fields),
    .infer = dequantize_linear_infer,
    .lower = dequantize_linear_lower,
    QN_ONNX(dequantize_linear_onnx),
    QN_SAMPLES(dequantize_linear_samples),
};
#endif

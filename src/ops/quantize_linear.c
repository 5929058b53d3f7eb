/* y = saturate(round(x / scale) + zero), ties to even; see ops/quant.h for the shapes of scale and
 * zero. 8-bit floats are not rounded to integers first. Arithmetic in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/quant.h"

typedef struct Attr {
    QnQuantAttr at;
    QnDtype dtype;
    bool saturate;
} Attr;

static const QnAttrField quantize_linear_fields[] = {
    QN_QUANT_FIELDS(Attr, at),
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .def = QN_DTYPE_U8,
      .doc = "of y; the zero points' where they are given" },
    { .name = "saturate",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, saturate),
      .def = 1,
      .doc =
          "floats of 8 bits: what is too large becomes the largest number, not infinity or NaN" },
};

static QnStatus quantize_linear_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnDtype x = c->in[0]->dtype;
    if (!(qn_dtype_is_float(x) && qn_dtype_bytes(x) > 1) && x != QN_DTYPE_I32)
        return qn_fail(QN_EDTYPE, "quantize_linear: x is %s; it takes floats and i32",
                       qn_dtype_name(x));
    if (!qn_quant_is_code(a->dtype))
        return qn_fail(QN_EDTYPE,
                       "quantize_linear: to %s; it must be an integer of at most 32 bits or a "
                       "float of 8",
                       qn_dtype_name(a->dtype));
    QN_TRY(qn_quant_check(c, "quantize_linear", &a->at, a->dtype));
    c->out[0].dtype = a->dtype;
    c->out[0].shape = c->in[0]->shape;
    return QN_OK;
}

static void quantize_linear_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *x = &n->in[0]->type.shape;
    QnQuantView v = qn_quant_view(x, &n->in[1]->type.shape, &a->at);
    QnDtype t = qn_norm_stat(n->in[1]->type.dtype);
    QnValue *scale = qn_quant_param(g, &v, qn_cast(g, n->in[1], t));
    QnValue *zero = n->n_in > 2 && n->in[2] ? qn_quant_param(g, &v, n->in[2]) : NULL;
    QnValue *q = qn_div(g, qn_reshape(g, qn_cast(g, n->in[0], t), &v.work), scale);
    out[0] = qn_reshape(g, qn_quant_code(g, q, zero, a->dtype, a->saturate), x);
}

static const QnSample quantize_linear_samples[] = {
    { .in = { { 2, { 4, 7 }, .lo = -3, .hi = 3 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_U8, 100, 150 } },
      .n_in = 3,
      .attr = &(Attr){ { 1, 0 }, QN_DTYPE_U8, true } },
    { .in = { { 3, { 2, 3, 130 }, .lo = -3, .hi = 3 },
              { 1, { 3 }, .lo = 0.01, .hi = 0.05 },
              { 1, { 3 }, QN_DTYPE_I8, -20, 20 } },
      .n_in = 3,
      .attr = &(Attr){ { -2, 0 }, QN_DTYPE_I8, true } },
    { .in = { { 2, { 6, 5 }, .lo = -3, .hi = 3 }, { 2, { 2, 5 }, .lo = 0.01, .hi = 0.05 } },
      .n_in = 2,
      .attr = &(Attr){ { 0, 3 }, QN_DTYPE_I8, true } },
    { .in = { { 2, { 3, 7 }, .lo = -3, .hi = 3 }, { 2, { 3, 2 }, .lo = 0.01, .hi = 0.05 } },
      .n_in = 2,
      .attr = &(Attr){ { 1, 4 }, QN_DTYPE_I8, true } },
    { .in = { { 2, { 3, 7 }, .lo = -3, .hi = 3 },
              { 1, { 7 }, .lo = 0.3, .hi = 0.5 },
              { 1, { 7 }, QN_DTYPE_I4, -3, 3 } },
      .n_in = 3,
      .attr = &(Attr){ { 1, 0 }, QN_DTYPE_I4, true } },
    { .in = { { 2, { 3, 7 }, .lo = -900, .hi = 900 }, { 0, .lo = 0.5, .hi = 1 } },
      .n_in = 2,
      .attr = &(Attr){ { 1, 0 }, QN_DTYPE_F8E4M3FN, false } },
    { .in = { { 1, { 9 }, .lo = -3, .hi = 3 },
              { 1, { 1 }, .lo = 1e-4, .hi = 1e-3 },
              { 1, { 1 }, QN_DTYPE_U16, 20000, 40000 } },
      .n_in = 3,
      .attr = &(Attr){ { 1, 0 }, QN_DTYPE_U16, true } },
};

/* zero may be NULL: 0. */
QN_API QnValue *qn_quantize_linear(QnGraph *g, QnValue *x, QnValue *scale, QnValue *zero,
                                   QnDtype dtype, int64_t axis, int64_t block)
{
    return qn_quantize_linear_as(g, x, scale, zero, dtype, axis, block, true);
}

/* With `saturate` false, floats of 8 bits overflow to infinity or NaN. */
QN_API QnValue *qn_quantize_linear_as(QnGraph *g, QnValue *x, QnValue *scale, QnValue *zero,
                                      QnDtype dtype, int64_t axis, int64_t block, bool saturate)
{
    return qn_emitn(g, &qn_op_quantize_linear, &(Attr){ { axis, block }, dtype, saturate },
                    (QnValue *[]){ x, scale, zero }, zero ? 3 : 2);
}

/* The type of the codes: the zero points', else what output_dtype says, else u8. The division is in
 * the scale's type, or in that of `precision`. */
static QnStatus quantize_linear_import(QnOnnxNode *n)
{
    QnDtype to = QN_DTYPE_U8, at;
    const QnType *scale = qn_onnx_type(n, 1), *zero = qn_onnx_type(n, 2);
    int64_t asked = qn_onnx_int(n, "output_dtype", 0), precision = qn_onnx_int(n, "precision", 0);
    if (!scale)
        return qn_fail(QN_EDTYPE, "input 1, the scale, must be a tensor of numbers");
    if (asked && !qn_onnx_dtype(asked, &to))
        return qn_onnx_refuse(n, "output_dtype %lld", (long long)asked);
    at = scale->dtype;
    if (precision && !qn_onnx_dtype(precision, &at))
        return qn_onnx_refuse(n, "precision %lld", (long long)precision);
    if (zero && asked && zero->dtype != to)
        return qn_fail(QN_EDTYPE, "output_dtype is %s, the zero points are %s", qn_dtype_name(to),
                       qn_dtype_name(zero->dtype));
    QnValue *y = qn_quantize_linear_as(n->g, qn_onnx_in(n, 0), qn_cast(n->g, qn_onnx_in(n, 1), at),
                                       qn_onnx_in_or(n, 2, NULL), zero ? zero->dtype : to,
                                       qn_onnx_int(n, "axis", 1), qn_onnx_int(n, "block_size", 0),
                                       qn_onnx_int(n, "saturate", 1) != 0);
    return qn_onnx_out0(n, y);
}

static const QnOnnxMap quantize_linear_onnx[] = {
    { .name = "QuantizeLinear", .since = 10, .import = quantize_linear_import },
};

const QnOp qn_op_quantize_linear = {
    .name = "quantize_linear",
    .version = 1,
    .doc = "floats to integers by scale and zero point",
    .n_in = 2,
    .n_in_max = 3,
    .traits = QN_NO_GRAD | QN_ANY_DTYPE,
    QN_ATTRS(Attr, quantize_linear_fields),
    .infer = quantize_linear_infer,
    .lower = quantize_linear_lower,
    QN_ONNX(quantize_linear_onnx),
    QN_SAMPLES(quantize_linear_samples),
};
#endif

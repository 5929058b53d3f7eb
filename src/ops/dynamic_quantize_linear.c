/* x to u8 by its own range, widened to hold 0: outputs y, scale (f32) and zero (u8), both scalars,
 *   scale = (max - min) / 255, zero = round(-min / scale), y = saturate(round(x / scale) + zero).
 * The scale of zeros alone is 1 / 255. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/quant.h"
#include "ops/util.h"

static QnStatus dynamic_quantize_linear_infer(QnInfer *c)
{
    const QnType *x = c->in[0];
    if (!qn_dtype_is_float(x->dtype))
        return qn_fail(QN_EDTYPE, "dynamic_quantize_linear: needs floats, not %s",
                       qn_dtype_name(x->dtype));
    for (int i = 0; i < x->shape.rank; i++) {
        if (x->shape.dim[i] == 0)
            return qn_fail(QN_ESHAPE,
                           "dynamic_quantize_linear: axis %d of x is empty; it has no "
                           "range",
                           i);
    }
    c->out[0] = (QnType){ .dtype = QN_DTYPE_U8, .shape = x->shape };
    c->out[1] = (QnType){ .dtype = qn_norm_stat(x->dtype) };
    c->out[2] = (QnType){ .dtype = QN_DTYPE_U8 };
    return QN_OK;
}

static void dynamic_quantize_linear_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue *x = qn_cast(g, n->in[0], qn_norm_stat(n->in[0]->type.dtype));
    QnValue *none = qn_scalar_like(g, x, 0);
    QnValue *top = qn_maximum(g, qn_reduce_max(g, x, QN_ALL_AXES, false), none);
    QnValue *low = qn_minimum(g, qn_reduce_min(g, x, QN_ALL_AXES, false), none);
    QnValue *range = qn_sub(g, top, low), *levels = qn_scalar_like(g, x, 255);
    range = qn_where(g, qn_equal(g, range, none), qn_scalar_like(g, x, 1), range);
    out[1] = qn_div(g, range, levels);
    out[2] = qn_quant_code(g, qn_neg(g, qn_div(g, low, out[1])), NULL, QN_DTYPE_U8, true);
    out[0] = qn_quant_code(g, qn_div(g, x, out[1]), out[2], QN_DTYPE_U8, true);
}

static const QnSample dynamic_quantize_linear_samples[] = {
    { .in = { { 2, { 4, 7 }, .lo = -3, .hi = 2 } }, .n_in = 1 },
    { .in = { { 1, { 130 }, .lo = 1, .hi = 5 } }, .n_in = 1 },
    { .in = { { 1, { 9 }, .lo = -5, .hi = -1 } }, .n_in = 1 },
};

/* The node: outputs y, scale, zero. */
QN_API QnNode *qn_dynamic_quantize_linear(QnGraph *g, QnValue *x)
{
    return qn_emit(g, &qn_op_dynamic_quantize_linear, NULL, (QnValue *[]){ x }, 1);
}

static const QnOnnxMap dynamic_quantize_linear_onnx[] = {
    { .name = "DynamicQuantizeLinear", .since = 11 },
};

const QnOp qn_op_dynamic_quantize_linear = {
    .name = "dynamic_quantize_linear",
    .version = 1,
    .doc = "floats to u8 by their own range",
    .n_in = 1,
    .n_out = 3,
    .traits = QN_NO_GRAD,
    .infer = dynamic_quantize_linear_infer,
    .lower = dynamic_quantize_linear_lower,
    QN_ONNX(dynamic_quantize_linear_onnx),
    QN_SAMPLES(dynamic_quantize_linear_samples),
};
#endif

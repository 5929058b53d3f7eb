/* Product of quantised matrices, quantised again:
 *   y = saturate(round(sum of (a - a_zero)(b - b_zero) * a_scale b_scale / y_scale) + y_zero)
 * Inputs a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero. Sums are exact in i32. Scale and
 * zero point of a are scalars, (M) or (…,M,1), of b scalars, (N) or (…,1,N), of y as of a. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/quant.h"
#include "ops/region.h"

/* Types of the product in integers, by its own inference. */
static QnStatus qlinear_matmul_product(QnInfer *c, QnType *y)
{
    QnInfer product = { .graph = c->graph,
                        .n_in = 4,
                        .in = (const QnType *[]){ c->in[0], c->in[3], c->in[2], c->in[5] } };
    QN_TRY(qn_op_matmul_integer.infer(&product));
    *y = product.out[0];
    return QN_OK;
}

/* (M) stands for (M,1), for a and y. */
static QnShape qlinear_matmul_spread(const QnShape *s)
{
    return s->rank == 1 ? QN_SHAPE(s->dim[0], 1) : *s;
}

static QnStatus qlinear_matmul_infer(QnInfer *c)
{
    QnDtype code = c->in[7]->dtype;
    QnType y;
    if (code != QN_DTYPE_I8 && code != QN_DTYPE_U8)
        return qn_fail(QN_EDTYPE, "qlinear_matmul: the zero point of y is %s; it must be i8 or u8",
                       qn_dtype_name(code));
    QN_TRY(qn_quant_check_pair(c, "qlinear_matmul", "a", 1, c->in[0]->dtype));
    QN_TRY(qn_quant_check_pair(c, "qlinear_matmul", "b", 4, c->in[3]->dtype));
    QN_TRY(qn_quant_check_pair(c, "qlinear_matmul", "y", 6, code));
    QN_TRY(qlinear_matmul_product(c, &y));
    QnShape s = qlinear_matmul_spread(&c->in[6]->shape);
    bool fits = s.rank <= y.shape.rank;
    for (int i = 1; fits && i <= s.rank; i++)
        fits = s.dim[s.rank - i] == 1 ||
               (i > 1 && qn_region_may_equal(s.dim[s.rank - i], y.shape.dim[y.shape.rank - i]));
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE,
                       "qlinear_matmul: scales %s of y %s; give one, or one for each row",
                       qn_shape_text(&c->in[6]->shape, p), qn_shape_text(&y.shape, q));
    }
    c->out[0] = (QnType){ .dtype = code, .shape = y.shape };
    return QN_OK;
}

/* A scale or zero point of a or y, as it broadcasts. */
static QnValue *qlinear_matmul_param(QnGraph *g, QnValue *v)
{
    QnShape s = qlinear_matmul_spread(&v->type.shape);
    return qn_reshape(g, v, &s);
}

static void qlinear_matmul_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue **in = n->in;
    QnDtype t = qn_norm_stat(in[1]->type.dtype);
    QnValue *sum = qn_matmul_integer(g, in[0], in[3], in[2], in[5]);
    QnValue *factor =
        qn_mul(g, qlinear_matmul_param(g, qn_cast(g, in[1], t)), qn_cast(g, in[4], t));
    factor = qn_div(g, factor, qlinear_matmul_param(g, qn_cast(g, in[6], t)));
    QnValue *v = qn_mul(g, qn_cast(g, sum, t), factor);
    out[0] = qn_quant_code(g, v, qlinear_matmul_param(g, in[7]), in[7]->type.dtype, true);
}

static const QnSample qlinear_matmul_samples[] = {
    { .in = { { 2, { 4, 7 }, QN_DTYPE_U8, 0, 255 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_U8, 100, 150 },
              { 2, { 7, 5 }, QN_DTYPE_I8, -128, 127 },
              { 0, .lo = 0.01, .hi = 0.02 },
              { 0, { 0 }, QN_DTYPE_I8, -20, 20 },
              { 0, .lo = 0.1, .hi = 0.2 },
              { 0, { 0 }, QN_DTYPE_U8, 100, 150 } },
      .n_in = 8 },
    { .in = { { 3, { 2, 4, 130 }, QN_DTYPE_I8, -128, 127 },
              { 1, { 4 }, .lo = 0.01, .hi = 0.02 },
              { 1, { 4 }, QN_DTYPE_I8, -20, 20 },
              { 2, { 130, 3 }, QN_DTYPE_I8, -128, 127 },
              { 1, { 3 }, .lo = 0.01, .hi = 0.02 },
              { 1, { 3 }, QN_DTYPE_I8, -20, 20 },
              { 0, .lo = 0.5, .hi = 1 },
              { 0, { 0 }, QN_DTYPE_I8, -20, 20 } },
      .n_in = 8 },
};

QN_API QnValue *qn_qlinear_matmul(QnGraph *g, QnValue *a, QnValue *a_scale, QnValue *a_zero,
                                  QnValue *b, QnValue *b_scale, QnValue *b_zero, QnValue *y_scale,
                                  QnValue *y_zero)
{
    QnValue *in[] = { a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero };
    return qn_emitn(g, &qn_op_qlinear_matmul, NULL, in, QN_COUNT(in));
}

static const QnOnnxMap qlinear_matmul_onnx[] = {
    { .name = "QLinearMatMul", .since = 10 },
};

const QnOp qn_op_qlinear_matmul = {
    .name = "qlinear_matmul",
    .version = 1,
    .doc = "matrix product of quantised operands, quantised again",
    .n_in = 8,
    .traits = QN_NO_GRAD,
    .infer = qlinear_matmul_infer,
    .lower = qlinear_matmul_lower,
    QN_ONNX(qlinear_matmul_onnx),
    QN_SAMPLES(qlinear_matmul_samples),
};
#endif

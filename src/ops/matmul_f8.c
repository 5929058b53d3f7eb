/* Product of 8-bit floats: y (M,N) = a (M,K) * b (N,K)^T * scale_a * scale_b + bias, both operands
 * with adjacent terms as tensor cores want them. A device without such products widens the
 * operands, which the wider types hold exactly: sums are f32, as theirs are. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ir/dtype.h"
#include "ops/util.h"

typedef struct Attr {
    QnDtype dtype;
} Attr;

static const QnAttrField matmul_f8_fields[] = {
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .def = QN_DTYPE_BF16,
      .doc = "of y: f32, f16 or bf16" },
};

static QnStatus matmul_f8_check_types(const QnInfer *c, QnDtype y)
{
    for (int i = 0; i < 2; i++) {
        QnDtype t = c->in[i]->dtype;
        if (t != QN_DTYPE_F8E4M3FN && t != QN_DTYPE_F8E5M2)
            return qn_fail(QN_EDTYPE, "matmul_f8: operand %d is %s, must be f8e4m3fn or f8e5m2", i,
                           qn_dtype_name(t));
    }
    for (int i = 2; i < 4; i++) {
        if (c->in[i]->dtype != QN_DTYPE_F32 || c->in[i]->shape.rank)
            return qn_fail(QN_EDTYPE, "matmul_f8: scales must be scalars in f32");
    }
    if (y != QN_DTYPE_F32 && y != QN_DTYPE_F16 && y != QN_DTYPE_BF16)
        return qn_fail(QN_EDTYPE, "matmul_f8: gives f32, f16 or bf16, not %s", qn_dtype_name(y));
    return QN_OK;
}

static QnStatus matmul_f8_infer(QnInfer *c)
{
    QnDtype y = ((const Attr *)c->attr)->dtype;
    const QnShape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    QN_TRY(matmul_f8_check_types(c, y));
    if (a->rank != 2 || b->rank != 2 ||
        (a->dim[1] != b->dim[1] && a->dim[1] >= 0 && b->dim[1] >= 0)) {
        char x[QN_TYPE_TEXT_BYTES], w[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "matmul_f8: %s and %s do not fit; want (M,K) and (N,K)",
                       qn_shape_text(a, x), qn_shape_text(b, w));
    }
    if (c->n_in > 4 && (c->in[4]->dtype != y || c->in[4]->shape.rank != 1 ||
                        c->in[4]->shape.dim[0] != b->dim[0])) {
        char t[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "matmul_f8: the bias must be a row of y in %s, not %s",
                       qn_dtype_name(y), qn_type_text(c->in[4], t));
    }
    c->out[0] = (QnType){ .dtype = y, .shape = QN_SHAPE(a->dim[0], b->dim[0]) };
    return QN_OK;
}

static QnCost matmul_f8_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->out[0].type.shape);
    QnCost c = { .flops = 2 * count * (double)n->in[0]->type.shape.dim[1],
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    return c;
}

/* f16 holds no sums that are still to be scaled. */
static void matmul_f8_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnDtype to = ((const Attr *)n->attr)->dtype, t = to == QN_DTYPE_F16 ? QN_DTYPE_F32 : to;
    QnValue *a = qn_cast(g, n->in[0], t), *b = qn_cast(g, n->in[1], t);
    QnValue *y = qn_matmul(g, a, b, NULL, false, true);
    y = qn_cast(g, qn_mul(g, y, qn_cast(g, qn_mul(g, n->in[2], n->in[3]), t)), to);
    out[0] = n->n_in > 4 ? qn_add(g, y, n->in[4]) : y;
}

static const QnSample matmul_f8_samples[] = {
    { .in = { { 2, { 4, 7 }, .dtype = QN_DTYPE_F8E4M3FN },
              { 2, { 3, 7 }, .dtype = QN_DTYPE_F8E5M2 },
              { .rank = 0, .lo = 0.5, .hi = 2 },
              { .rank = 0, .lo = 0.5, .hi = 2 } },
      .n_in = 4,
      .attr = &(Attr){ QN_DTYPE_F32 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY }, /* storage types */
    { .in = { { 2, { 3, 130 }, .dtype = QN_DTYPE_F8E5M2 },
              { 2, { 5, 130 }, .dtype = QN_DTYPE_F8E4M3FN },
              { .rank = 0, .lo = 1, .hi = 1 },
              { .rank = 0, .lo = 1, .hi = 1 },
              { 1, { 5 }, .dtype = QN_DTYPE_BF16 } },
      .n_in = 5,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 2, { 16, 32 }, .dtype = QN_DTYPE_F8E4M3FN },
              { 2, { 16, 32 }, .dtype = QN_DTYPE_F8E4M3FN },
              { .rank = 0, .lo = 2, .hi = 2 },
              { .rank = 0, .lo = 0.25, .hi = 0.25 } },
      .n_in = 4,
      .attr = &(Attr){ QN_DTYPE_F16 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* dtype: f32, f16 or bf16; bias may be NULL. */
QN_API QnValue *qn_matmul_f8(QnGraph *g, QnValue *a, QnValue *b, QnValue *scale_a, QnValue *scale_b,
                             QnValue *bias, QnDtype dtype)
{
    return qn_emitn(g, &qn_op_matmul_f8, &(Attr){ dtype },
                    (QnValue *[]){ a, b, scale_a, scale_b, bias }, bias ? 5 : 4);
}

const QnOp qn_op_matmul_f8 = {
    .name = "matmul_f8",
    .version = 1,
    .doc = "product of matrices of 8-bit floats, times their scales",
    .n_in = 4,
    .n_in_max = 5,
    .traits = QN_ANY_DTYPE | QN_NO_GRAD,
    QN_ATTRS(Attr, matmul_f8_fields),
    .infer = matmul_f8_infer,
    .cost = matmul_f8_cost,
    .lower = matmul_f8_lower,
    QN_SAMPLES(matmul_f8_samples),
};
#endif

/* Matrix product by operands that are rounded to 8 bits: y (M,N) = a (M,K) * b (K,N), with trans_b
 * b is (N,K). Beside the operands, whose gradients are those of the product, stand each's roundings
 * to e4m3, straight and transposed, and what they are to be multiplied by. The gradient of y is
 * rounded to e5m2 by a scale of its own (f8.h), whose history is the state that `history` names. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/f8.h"
#include "ops/util.h"

typedef struct Attr {
    bool trans_b;
    const char *history;
} Attr;

static const QnAttrField matmul_by_f8_fields[] = {
    { .name = "trans_b",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, trans_b),
      .doc = "b is (N,K)" },
    { .name = "history",
      .kind = QN_ATTR_STRING,
      .offset = offsetof(Attr, history),
      .doc = "state of the gradient's largest elements; empty: each gradient decides its scale" },
};

/* Inputs: a, b, then of each what qn_f8_operand gives. */
enum { OF_A = 2, OF_B = 5, INPUTS = 8 };

static QnF8Operand matmul_by_f8_operand(const QnNode *n, int first)
{
    return (QnF8Operand){ n->in[first], n->in[first + 1], n->in[first + 2] };
}

/* What stands at c->in[first] on for x. */
static QnStatus matmul_by_f8_check(const QnInfer *c, const QnType *x, int first)
{
    const QnType *y = c->in[first], *t = c->in[first + 1], *s = c->in[first + 2];
    QnShape turned = QN_SHAPE(x->shape.dim[1], x->shape.dim[0]);
    if (y->dtype != QN_DTYPE_F8E4M3FN || t->dtype != QN_DTYPE_F8E4M3FN || s->dtype != QN_DTYPE_F32)
        return qn_fail(QN_EDTYPE, "matmul_by_f8: inputs %d to %d must be f8e4m3fn twice and f32",
                       first, first + 2);
    if (!qn_shape_is_equal(&y->shape, &x->shape) || !qn_shape_is_equal(&t->shape, &turned) ||
        s->shape.rank)
        return qn_fail(QN_ESHAPE,
                       "matmul_by_f8: inputs %d to %d must be of the operand's shape, of its "
                       "transpose's, and a scalar",
                       first, first + 2);
    return QN_OK;
}

static QnStatus matmul_by_f8_infer(QnInfer *c)
{
    bool trans_b = ((const Attr *)c->attr)->trans_b;
    const QnShape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    QnDtype t = c->in[0]->dtype;
    if ((t != QN_DTYPE_F32 && t != QN_DTYPE_BF16) || c->in[1]->dtype != t)
        return qn_fail(QN_EDTYPE, "matmul_by_f8: operands must both be f32 or bf16, not %s and %s",
                       qn_dtype_name(t), qn_dtype_name(c->in[1]->dtype));
    QnDim ka = a->rank == 2 ? a->dim[1] : 0, kb = b->rank == 2 ? b->dim[trans_b] : 0;
    if (a->rank != 2 || b->rank != 2 || (ka != kb && ka >= 0 && kb >= 0)) {
        char x[QN_TYPE_TEXT_BYTES], w[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "matmul_by_f8: %s and %s%s do not fit", qn_shape_text(a, x),
                       qn_shape_text(b, w), trans_b ? " transposed" : "");
    }
    QN_TRY(matmul_by_f8_check(c, c->in[0], OF_A));
    QN_TRY(matmul_by_f8_check(c, c->in[1], OF_B));
    c->out[0] = (QnType){ .dtype = t, .shape = QN_SHAPE(a->dim[0], b->dim[!trans_b]) };
    return QN_OK;
}

static void matmul_by_f8_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnF8Operand a = matmul_by_f8_operand(n, OF_A), b = matmul_by_f8_operand(n, OF_B);
    bool trans_b = ((const Attr *)n->attr)->trans_b;
    out[0] = qn_matmul_f8(g, a.straight, trans_b ? b.straight : b.turned, a.inverse, b.inverse,
                          NULL, n->out[0].type.dtype);
}

/* By the same roundings, which are what is kept. */
static void matmul_by_f8_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *attr = n->attr;
    QnDtype t = n->out[0].type.dtype;
    QnF8Operand a = matmul_by_f8_operand(n, OF_A), b = matmul_by_f8_operand(n, OF_B);
    QnF8Operand d =
        qn_f8_operand(g, dy[0], attr->history[0] ? attr->history : NULL, QN_DTYPE_F8E5M2, true);
    QnValue *by_k = attr->trans_b ? b.turned : b.straight; /* (K,N) */
    dx[0] = qn_matmul_f8(g, d.straight, by_k, d.inverse, b.inverse, NULL, t);
    dx[1] = attr->trans_b ? qn_matmul_f8(g, d.turned, a.turned, d.inverse, a.inverse, NULL, t)
                          : qn_matmul_f8(g, a.turned, d.turned, a.inverse, d.inverse, NULL, t);
}

#define F8 QN_DTYPE_F8E4M3FN

static const QnSample matmul_by_f8_samples[] = {
    { .in = { { 2, { 4, 7 } },
              { 2, { 7, 3 } },
              { 2, { 4, 7 }, .dtype = F8 },
              { 2, { 7, 4 }, .dtype = F8 },
              { .rank = 0, .lo = 1, .hi = 1 },
              { 2, { 7, 3 }, .dtype = F8 },
              { 2, { 3, 7 }, .dtype = F8 },
              { .rank = 0, .lo = 1, .hi = 1 } },
      .n_in = INPUTS,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY }, /* steps */
    { .in = { { 2, { 5, 16 } },
              { 2, { 130, 16 } },
              { 2, { 5, 16 }, .dtype = F8 },
              { 2, { 16, 5 }, .dtype = F8 },
              { .rank = 0, .lo = 1, .hi = 1 },
              { 2, { 130, 16 }, .dtype = F8 },
              { 2, { 16, 130 }, .dtype = F8 },
              { .rank = 0, .lo = 1, .hi = 1 } },
      .n_in = INPUTS,
      .attr = &(Attr){ true, "history" },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* history: names of the states of a, b and the gradient, or NULL. update: this step enters the
 * first two; gradients are only computed to learn from, and always enter the third. */
QN_API QnValue *qn_matmul_by_f8(QnGraph *g, QnValue *a, QnValue *b, bool trans_b,
                                const char *const *history, bool update)
{
    if (qn_value_is_poison(a) || qn_value_is_poison(b))
        return qn_graph_poison(g);
    QnF8Operand x = qn_f8_operand(g, a, history ? history[0] : NULL, F8, update);
    QnF8Operand w = qn_f8_operand(g, b, history ? history[1] : NULL, F8, update);
    QnValue *in[INPUTS] = {
        a, b, x.straight, x.turned, x.inverse, w.straight, w.turned, w.inverse
    };
    return qn_emitn(g, &qn_op_matmul_by_f8, &(Attr){ trans_b, history ? history[2] : "" }, in,
                    INPUTS);
}

const QnOp qn_op_matmul_by_f8 = {
    .name = "matmul_by_f8",
    .version = 1,
    .doc = "matrix product by operands rounded to 8-bit floats",
    .n_in = INPUTS,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, matmul_by_f8_fields),
    .infer = matmul_by_f8_infer,
    .grad = matmul_by_f8_grad,
    .lower = matmul_by_f8_lower,
    QN_SAMPLES(matmul_by_f8_samples),
};
#endif

/* Matrix product whose operands are rounded to 8 bits by scales: y (M,N) = a (M,K) * b (K,N), with
 * trans_b b is (N,K). a and b in e4m3; the gradient of y in e5m2, by a scale of its own (f8.h),
 * whose history is the state that `history` names. */
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

static QnStatus matmul_by_f8_infer(QnInfer *c)
{
    bool trans_b = ((const Attr *)c->attr)->trans_b;
    const QnShape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    QnDtype t = c->in[0]->dtype;
    if ((t != QN_DTYPE_F32 && t != QN_DTYPE_BF16) || c->in[1]->dtype != t)
        return qn_fail(QN_EDTYPE, "matmul_by_f8: operands must both be f32 or bf16, not %s and %s",
                       qn_dtype_name(t), qn_dtype_name(c->in[1]->dtype));
    for (int i = 2; i < 4; i++) {
        if (c->in[i]->dtype != QN_DTYPE_F32 || c->in[i]->shape.rank)
            return qn_fail(QN_EDTYPE, "matmul_by_f8: scales must be scalars in f32");
    }
    QnDim ka = a->rank == 2 ? a->dim[1] : 0, kb = b->rank == 2 ? b->dim[trans_b] : 0;
    if (a->rank != 2 || b->rank != 2 || (ka != kb && ka >= 0 && kb >= 0)) {
        char x[QN_TYPE_TEXT_BYTES], w[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "matmul_by_f8: %s and %s%s do not fit", qn_shape_text(a, x),
                       qn_shape_text(b, w), trans_b ? " transposed" : "");
    }
    c->out[0] = (QnType){ .dtype = t, .shape = QN_SHAPE(a->dim[0], b->dim[!trans_b]) };
    return QN_OK;
}

/* 1 / (s t), powers of two. */
static QnValue *back(QnGraph *g, QnValue *s, QnValue *t)
{
    return qn_reciprocal(g, qn_mul(g, s, t));
}

static QnValue *turned(QnGraph *g, QnValue *x)
{
    return qn_swap_axes(g, x, 0, 1);
}

static void matmul_by_f8_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue *a = qn_f8_round(g, n->in[0], n->in[2], QN_DTYPE_F8E4M3FN);
    QnValue *b = qn_f8_round(g, n->in[1], n->in[3], QN_DTYPE_F8E4M3FN);
    if (!((const Attr *)n->attr)->trans_b)
        b = turned(g, b);
    out[0] = qn_matmul_f8(g, a, b, back(g, n->in[2], n->in[3]), n->out[0].type.dtype);
}

/* The same roundings of a and b become the forward pass's: they are what is kept. */
static void matmul_by_f8_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *attr = n->attr;
    const char *state = attr->history[0] ? attr->history : NULL;
    QnDtype t = n->out[0].type.dtype;
    QnValue *sa = n->in[2], *sb = n->in[3];
    QnValue *a = qn_f8_round(g, n->in[0], sa, QN_DTYPE_F8E4M3FN);
    QnValue *b = qn_f8_round(g, n->in[1], sb, QN_DTYPE_F8E4M3FN);
    QnValue *sd = qn_f8_scale(g, dy[0], state, QN_DTYPE_F8E5M2, true);
    QnValue *d = qn_f8_round(g, dy[0], sd, QN_DTYPE_F8E5M2);
    QnValue *by_k = attr->trans_b ? turned(g, b) : b; /* (K,N) */
    dx[0] = qn_matmul_f8(g, d, by_k, back(g, sd, sb), t);
    QnValue *at = turned(g, a), *dt = turned(g, d);
    dx[1] = attr->trans_b ? qn_matmul_f8(g, dt, at, back(g, sd, sa), t)
                          : qn_matmul_f8(g, at, dt, back(g, sd, sa), t);
}

static const QnSample matmul_by_f8_samples[] = {
    { .in = { { 2, { 4, 7 } },
              { 2, { 7, 3 } },
              { .rank = 0, .lo = 1, .hi = 1 },
              { .rank = 0, .lo = 1, .hi = 1 } },
      .n_in = 4,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY }, /* steps */
    { .in = { { 2, { 5, 16 } },
              { 2, { 130, 16 } },
              { .rank = 0, .lo = 1, .hi = 1 },
              { .rank = 0, .lo = 1, .hi = 1 } },
      .n_in = 4,
      .attr = &(Attr){ true, "history" },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* history: the name of a state, or NULL. */
QN_API QnValue *qn_matmul_by_f8(QnGraph *g, QnValue *a, QnValue *b, QnValue *scale_a,
                                QnValue *scale_b, bool trans_b, const char *history)
{
    return qn_emitn(g, &qn_op_matmul_by_f8, &(Attr){ trans_b, history ? history : "" },
                    (QnValue *[]){ a, b, scale_a, scale_b }, 4);
}

const QnOp qn_op_matmul_by_f8 = {
    .name = "matmul_by_f8",
    .version = 1,
    .doc = "matrix product of operands rounded to 8-bit floats",
    .n_in = 4,
    QN_ATTRS(Attr, matmul_by_f8_fields),
    .infer = matmul_by_f8_infer,
    .grad = matmul_by_f8_grad,
    .lower = matmul_by_f8_lower,
    QN_SAMPLES(matmul_by_f8_samples),
};
#endif

/* Gated recurrent unit (Cho et al. 2014), gates in PyTorch's order r, z, n:
 *   r, z = sigmoid of their rows of w x + b + r h + rb;
 *   n = tanh(w_n x + b_n + r * (r_n h + rb_n));  h = (1 - z) * n + z * h.
 * Shapes: ops/recurrent.h. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/recurrent.h"

typedef struct Attr {
    int direction;
} Attr;

static const QnAttrField gru_fields[] = {
    QN_RECURRENT_DIRECTION(Attr),
};

static QnStatus gru_infer(QnInfer *c)
{
    return qn_recurrent_infer(c, "gru", 1, 3, (QnDirection)((const Attr *)c->attr)->direction);
}

static void gru_cell(QnGraph *g, const void *attr, QnValue *in, QnValue *r, QnValue *rb,
                     QnValue **h, QnValue **c)
{
    (void)attr, (void)c;
    QnValue *a = qn_matmul(g, *h, r, rb, false, true);
    if (qn_value_is_poison(a))
        return;
    QnDim n = (*h)->type.shape.dim[1];
    QnValue *reset =
        qn_sigmoid(g, qn_add(g, qn_recurrent_gate(g, in, 0, n), qn_recurrent_gate(g, a, 0, n)));
    QnValue *keep =
        qn_sigmoid(g, qn_add(g, qn_recurrent_gate(g, in, 1, n), qn_recurrent_gate(g, a, 1, n)));
    QnValue *now = qn_mul(g, reset, qn_recurrent_gate(g, a, 2, n));
    now = qn_tanh(g, qn_add(g, qn_recurrent_gate(g, in, 2, n), now));
    *h = qn_add(g, now, qn_mul(g, keep, qn_sub(g, *h, now)));
}

static void gru_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    qn_recurrent_lower(g, n, 1, (QnDirection)((const Attr *)n->attr)->direction, gru_cell, out);
}

static const QnSample gru_samples[] = {
    { .in = { { 3, { 4, 2, 5 } },
              { 3, { 1, 2, 3 } },
              { 3, { 1, 9, 5 } },
              { 3, { 1, 9, 3 } },
              { 2, { 1, 9 } },
              { 2, { 1, 9 } } },
      .n_in = 6,
      .attr = &(Attr){ QN_DIRECTION_FORWARD } },
    { .in = { { 3, { 3, 2, 4 } }, { 3, { 1, 2, 3 } }, { 3, { 1, 9, 4 } }, { 3, { 1, 9, 3 } } },
      .n_in = 4,
      .attr = &(Attr){ QN_DIRECTION_REVERSE } },
    { .in = { { 3, { 3, 2, 2 } },
              { 3, { 2, 2, 3 } },
              { 3, { 2, 9, 2 } },
              { 3, { 2, 9, 3 } },
              { 2, { 2, 9 } },
              { 2, { 2, 9 } } },
      .n_in = 6,
      .attr = &(Attr){ QN_DIRECTION_BOTH } },
};

/* Outputs: y and the final state. b and rb may both be NULL. */
QN_API QnNode *qn_gru(QnGraph *g, QnValue *x, QnValue *h0, QnValue *w, QnValue *r, QnValue *b,
                      QnValue *rb, int direction)
{
    return qn_emit(g, &qn_op_gru, &(Attr){ direction }, (QnValue *[]){ x, h0, w, r, b, rb },
                   rb  ? 6
                   : b ? 5
                       : 4);
}

const QnOp qn_op_gru = {
    .name = "gru",
    .version = 1,
    .doc = "gated recurrent unit",
    .n_in = 4,
    .n_in_max = 6,
    .n_out = 2,
    QN_ATTRS(Attr, gru_fields),
    .infer = gru_infer,
    .lower = gru_lower,
    QN_SAMPLES(gru_samples),
};
#endif

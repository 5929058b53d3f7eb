/* Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gate), gates in PyTorch's
 * order i, f, g, o:
 *   i, f, o = sigmoid, g = tanh of their rows of w x + b + r h + rb;  c = f * c + i * g;
 *   h = o * tanh(c). Shapes: ops/recurrent.h. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/recurrent.h"

typedef struct Attr {
    int direction;
} Attr;

static const QnAttrField lstm_fields[] = {
    QN_RECURRENT_DIRECTION(Attr),
};

static QnStatus lstm_infer(QnInfer *c)
{
    return qn_recurrent_infer(c, "lstm", 2, 4, (QnDirection)((const Attr *)c->attr)->direction);
}

static void lstm_cell(QnGraph *g, const void *attr, QnValue *in, QnValue *r, QnValue *rb,
                      QnValue **h, QnValue **c)
{
    (void)attr;
    QnValue *a = qn_add(g, in, qn_matmul(g, *h, r, rb, false, true));
    if (qn_value_is_poison(a))
        return;
    QnDim n = (*h)->type.shape.dim[1];
    QnValue *i = qn_sigmoid(g, qn_recurrent_gate(g, a, 0, n));
    QnValue *f = qn_sigmoid(g, qn_recurrent_gate(g, a, 1, n));
    QnValue *u = qn_tanh(g, qn_recurrent_gate(g, a, 2, n));
    QnValue *o = qn_sigmoid(g, qn_recurrent_gate(g, a, 3, n));
    *c = qn_add(g, qn_mul(g, f, *c), qn_mul(g, i, u));
    *h = qn_mul(g, o, qn_tanh(g, *c));
}

static void lstm_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    qn_recurrent_lower(g, n, 2, (QnDirection)((const Attr *)n->attr)->direction, lstm_cell, out);
}

static const QnSample lstm_samples[] = {
    { .in = { { 3, { 4, 2, 5 } },
              { 3, { 1, 2, 3 } },
              { 3, { 1, 2, 3 } },
              { 3, { 1, 12, 5 } },
              { 3, { 1, 12, 3 } },
              { 2, { 1, 12 } },
              { 2, { 1, 12 } } },
      .n_in = 7,
      .attr = &(Attr){ QN_DIRECTION_FORWARD } },
    { .in = { { 3, { 3, 2, 4 } },
              { 3, { 1, 2, 3 } },
              { 3, { 1, 2, 3 } },
              { 3, { 1, 12, 4 } },
              { 3, { 1, 12, 3 } } },
      .n_in = 5,
      .attr = &(Attr){ QN_DIRECTION_REVERSE } },
    { .in = { { 3, { 3, 2, 2 } },
              { 3, { 2, 2, 3 } },
              { 3, { 2, 2, 3 } },
              { 3, { 2, 12, 2 } },
              { 3, { 2, 12, 3 } },
              { 2, { 2, 12 } },
              { 2, { 2, 12 } } },
      .n_in = 7,
      .attr = &(Attr){ QN_DIRECTION_BOTH } },
};

/* Outputs: y and the final states. b and rb may both be NULL. */
QN_API QnNode *qn_lstm(QnGraph *g, QnValue *x, QnValue *h0, QnValue *c0, QnValue *w, QnValue *r,
                       QnValue *b, QnValue *rb, int direction)
{
    return qn_emit(g, &qn_op_lstm, &(Attr){ direction }, (QnValue *[]){ x, h0, c0, w, r, b, rb },
                   rb  ? 7
                   : b ? 6
                       : 5);
}

const QnOp qn_op_lstm = {
    .name = "lstm",
    .version = 1,
    .doc = "long short-term memory",
    .n_in = 5,
    .n_in_max = 7,
    .n_out = 3,
    QN_ATTRS(Attr, lstm_fields),
    .infer = lstm_infer,
    .lower = lstm_lower,
    QN_SAMPLES(lstm_samples),
};
#endif

/* Elman network: h = f(w x + b + r h + rb), f tanh or relu. Shapes: ops/recurrent.h. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/recurrent.h"

typedef struct Attr {
    int direction;
    bool relu;
} Attr;

static const QnAttrField rnn_fields[] = {
    QN_RECURRENT_DIRECTION(Attr),
    { .name = "relu",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, relu),
      .doc = "f is relu instead of tanh" },
};

static QnStatus rnn_infer(QnInfer *c)
{
    return qn_recurrent_infer(c, "rnn", 1, 1, (QnDirection)((const Attr *)c->attr)->direction);
}

static void rnn_cell(QnGraph *g, const void *attr, QnValue *in, QnValue *r, QnValue *rb,
                     QnValue **h, QnValue **c)
{
    (void)c;
    QnValue *a = qn_add(g, in, qn_matmul(g, *h, r, rb, false, true));
    *h = ((const Attr *)attr)->relu ? qn_relu(g, a) : qn_tanh(g, a);
}

static void rnn_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    qn_recurrent_lower(g, n, 1, (QnDirection)((const Attr *)n->attr)->direction, rnn_cell, out);
}

static const QnSample rnn_samples[] = {
    { .in = { { 3, { 4, 2, 5 } },
              { 3, { 1, 2, 3 } },
              { 3, { 1, 3, 5 } },
              { 3, { 1, 3, 3 } },
              { 2, { 1, 3 } },
              { 2, { 1, 3 } } },
      .n_in = 6,
      .attr = &(Attr){ QN_DIRECTION_FORWARD, false } },
    { .in = { { 3, { 3, 2, 4 } }, { 3, { 1, 2, 3 } }, { 3, { 1, 3, 4 } }, { 3, { 1, 3, 3 } } },
      .n_in = 4,
      .attr = &(Attr){ QN_DIRECTION_REVERSE, true } },
    { .in = { { 3, { 3, 2, 2 } },
              { 3, { 2, 2, 3 } },
              { 3, { 2, 3, 2 } },
              { 3, { 2, 3, 3 } },
              { 2, { 2, 3 } },
              { 2, { 2, 3 } } },
      .n_in = 6,
      .attr = &(Attr){ QN_DIRECTION_BOTH, false } },
};

/* Outputs: y and the final state. b and rb may both be NULL. */
QN_API QnNode *qn_rnn(QnGraph *g, QnValue *x, QnValue *h0, QnValue *w, QnValue *r, QnValue *b,
                      QnValue *rb, int direction, bool relu)
{
    return qn_emit(g, &qn_op_rnn, &(Attr){ direction, relu }, (QnValue *[]){ x, h0, w, r, b, rb },
                   rb  ? 6
                   : b ? 5
                       : 4);
}

const QnOp qn_op_rnn = {
    .name = "rnn",
    .version = 1,
    .doc = "Elman recurrent network",
    .n_in = 4,
    .n_in_max = 6,
    .n_out = 2,
    QN_ATTRS(Attr, rnn_fields),
    .infer = rnn_infer,
    .lower = rnn_lower,
    QN_SAMPLES(rnn_samples),
};
#endif

/* What the recurrent operators share. They lower to one product for all inputs and then one step
 * after the other, so that their gradient is back-propagation through time; the number of steps
 * must be concrete by then.
 *
 * Inputs: x (T,B,I), the initial states (D,B,H) each, w (D,G*H,I), r (D,G*H,H), and optionally the
 * biases b (D,G*H) added to w x and rb (D,G*H) added to r h. D is 2 if bidirectional (the second
 * runs backwards), else 1; G gates in PyTorch's order. Outputs: y (T,B,D*H), the final states. */
#ifndef QN_OPS_RECURRENT_H
#define QN_OPS_RECURRENT_H

#include "ir/graph.h"

typedef enum QnDirection {
    QN_DIRECTION_FORWARD,
    QN_DIRECTION_REVERSE,
    QN_DIRECTION_BOTH,
} QnDirection;

extern const char *const qn_recurrent_directions[];

#define QN_RECURRENT_DIRECTION(Type)                                                               \
    {                                                                                              \
        .name = "direction", .kind = QN_ATTR_ENUM, .offset = offsetof(Type, direction),            \
        .names = qn_recurrent_directions,                                                          \
        .doc = "forward, reverse (from the last step) or both side by side"                        \
    }

/* One step. in: gates of the input with its bias (B,G*H); h, and c if there are two states, are
 * replaced; r (G*H,H), rb (G*H) or NULL. */
typedef void (*QnRecurrentCell)(QnGraph *g, const void *attr, QnValue *in, QnValue *r, QnValue *rb,
                                QnValue **h, QnValue **c);

QnStatus qn_recurrent_infer(QnInfer *c, const char *op, int n_states, int gates,
                            QnDirection direction);
void qn_recurrent_lower(QnGraph *g, QnNode *n, int n_states, QnDirection direction,
                        QnRecurrentCell cell, QnValue **out);
/* Gate i of x (B,G*H), of `size` columns. */
QnValue *qn_recurrent_gate(QnGraph *g, QnValue *x, int i, QnDim size);

#endif

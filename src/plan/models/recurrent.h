/* Recurrent layers as what libraries make of them: one product of all steps with the inputs'
 * weights, then one small product a step. The graph holds the latter as one product of all steps by
 * weights whose name says what they are, with a stand-in for the states between steps: parameters,
 * operations and bytes are those of the layer, forward and backward, though not its numbers. */
#ifndef QN_PLAN_MODELS_RECURRENT_H
#define QN_PLAN_MODELS_RECURRENT_H

#include "plan/models.h"

/* x (T,B,I) to (T,B,H); PyTorch's parameters, two biases. */
QnValue *qn_recurrent_lstm(QnNet *net, const char *name, QnValue *x, int64_t hidden);
/* Both directions side by side, (T,B,2H). */
QnValue *qn_recurrent_both(QnNet *net, const char *name, QnValue *x, int64_t hidden);
/* How many steps a state's weights stand between, by its name; 0: it is not such a state. */
int64_t qn_recurrent_steps(const char *name);

#endif

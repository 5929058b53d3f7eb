/* Optimizers as graph: quern/nn.h, and what sessions need beside it. */
#ifndef QN_NN_OPTIM_H
#define QN_NN_OPTIM_H

#include "nn/net.h"

/* Appends the update of every parameter, as qn_optim_minimise does after the gradients. grads[i] is
 * that of params[i]; lr is a scalar f32, step a scalar i64 counting updates from 0. Moments are
 * states "optim.<kind>.<name>". *grad_norm (may be NULL) is the global norm before clipping, if it
 * was computed, else NULL. */
QnStatus qn_optim_apply(QnNet *net, const QnOptim *o, QnValue *const *grads, QnValue *lr,
                        QnValue *step, QnValue **grad_norm);

#endif

/* Optimizers as graph: gradients in, new parameters and moments assigned to their states. */
#ifndef QN_NN_OPTIM_H
#define QN_NN_OPTIM_H

#include "nn/net.h"

typedef struct QnOptim {
    const char *name;    /* sgd, adagrad, rmsprop, adam, adamw, lamb */
    double momentum;     /* sgd, rmsprop */
    bool nesterov;       /* sgd */
    double beta1, beta2; /* adam, adamw, lamb */
    double alpha;        /* rmsprop: smoothing, 0: 0.99 */
    double eps;
    double weight_decay; /* on parameters with .decay */
    double clip_norm;    /* global norm of all gradients at most this; 0: no clipping */
    double clip_value;   /* each element within +-this; 0: no clipping */
    double ema;          /* decay of the averaged weights "ema.<name>"; 0: none */
} QnOptim;

/* Appends the update of every parameter. grads[i] is that of params[i]; lr is a scalar f32, step a
 * scalar i64 counting updates from 0. Moments are states "optim.<kind>.<name>". *grad_norm (may be
 * NULL) is the global norm before clipping, if it was computed, else NULL. */
QnStatus qn_optim_apply(QnNet *net, const QnOptim *o, QnValue *const *grads, QnValue *lr,
                        QnValue *step, QnValue **grad_norm);

#endif

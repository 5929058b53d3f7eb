/* Building models: a context that collects parameters, and the layers that models are made of.
 * Graph builders only; no kernels.
 *
 * Layers return a value, or the graph's poison after a failure (see ir/graph.h). Tensors are
 * (N,C,spatial...) or (..., features). Parameter names are paths: "layer1.0.conv1.weight". */
#ifndef QN_NN_NET_H
#define QN_NN_NET_H

#include "nn/init.h"
#include "ops/ops.h"

typedef struct QnParam {
    QnValue *state; /* the state node's output */
    const char *name;
    bool decay; /* weight decay applies: matrices and kernels, not biases and norms */
} QnParam;

typedef struct QnNet {
    QnGraph *g;    /* borrowed */
    bool training; /* batch norm uses the batch's statistics, dropout drops */
    QnDtype dtype; /* of parameters */
    QnValue *key;  /* i64 (2): micro-batch and seed, what dropout draws from; NULL: no dropout */
    const char *prefix; /* put before the names of trainable states ("ema."); may be NULL */
    QnParam *params;    /* trainable states in order of creation; freed by qn_net_fini */
    int64_t n_params, cap_params;
    char scope[256]; /* "layer1.0" */
} QnNet;

void qn_net_init(QnNet *net, QnGraph *g, bool training);
void qn_net_fini(QnNet *net); /* frees params; the graph stays */

/* Names of what is built between these lie under `name`. */
void qn_net_push(QnNet *net, const char *name);
void qn_net_pop(QnNet *net);

/* A trainable state under the current scope. */
QnValue *qn_net_param(QnNet *net, const char *name, const QnShape *shape, const QnInitSpec *init,
                      bool decay);
/* A state that is not trained, e.g. a running mean, filled with `value`. */
QnValue *qn_net_buffer(QnNet *net, const char *name, const QnShape *shape, double value);

/* ---- layers; `name` is the scope of their parameters ---- */

/* x (..., in) -> (..., out); weight (out, in). */
QnValue *qn_nn_linear(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias);

typedef struct QnConvSpec {
    int64_t out, kernel, stride, pad, dilation, groups; /* stride, dilation, groups 0: 1 */
    bool bias;
} QnConvSpec;
/* x (N,C,spatial) -> (N,out,spatial'), square kernels; weight (out, C/groups, kernel...). */
QnValue *qn_nn_conv(QnNet *net, const char *name, QnValue *x, const QnConvSpec *spec);

/* Over axis 1; eps 1e-5, running statistics with momentum 0.1, as PyTorch's. */
QnValue *qn_nn_batch_norm(QnNet *net, const char *name, QnValue *x);
/* Drops with probability p while training and scales by 1/(1-p); the identity otherwise. */
QnValue *qn_nn_dropout(QnNet *net, QnValue *x, double p);

#endif

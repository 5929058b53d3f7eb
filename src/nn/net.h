/* Building models: quern/nn.h has layers and models; here is what a net holds. */
#ifndef QN_NN_NET_H
#define QN_NN_NET_H

#include "nn/init.h"
#include "ops/ops.h"
#include "quern/nn.h"

typedef struct QnParam {
    QnValue *state; /* the state node's output */
    const char *name;
    bool decay; /* weight decay applies: matrices and kernels, not biases and norms */
} QnParam;

struct QnNet {
    QnGraph *g;    /* borrowed */
    bool training; /* batch norm uses the batch's statistics, dropout drops */
    QnDtype dtype; /* of parameters */
    QnValue *key;  /* i64 (2): micro-batch and seed, what dropout draws from; NULL: no dropout */
    const char *prefix; /* put before the names of trainable states ("ema."); may be NULL */
    QnParam *params;    /* trainable states in order of creation; freed by qn_net_fini */
    int64_t n_params, cap_params;
    char scope[256]; /* "layer1.0" */
};

void qn_net_init(QnNet *net, QnGraph *g, bool training);
void qn_net_fini(QnNet *net); /* frees params; the graph stays */

#endif

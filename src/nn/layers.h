/* Layers beyond those of nn/net.h: norms, embeddings, and the parts of a transformer. Names and
 * shapes of parameters follow PyTorch's modules. */
#ifndef QN_NN_LAYERS_H
#define QN_NN_LAYERS_H

#include "nn/net.h"

/* As qn_nn_linear with weights by `init` and a bias of zeros. */
QnValue *qn_nn_linear_init(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias,
                           const QnInitSpec *init);
/* Over the last axis, whose length must be known. */
QnValue *qn_nn_layer_norm(QnNet *net, const char *name, QnValue *x, bool bias);
QnValue *qn_nn_rms_norm(QnNet *net, const char *name, QnValue *x);
/* Over groups of channels (axis 1). */
QnValue *qn_nn_group_norm(QnNet *net, const char *name, QnValue *x, int64_t groups);

/* Rows of a table (count, width) by i64 ids (any shape); *table (may be NULL) is the state, for
 * tying. Normal with deviation 0.02. */
QnValue *qn_nn_embedding(QnNet *net, const char *name, QnValue *ids, int64_t count, int64_t width,
                         QnValue **table);

typedef struct QnAttentionSpec {
    int64_t heads, kv_heads; /* kv_heads 0: as many as heads; else a divisor of it */
    bool causal, bias;
    double dropout; /* of the result */
    double out_std; /* deviation of the output projection's weights, 0: 0.02 */
} QnAttentionSpec;
/* Self-attention of x (B,T,C): one projection c_attn to q, k, v, then c_proj. */
QnValue *qn_nn_attention(QnNet *net, const char *name, QnValue *x, const QnAttentionSpec *spec);

/* Two linear layers c_fc, c_proj around GELU (tanh form) of x (...,C); hidden width `hidden`. */
QnValue *qn_nn_gelu_mlp(QnNet *net, const char *name, QnValue *x, int64_t hidden, bool bias,
                        double dropout, double out_std);

/* Pre-norm transformer block: x + attn(ln_1(x)), then x + mlp(ln_2(x)), hidden width 4 C. */
QnValue *qn_nn_block(QnNet *net, const char *name, QnValue *x, const QnAttentionSpec *spec);

#endif

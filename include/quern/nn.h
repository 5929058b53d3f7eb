/* Building models: a net that collects parameters, layers, published models, optimizers. All of it
 * adds nodes to a graph and runs nothing.
 *
 * Layers return a value, or after a failure one that stands for it (see quern/graph.h). Tensors are
 * (N,C,spatial...) or (..., features). Parameters are states, named by their path:
 * "layer1.0.conv1.weight". */
#ifndef QUERN_NN_H
#define QUERN_NN_H

#include <quern/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The parameters of a model while its graph is being built. */
typedef struct QnNet QnNet;

/* training: batch norm uses the batch's statistics, dropout drops. Without, the same calls build
 * the model for prediction from the same states. The graph is borrowed. NULL: out of memory. */
QN_API QnNet *qn_net_new(QnGraph *g, bool training);
QN_API void qn_net_free(QnNet *net); /* the graph stays */
/* What dropout draws from: i64 (2), an input of the graph, e.g. step and seed. */
QN_API void qn_net_set_key(QnNet *net, QnValue *key);
/* The trainable states, in the order of their making. */
QN_API int64_t qn_net_param_count(const QnNet *net);
QN_API QnValue *qn_net_param_at(const QnNet *net, int64_t i);
/* Names of what is built between these lie under `name`. */
QN_API void qn_net_push(QnNet *net, const char *name);
QN_API void qn_net_pop(QnNet *net);

/* How a parameter starts. */
typedef enum QnInitKind {
    QN_INIT_KIND_ZEROS,
    QN_INIT_KIND_ONES,
    QN_INIT_KIND_KAIMING_UNIFORM, /* bound sqrt(6 / ((1 + a^2) fan_in)), a = sqrt(5):
                                   * 1/sqrt(fan_in); PyTorch's default for linear and convolution */
    QN_INIT_KIND_KAIMING_NORMAL,  /* deviation sqrt(2 / fan_out); He et al. 2015, for ReLU */
    QN_INIT_KIND_HE_UNIFORM,      /* bound sqrt(6 / fan_in); He et al. 2015, for ReLU */
    QN_INIT_KIND_XAVIER_UNIFORM,  /* bound sqrt(6 / (fan_in + fan_out)); Glorot and Bengio 2010 */
    QN_INIT_KIND_XAVIER_NORMAL,   /* deviation sqrt(2 / (fan_in + fan_out)); the same */
    QN_INIT_KIND_LECUN_UNIFORM,   /* bound sqrt(3 / fan_in); LeCun et al. 1998 */
    QN_INIT_KIND_LECUN_NORMAL,    /* deviation sqrt(1 / fan_in); the same; for SELU */
    QN_INIT_KIND_NORMAL,          /* deviation `scale` */
    QN_INIT_KIND_TRUNC_NORMAL,    /* the same, redrawn beyond two deviations */
    QN_INIT_KIND_UNIFORM,         /* bound `scale` */
} QnInitKind;

typedef struct QnInitSpec {
    QnInitKind kind;
    double fan_in, fan_out; /* inputs of one output element, outputs of one input element */
    double scale;           /* of NORMAL, TRUNC_NORMAL, UNIFORM */
} QnInitSpec;

/* A trainable state under the current scope. */
QN_API QnValue *qn_net_param(QnNet *net, const char *name, const QnShape *shape,
                             const QnInitSpec *init, bool decay);
/* A state that is not trained, e.g. a running mean, filled with `value`. */
QN_API QnValue *qn_net_buffer(QnNet *net, const char *name, const QnShape *shape, double value);

/* ---- layers; `name` is the scope of their parameters ---- */

/* x (..., in) -> (..., out); weight (out, in). */
QN_API QnValue *qn_nn_linear(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias);

typedef struct QnConvSpec {
    int64_t out, kernel, stride, pad, dilation, groups; /* stride, dilation, groups 0: 1 */
    bool bias;
} QnConvSpec;
/* x (N,C,spatial) -> (N,out,spatial'), square kernels; weight (out, C/groups, kernel...). */
QN_API QnValue *qn_nn_conv(QnNet *net, const char *name, QnValue *x, const QnConvSpec *spec);

/* Over axis 1; eps 1e-5, running statistics with momentum 0.1, as PyTorch's. */
QN_API QnValue *qn_nn_batch_norm(QnNet *net, const char *name, QnValue *x);
/* Drops with probability p while training and scales by 1/(1-p); the identity otherwise. */
QN_API QnValue *qn_nn_dropout(QnNet *net, QnValue *x, double p);

/* ---- more layers: norms, embeddings, parts of a transformer ---- */

/* As qn_nn_linear with weights by `init` and a bias of zeros. */
QN_API QnValue *qn_nn_linear_init(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias,
                                  const QnInitSpec *init);
/* Over the last axis, whose length must be known. */
QN_API QnValue *qn_nn_layer_norm(QnNet *net, const char *name, QnValue *x, bool bias);
QN_API QnValue *qn_nn_rms_norm(QnNet *net, const char *name, QnValue *x);
/* Over groups of channels (axis 1). */
QN_API QnValue *qn_nn_group_norm(QnNet *net, const char *name, QnValue *x, int64_t groups);

/* Rows of a table (count, width) by i64 ids (any shape); *table (may be NULL) is the state, for
 * tying. Normal with deviation 0.02. */
QN_API QnValue *qn_nn_embedding(QnNet *net, const char *name, QnValue *ids, int64_t count,
                                int64_t width, QnValue **table);

typedef struct QnAttentionSpec {
    int64_t heads, kv_heads; /* kv_heads 0: as many as heads; else a divisor of it */
    bool causal, bias;
    double dropout; /* of the result */
    double out_std; /* deviation of the output projection's weights, 0: 0.02 */
} QnAttentionSpec;
/* Self-attention of x (B,T,C): one projection c_attn to q, k, v, then c_proj. */
QN_API QnValue *qn_nn_attention(QnNet *net, const char *name, QnValue *x,
                                const QnAttentionSpec *spec);

/* Two linear layers c_fc, c_proj around GELU (tanh form) of x (...,C); hidden width `hidden`. */
QN_API QnValue *qn_nn_gelu_mlp(QnNet *net, const char *name, QnValue *x, int64_t hidden, bool bias,
                               double dropout, double out_std);

/* Pre-norm transformer block: x + attn(ln_1(x)), then x + mlp(ln_2(x)), hidden width 4 C. */
QN_API QnValue *qn_nn_block(QnNet *net, const char *name, QnValue *x, const QnAttentionSpec *spec);

/* ---- published models; names and shapes of parameters are those of torchvision, and of nanoGPT
 * for GPT-2, so that their weights fit ---- */

/* LeNet-5 (LeCun et al. 1998) with ReLU and max pools, for x (N,C,28,28): conv1, conv2, fc1..3.
 * 61,706 parameters for one channel and 10 classes. */
QN_API QnValue *qn_nn_lenet(QnNet *net, QnValue *x, int64_t outputs);

typedef struct QnVggSpec {
    int depth; /* 11, 13, 16 or 19 */
    bool batch_norm;
    bool small; /* one linear layer after the mean over what is left, for images of 32 pixels */
    int64_t outputs;
    double dropout; /* of the classifier while training; 0.5 in the paper */
} QnVggSpec;
/* VGG (Simonyan and Zisserman 2015) for x (N,C,H,W). */
QN_API QnValue *qn_nn_vgg(QnNet *net, QnValue *x, const QnVggSpec *spec);

typedef struct QnResnetSpec {
    int depth;     /* 18, 34, 50, 101, 152 or 200 */
    bool small;    /* a 3x3 stem without stride and pool, for images of about 32 pixels */
    int64_t width; /* channels of the first stage, 0: 64 */
    int64_t outputs;
    int64_t groups, group_width; /* of the 3x3 convolutions in deep nets (50 and up), 0: 1 and 64:
                                  * 32 and 4 is ResNeXt 32x4d, 1 and 128 a wide ResNet */
    int64_t squeeze; /* channels are gated by a net of this reduction (SE blocks), 0: not */
} QnResnetSpec;
/* ResNet (He et al. 2016; with the stride in the 3x3 convolution), ResNeXt (Xie et al. 2017), wide
 * (Zagoruyko and Komodakis 2016) and squeeze-and-excitation (Hu et al. 2018) ResNets for x
 * (N,C,H,W).
 */
QN_API QnValue *qn_nn_resnet(QnNet *net, QnValue *x, const QnResnetSpec *spec);

typedef struct QnGptSpec {
    int64_t vocab, window, layers, heads, width; /* window: the longest sequence */
    bool tied;                                   /* the head's weights are the embedding's */
    bool bias;                                   /* of linear layers and norms */
    double dropout;
} QnGptSpec;
/* "tiny" (4 layers of 128), "small", "medium", "large", "xl"; false: no such size. The latter four
 * are GPT-2's, with its vocabulary, window, tying and biases. */
QN_API bool qn_nn_gpt2_size(const char *name, QnGptSpec *spec);
/* GPT-2 (Radford et al. 2019) on tokens (B,T) i64; T must be known. Scores (B,T,vocab). */
QN_API QnValue *qn_nn_gpt2(QnNet *net, QnValue *tokens, const QnGptSpec *spec);

/* Elements of all trainable states; -1: a shape is symbolic. */
QN_API int64_t qn_nn_param_count(const QnNet *net);

/* ---- optimizers: gradients in, new parameters and moments assigned to their states ---- */

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
    QnValue *apply_if;   /* bool scalar: where it is false nothing changes; NULL: always */
} QnOptim;

/* Appends the gradient of loss (a scalar) by every parameter of the net, and their updates. lr is a
 * scalar f32, step a scalar i64 counting updates from 0: usually inputs. Moments are states
 * "optim.<kind>.<name>". *grad_norm (may be NULL) is the global norm of the gradients before
 * clipping, or NULL where there is no clipping. */
QN_API QnStatus qn_optim_minimise(QnNet *net, const QnOptim *o, QnValue *loss, QnValue *lr,
                                  QnValue *step, QnValue **grad_norm);

#ifdef __cplusplus
}
#endif

#endif

/* Published models as graph builders. Names and shapes of parameters are those of torchvision (and
 * of nanoGPT for GPT-2), so that their weights fit. */
#ifndef QN_NN_MODELS_H
#define QN_NN_MODELS_H

#include "nn/layers.h"

/* LeNet-5 (LeCun et al. 1998) with ReLU and max pools, for x (N,C,28,28): conv1, conv2, fc1..3.
 * 61,706 parameters for one channel and 10 classes. */
QnValue *qn_nn_lenet(QnNet *net, QnValue *x, int64_t outputs);

typedef struct QnVggSpec {
    int depth; /* 11, 13, 16 or 19 */
    bool batch_norm;
    bool small; /* one linear layer after the mean over what is left, for images of 32 pixels */
    int64_t outputs;
    double dropout; /* of the classifier while training; 0.5 in the paper */
} QnVggSpec;
/* VGG (Simonyan and Zisserman 2015) for x (N,C,H,W). */
QnValue *qn_nn_vgg(QnNet *net, QnValue *x, const QnVggSpec *spec);

typedef struct QnResnetSpec {
    int depth;     /* 18, 34, 50, 101 or 152 */
    bool small;    /* a 3x3 stem without stride and pool, for images of about 32 pixels */
    int64_t width; /* channels of the first stage, 0: 64 */
    int64_t outputs;
} QnResnetSpec;
/* ResNet (He et al. 2016; with the stride in the 3x3 convolution) for x (N,C,H,W). */
QnValue *qn_nn_resnet(QnNet *net, QnValue *x, const QnResnetSpec *spec);

typedef struct QnGptSpec {
    int64_t vocab, window, layers, heads, width; /* window: the longest sequence */
    bool tied;                                   /* the head's weights are the embedding's */
    bool bias;                                   /* of linear layers and norms */
    double dropout;
} QnGptSpec;
/* "tiny" (4 layers of 128), "small", "medium", "large", "xl"; false: no such size. The latter four
 * are GPT-2's, with its vocabulary, window, tying and biases. */
bool qn_nn_gpt2_size(const char *name, QnGptSpec *spec);
/* GPT-2 (Radford et al. 2019) on tokens (B,T) i64; T must be known. Scores (B,T,vocab). */
QnValue *qn_nn_gpt2(QnNet *net, QnValue *tokens, const QnGptSpec *spec);

/* Elements of all trainable states; -1: a shape is symbolic. */
int64_t qn_nn_param_count(const QnNet *net);

#endif

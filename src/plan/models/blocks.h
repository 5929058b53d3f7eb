/* What image models are made of, beyond quern/nn.h: convolution, norm and activation in one call,
 * pools by three numbers, gates of channels, inverted residuals, tokens of images. All return a
 * value; x is (N,C,H,W) or tokens (B,T,C). */
#ifndef QN_PLAN_MODELS_BLOCKS_H
#define QN_PLAN_MODELS_BLOCKS_H

#include "plan/models.h"

typedef enum QnAct {
    QN_ACT_NONE,
    QN_ACT_RELU,
    QN_ACT_RELU6,
    QN_ACT_LEAKY, /* slope 0.1 */
    QN_ACT_SILU,
    QN_ACT_GELU,
    QN_ACT_GELU_TANH,
    QN_ACT_HARDSWISH,
    QN_ACT_SIGMOID,
    QN_ACT_HARDSIGMOID,
    QN_ACT_MISH,
} QnAct;
QnValue *qn_block_act(QnNet *net, QnValue *x, QnAct act);

/* Axis i of x; 1 where x stands for a failure. Negative i counts from the end. */
int64_t qn_block_dim(const QnValue *x, int i);
/* "<prefix><i>" as the name of what is built until the pop. */
void qn_block_push(QnNet *net, const char *prefix, int64_t i);

typedef struct QnConvNorm {
    int64_t out, kernel, stride, groups, dilation; /* the last three: 0 stands for 1 */
    int64_t width; /* of the kernel, where it differs from its height `kernel`; else 0 */
    QnAct act;
    bool valid;   /* no zeros around; else as many as keep the size where the stride is 1 */
    bool no_norm; /* a bias instead of the batch norm */
} QnConvNorm;
/* Convolution without bias, batch norm, activation. */
QnValue *qn_block_conv(QnNet *net, const char *name, QnValue *x, const QnConvNorm *spec);

/* The other way round: batch norm, activation, convolution. */
QnValue *qn_block_norm_conv(QnNet *net, const char *name, QnValue *x, const QnConvNorm *spec);

typedef struct QnResidual {
    int64_t out, stride;
    int64_t inner,
        groups;      /* inner > 0: 1x1, 3x3, 1x1 with so many channels between; else 3x3, 3x3 */
    int64_t squeeze; /* gate's narrow channels after the 3x3, 0: no gate */
    QnValue *around; /* what is added; NULL: x, through a 1x1 where the shapes differ */
} QnResidual;
/* Residual block (He et al. 2016) with the stride in the 3x3 convolution. */
QnValue *qn_block_residual(QnNet *net, QnValue *x, const QnResidual *spec);

QnValue *qn_block_max_pool(QnNet *net, QnValue *x, int64_t kernel, int64_t stride, int64_t pad);
/* Counts the zeros of the padding. */
QnValue *qn_block_avg_pool(QnNet *net, QnValue *x, int64_t kernel, int64_t stride, int64_t pad);
/* Means of 2x2 elements, of fewer at an odd end. */
QnValue *qn_block_halve(QnNet *net, QnValue *x);
/* x, or an error where its height and width are not multiples of `side`. */
QnValue *qn_block_multiple(QnNet *net, QnValue *x, int64_t side);
/* Twice as high and wide (or `times`), the nearest element or between them. */
QnValue *qn_block_upsample(QnNet *net, QnValue *x, int64_t times, bool linear);

/* Channels gated by their means: 1x1 convolutions with biases to `hidden` channels and back. */
QnValue *qn_block_squeeze(QnNet *net, const char *name, QnValue *x, int64_t hidden, QnAct act,
                          QnAct gate);

typedef struct QnInverted {
    int64_t hidden, out, kernel,
        stride;      /* hidden: channels between; as many as x has: not widened */
    int64_t squeeze; /* of the gate, 0: none */
    QnAct act, gate;
    QnAct squeeze_act; /* QN_ACT_NONE: as act */
    bool fused;        /* one full convolution widens, instead of a narrow and a depthwise one */
    bool always;       /* the convolution that widens is there even where it does not */
} QnInverted;
/* Inverted residual (Sandler et al. 2018): 1x1 wider, depthwise, gate, 1x1 narrower; added to x
 * where the shapes agree. */
QnValue *qn_block_inverted(QnNet *net, QnValue *x, const QnInverted *spec);

/* Mean over the image, dropout, scores of 1000 classes. */
QnValue *qn_block_classify(QnNet *net, const char *name, QnValue *x, double dropout);

/* ---- tokens ---- */

/* A convolution with bias over patches of an image, as tokens (B,T,width). An error where the
 * patches do not fill the image. */
QnValue *qn_block_patches(QnNet *net, const char *name, QnValue *x, int64_t width, int64_t patch);
/* (N,C,H,W) to (N,H*W,C), and back to h rows of tokens. */
QnValue *qn_block_tokens(QnNet *net, QnValue *x);
QnValue *qn_block_image(QnNet *net, QnValue *x, int64_t h);
/* (N,C,H,W) to (N,H,W,C) and back. */
QnValue *qn_block_channels_last(QnNet *net, QnValue *x);
QnValue *qn_block_channels_first(QnNet *net, QnValue *x);
/* Tokens x behind `count` trained ones (0: none). */
QnValue *qn_block_prepend(QnNet *net, const char *name, QnValue *x, int64_t count);
/* Trained positions added to all tokens of x but the first `skip`. */
QnValue *qn_block_positions(QnNet *net, QnValue *x, int64_t skip);
/* Scores of 1000 classes from the first token, or from the mean over tokens. */
QnValue *qn_block_token_classify(QnNet *net, const char *name, QnValue *x, bool mean);
/* A trained tensor of small values. */
QnValue *qn_block_table(QnNet *net, const char *name, const QnShape *shape);
/* x times a trained factor for each element of its last axis. */
QnValue *qn_block_scale(QnNet *net, const char *name, QnValue *x);
/* The same for the channels of (N,C,H,W). */
QnValue *qn_block_channel_scale(QnNet *net, const char *name, QnValue *x);
/* Layer norm over the channels of (N,C,H,W). */
QnValue *qn_block_image_norm(QnNet *net, const char *name, QnValue *x);
/* Two linear layers with biases around an activation. */
QnValue *qn_block_mlp(QnNet *net, const char *name, QnValue *x, int64_t hidden, int64_t out,
                      QnAct act);

/* Windows of `side` elements a side: (N,H,W,C) to (windows, side*side, C), and back to images of
 * h rows and w columns. An error names a size that they do not fill. */
QnValue *qn_block_windows(QnNet *net, QnValue *x, int64_t side);
QnValue *qn_block_unwindow(QnNet *net, QnValue *x, int64_t side, int64_t h, int64_t w);
/* Zeros behind the last rows and columns of (N,H,W,C), up to whole multiples of `side`. */
QnValue *qn_block_pad_to(QnNet *net, QnValue *x, int64_t side);
/* Row of a table of (2h-1)(2w-1) for each pair of places: (h*w,h*w). */
QnValue *qn_block_differences(QnNet *net, int64_t h, int64_t w);
/* A trained bias for each head and difference of places in a window of h x w elements:
 * (1,heads,h*w,h*w), from a table of (2h-1)(2w-1) rows. */
QnValue *qn_block_relative_bias(QnNet *net, const char *name, int64_t h, int64_t w, int64_t heads);

/* Attention as nets have it that do not use a kernel for it: products, an addition (mask, may be
 * NULL) and a softmax of their own. q (B,heads,T,D), k (B,heads,S,D), v (B,heads,S,E). */
QnValue *qn_block_plain_attention(QnNet *net, QnValue *const qkv[3], QnValue *mask, double scale);

typedef struct QnSelf {
    int64_t heads;
    bool no_bias;  /* of the three projections */
    QnValue *mask; /* added to the scores; may be NULL */
} QnSelf;
/* Self-attention of tokens, one projection to queries, keys and values, and one at the end. */
QnValue *qn_block_self_attention(QnNet *net, const char *name, QnValue *x, const QnSelf *spec);
/* Attention between channels (El-Nouby et al. 2021): each head's scores are of channels with
 * channels, so they do not grow with the image. */
QnValue *qn_block_cross_covariance(QnNet *net, const char *name, QnValue *x, int64_t heads);
/* 64 sines of places, through a 1x1 convolution to the channels of x (N,C,H,W): (1,C,H,W). */
QnValue *qn_block_sine_places(QnNet *net, const char *name, QnValue *x);
/* (B,T,heads*D) to (B,heads,T,D) and back. */
QnValue *qn_block_split_heads(QnNet *net, QnValue *x, int64_t heads);
QnValue *qn_block_join_heads(QnNet *net, QnValue *x);

#endif

/* Statistics of channels and normalisation by them, for batch norm in either layout. A tensor is
 * cut into parts whose number depends on its shape alone, and parts are joined in order: the result
 * has the same bits for any thread count. */
#ifndef QN_BACKEND_CPU_CHANNELS_H
#define QN_BACKEND_CPU_CHANNELS_H

#include "base/isa_list.h"
#include "ir/shape.h"

/* x is (outer, c, inner); channels-last tensors and matrices have inner 1. */
typedef struct QnChannels {
    int64_t outer, c, inner, n_parts; /* parts cut `outer` */
    bool streams;                     /* what is written goes past the caches, where it can */
} QnChannels;

QnChannels qn_channels_of(const QnType *x);

/* dy passes only where (x - mean[c]) * factor[c] + bias[c] > least: what a ReLU behind the norm
 * lets through. */
typedef struct QnChannelRelu {
    const float *factor, *bias;
    float least; /* what images of 16 bits round to 0 */
} QnChannelRelu;

/* Of the gradient, by channel: made of the sums of all parts. */
typedef struct QnChannelGrad {
    const float *scale, *k0, *k1;
} QnChannelGrad;

typedef struct QnChannelFns {
    /* Mean and sum of squared differences of each channel over a part: to[0..c), to[c..2c);
     * to[2c..3c) is scratch. */
    void (*stats)(const QnChannels *s, const float *x, int64_t part, float *to);
    /* y = (x - mean[c]) * scale[c] + bias[c] over a part; y may be x. */
    void (*affine)(const QnChannels *s, const float *x, const float *mean, const float *scale,
                   const float *bias, float *y, int64_t part);
    /* Sums of dy and of dy * (x - mean[c]) over a part: to[0..c), to[c..2c). relu may be NULL. */
    void (*grad_sums)(const QnChannels *s, const float *dy, const float *x, const float *mean,
                      const QnChannelRelu *relu, int64_t part, float *to);
    /* dx = scale[c] * (dy - k0[c] - (x - mean[c]) * k1[c]) over a part; dx may be dy or x. */
    void (*grad)(const QnChannels *s, const float *dy, const float *x, const float *mean,
                 const QnChannelRelu *relu, const QnChannelGrad *k, float *dx, int64_t part);
} QnChannelFns;

#define QN_X(name) extern const QnChannelFns qn_channel_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnChannelFns *qn_channels_find(const char *isa);

/* Joins the parts' sums of a gradient over n elements a channel, QN_CHANNELS_JOINT channels a call:
 * of c channels, `step` floats a part. Of what is given, to_scale = gamma * rstd, else it is there
 * already. */
typedef struct QnChannelJoin {
    int64_t c, n_parts, step;
    double n;
    const float *parts, *rstd, *gamma;
    float *to_scale, *to_k0, *to_k1, *dscale, *dbias;
} QnChannelJoin;
enum { QN_CHANNELS_JOINT = 64 }; /* a part's numbers lie beside each other */
void qn_channels_join_grad(const QnChannelJoin *j, int64_t joint);

#endif

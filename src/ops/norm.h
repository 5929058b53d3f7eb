/* What normalisations share. All compute xhat = (x - mean) * rstd over some axes and then an affine
 * map; their gradient operators take mean and rstd as inputs of their own. */
#ifndef QN_OPS_NORM_H
#define QN_OPS_NORM_H

#include "ops/util.h"

/* Attributes of layer_norm; of others that begin with it. */
typedef struct QnLayerNormAttr {
    int64_t axis;
    double eps;
} QnLayerNormAttr;

#define QN_NORM_EPS(Type, value, what)                                                             \
    {                                                                                              \
        .name = "eps", .kind = QN_ATTR_FLOAT, .offset = offsetof(Type, eps), .def = (value),       \
        .min = 0, .max = 1e30, .doc = (what)                                                       \
    }

/* Statistics of 16-bit tensors are f32. */
QnDtype qn_norm_stat(QnDtype x);
/* Refuses anything but floats; operand i must have the dtype of operand 0 where bit i of `same` is
 * set, else that or its statistics' dtype. */
QnStatus qn_norm_dtypes(QnInfer *c, const char *op, unsigned same);
/* Of a norm of channels: x, operand 0, is (N,C,...) of at least this rank, every other one (C). */
QnStatus qn_norm_channels(QnInfer *c, const char *op, int rank, unsigned same);
/* Operand i must have this shape, as far as concrete dims tell. */
QnStatus qn_norm_shape(QnInfer *c, const char *op, int i, const QnShape *want);
bool qn_norm_has(const QnInfer *c, int i); /* input i is given */

/* How the small tensors line up with x. */
typedef struct QnNormView {
    QnInts axes;   /* normalised over */
    QnShape stat;  /* mean and rstd, broadcast against x */
    QnShape param; /* scale and bias, broadcast against x */
} QnNormView;

/* Axes [from, rank) and the view of a norm whose parameters span them (layer norm). */
QnNormView qn_norm_view_last(const QnShape *x, int from);
/* Elements of the axes [from, rank): of a row, also where there are no rows. x is concrete. */
int64_t qn_norm_row_size(const QnShape *x, int from);
/* The view of batch norm: over all but axis 1, parameters along axis 1. */
QnNormView qn_norm_view_channel(const QnShape *x);

typedef struct QnNormTerms { /* inputs of a gradient operator, or cotangents of its inputs */
    QnValue *dy, *x, *mean, *rstd, *scale; /* mean NULL: RMS norm; scale NULL: none */
} QnNormTerms;

/* Second order. The operator computes, with xh = (x - mean) * rstd and h = dy * scale,
 *   dx = rstd * (h - M(h) - xh * M(h * xh)), dscale = S(dy * xh), dbias = S(dy)
 * where M is the mean over the axes (without M(h) if there is no mean) and S sums to the
 * parameters. From the cotangents u, v, w of its outputs (NULL: none) follow those of its inputs.
 */
QnNormTerms qn_norm_grad_grad(QnGraph *g, const QnNormView *view, const QnNormTerms *in, QnValue *u,
                              QnValue *v, QnValue *w);
/* What x receives through the outputs mean and rstd of the forward operator (NULL: not used);
 * NULL if nothing. mean is NULL for RMS norm. */
QnValue *qn_norm_stat_grad(QnGraph *g, const QnNormView *view, QnValue *x, QnValue *mean,
                           QnValue *rstd, QnValue *dmean, QnValue *drstd);
/* Likewise through the unbiased variance: 2 (x - mean) / (n - 1). */
QnValue *qn_norm_var_grad(QnGraph *g, const QnNormView *view, QnValue *x, QnValue *mean,
                          QnValue *dvar);
/* 1 / number of elements along the axes, a scalar; the dims may be symbolic. */
QnValue *qn_norm_inverse_count(QnGraph *g, const QnShape *x, const QnInts *axes, QnDtype dtype);
/* Of channel c of x, an array (outer, n, inner): mean, 1 / sqrt(biased variance + eps) and unbiased
 * variance, in float64. */
void qn_norm_channel_stats(const double *x, QnRows r, int64_t c, double eps, double to[3]);
/* Launch over the channels of an array (outer, n, inner): one work group of `whole` a channel, or
 * several of `share` and then of `join` where channels are few and large, with two floats a group
 * between them. Scalars are outer, n, inner and the groups a channel. */
void qn_norm_channel_call(QnRows r, const char *whole, const char *share, const char *join,
                          QnDeviceCall *c);
/* (x - mean) * factor + bias by channel, computed in the type of the factor, in that of x. */
QnValue *qn_norm_affine(QnGraph *g, QnValue *x, QnValue *mean, QnValue *factor, QnValue *bias);
/* What batch_norm_grad computes where the result went into a ReLU and from there came back as dy:
 * inputs x, mean, rstd, factor, bias as batch_norm_relu_grad has them; out: its three outputs. */
void qn_norm_relu_grad(QnGraph *g, QnValue *dy, QnValue *y, QnValue *const in[5], QnValue **out);
/* Types of operator `op`: operand 0 a float image like x or a pool of it, x the image, mean and
 * rstd and factor its statistics, bias. Outputs are like x, and of its channels. */
QnStatus qn_norm_relu_grad_infer(QnInfer *c, const char *op);
/* a + b where either may be NULL. */
QnValue *qn_norm_add(QnGraph *g, QnValue *a, QnValue *b);

#endif

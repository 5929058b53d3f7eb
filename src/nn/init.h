/* How parameters start: the published rules as settings of state nodes. */
#ifndef QN_NN_INIT_H
#define QN_NN_INIT_H

#include "ops/attrs.h"

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

/* Sets init, a and b. A fan of 0 gives zeros. */
void qn_init_apply(const QnInitSpec *s, QnStateAttr *a);

/* Fans of a weight (out, in, window...): in * window and out * window. Dims must be known. */
void qn_init_fans(const QnShape *w, double *fan_in, double *fan_out);

#endif

/* Dynamic loss scaling for f16: the loss is multiplied before differentiation, so that small
 * gradients do not vanish, and gradients are divided again in f32. An update whose gradients are
 * not finite is left out and halves the scale; 2,000 clean ones double it, up to 2^24. Micikevicius
 * et al. 2018. */
#ifndef QN_NN_SCALER_H
#define QN_NN_SCALER_H

#include "nn/net.h"

#define QN_SCALER_FIRST  65536.0
#define QN_SCALER_PERIOD 2000 /* clean updates after which the scale doubles */
/* Gradients of 2^-48 are then within the range of f16. Where for long nothing is computed in f16,
 * the scale would otherwise grow to infinity, from which no halving leads back. */
#define QN_SCALER_MOST 0x1p24

typedef struct QnScaler {
    QnValue *scale, *clean; /* states "optim.loss_scale", "optim.loss_scale_clean"; f32 scalars */
} QnScaler;

/* The loss to differentiate. */
QnValue *qn_scaler_scale(QnScaler *s, QnNet *net, QnValue *loss);

/* Replaces grads[0..n) by the unscaled ones and appends the scale's own update. *finite is a bool
 * scalar, for QnOptim.apply_if. */
QnStatus qn_scaler_unscale(QnScaler *s, QnNet *net, QnValue **grads, int n, QnValue **finite);

#endif

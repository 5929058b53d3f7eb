/* How parameters start: the published rules of quern/nn.h as settings of state nodes. */
#ifndef QN_NN_INIT_H
#define QN_NN_INIT_H

#include "ops/attrs.h"
#include "quern/nn.h"

/* Sets init, a and b. A fan of 0 gives zeros. */
void qn_init_apply(const QnInitSpec *s, QnStateAttr *a);

/* Fans of a weight (out, in, window...): in * window and out * window. Dims must be known. */
void qn_init_fans(const QnShape *w, double *fan_in, double *fan_out);

#endif

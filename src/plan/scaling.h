/* Data parallelism of models that are not divided: what a step takes on n devices. */
#ifndef QN_PLAN_SCALING_H
#define QN_PLAN_SCALING_H

#include "plan/comm.h"
#include "plan/cost.h"

typedef struct QnScaling {
    double step_s, one_s; /* on n devices; of one alone */
    double exposed_s;     /* the all-reduce that the backward pass does not hide */
    double waiting_s;     /* for the slowest of n devices */
    double efficiency;    /* one_s / step_s */
} QnScaling;

/* r->n_cards devices, each with the batch of the count; l: what joins them. Gradients travel in 32
 * bits, `compression` times smaller. */
QnStatus qn_scaling_step(const QnCount *c, const QnCostRequest *r, const QnCoefs *k,
                         const QnLinks *l, double compression, QnScaling *out);

#endif

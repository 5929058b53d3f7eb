/* The graph of one step of a model: forward, or forward, gradients and update. */
#ifndef QN_PLAN_STEP_H
#define QN_PLAN_STEP_H

#include "plan/count.h"

typedef struct QnStep {
    QnGraph *graph;
    double params;
} QnStep;

/* layers 0: as many as the model has. */
QnStatus qn_step_build(const QnModel *m, const QnCountRequest *r, int64_t layers, QnStep *out);

#endif

/* The graph of one step of a model: forward, or forward, gradients and update. */
#ifndef QN_PLAN_STEP_H
#define QN_PLAN_STEP_H

#include "plan/count.h"

typedef struct QnStep {
    QnGraph *graph;
    double params, macs; /* macs: of the pass forward */
    double matrices;     /* those of params that are in matrices and kernels */
    double idle;         /* those that the graph does not have */
    double tables;       /* those of tables of which rows are trained where they lie */
    double frozen;       /* those that are not trained */
    double trained;      /* those whose gradients are summed over devices; 0: all */
    /* of graphs that are made elsewhere */
    const char *off; /* passes that are left out; NULL: none */
    bool halves;     /* all floats stand for half as many bytes */
    void *owner;     /* what the graph needs while it lives, freed by free_owner; or NULL */
    void (*free_owner)(void *owner);
} QnStep;

void qn_step_fini(QnStep *s);

/* What a request leaves open is the model's own. */
QnStepInput qn_step_input(const QnModel *m, const QnCountRequest *r);
/* layers 0: as many as the model has. */
QnStatus qn_step_build(const QnModel *m, const QnCountRequest *r, int64_t layers, QnStep *out);

#endif

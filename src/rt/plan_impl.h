/* The inside of a plan, shared by plan.c (compiling, reading) and exec.c (running). */
#ifndef QN_RT_PLAN_IMPL_H
#define QN_RT_PLAN_IMPL_H

#include "rt/batch.h"
#include "rt/blocks.h"
#include "rt/plan.h"

typedef struct QnPlanRun {
    QnPrepared prepared;
    const void **in;
    void **out;
    void *workspace;
    int64_t packed_offset;  /* among the constants */
    int64_t workspace_life; /* its index among the arena's lives, -1: none */
    uint64_t ns, runs;
} QnPlanRun;

typedef struct QnPlanCopy { /* after the steps: old contents of states, then assigns not placed */
    void *dst;
    const void *src;
    size_t bytes;
} QnPlanCopy;

typedef struct QnPlanPort { /* an input or output by name */
    const char *name;
    void *ptr;
    QnType type;
} QnPlanPort;

/* Devices that can capture do so in the second run: in the first, drivers load what they need. */
typedef struct QnPlanCapture {
    void *graph;    /* NULL: steps are launched one by one */
    int64_t n_runs; /* before the attempt */
    bool is_tried;
    char reason[QN_ERROR_TEXT_BYTES]; /* why there is no graph, "": none was wanted yet */
} QnPlanCapture;

struct QnPlan {
    QnGraph *graph;
    QnDevice *device;
    QnStore *store;
    QnPlanOptions options;
    QnArena *arena; /* host memory of the plan's own arrays */
    QnBlocks blocks;
    const QnKernel **kernels;
    QnPlanRun *steps;
    int64_t n_steps;
    QnBatches batches;
    QnPlanCopy *copies;
    int64_t n_copies;
    QnPlanPort *inputs, *outputs;
    int64_t n_inputs, n_outputs;
    char *base, *constants; /* device memory */
    QnPlanMemory memory;
    QnPlanCapture capture;
};

/* rt/constants.c: places the constants, and what kernels pack of them, in a pool of *bytes.
 * Constants that are only packed are not stored. */
QnStatus qn_constants_place(QnPlan *p, int64_t *bytes);
/* Writes and packs them; the pool is allocated. */
QnStatus qn_constants_write(QnPlan *p);

#endif

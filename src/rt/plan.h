/* A plan: a graph compiled for one device into a flat list of steps with buffers at fixed offsets.
 * Running it allocates nothing.
 *
 * The graph must be concrete, verified, free of composites that the device has no kernel for, and
 * outlive the plan unchanged. A plan is run by one thread at a time; plans are independent of each
 * other but for the store that they share. */
#ifndef QN_RT_PLAN_H
#define QN_RT_PLAN_H

#include "rt/select.h"
#include "rt/store.h"

typedef struct QnPlan QnPlan;

typedef struct QnPlanOptions {
    const QnChoices *choices; /* NULL: ranks decide */
    bool poison;              /* fill memory with NaN patterns before it is written and after its
                               * last use: finds reads of what is not there (tests) */
    bool profile;             /* measure each step */
    bool check_finite;        /* stop at the first step that writes an infinity or a NaN (host
                               * devices), naming node and element; costs a pass over all outputs */
} QnPlanOptions;

/* Compiles and allocates. The store must hold the graph's states and be allocated. */
QnStatus qn_plan_new(QnGraph *g, QnDevice *d, QnStore *store, const QnPlanOptions *options,
                     QnPlan **out);
void qn_plan_free(QnPlan *p);

/* The device memory of input `name`, to be written before each run: its content does not survive
 * one. NULL: the graph has no such input (or no node uses it: `*type` is then still given). */
void *qn_plan_input(const QnPlan *p, const char *name, QnType *type);
/* Device memory of a graph output, valid after a run until the next. NULL: no such output. */
const void *qn_plan_output(const QnPlan *p, const char *name, QnType *type);

/* One run. An error names the node; states may then be half updated. */
QnStatus qn_plan_run(QnPlan *p);

/* Bytes: the arena of activations and workspaces, as planned; constants; and the sum of both and
 * the store, which is what the device has been asked for. */
typedef struct QnPlanMemory {
    int64_t arena_bytes, bound_bytes; /* bound: no placement could be smaller */
    int64_t constant_bytes, state_bytes;
    int64_t planned_peak_bytes;
} QnPlanMemory;
QnPlanMemory qn_plan_memory(const QnPlan *p);

/* Adds the kernel of every step to the choices, so that another plan repeats them. */
QnStatus qn_plan_record(const QnPlan *p, QnChoices *c);

/* The steps, for explain, profile and tests. */
typedef struct QnPlanStep {
    const QnNode *node;
    const QnKernel *kernel;
    QnCost cost;
    int64_t out_offset; /* output 0 in the arena; -1: it lies in a state */
    bool inplace;       /* output 0 was put over an input */
    size_t workspace_bytes;
    uint64_t ns, runs; /* summed over runs, when profiling */
} QnPlanStep;
int64_t qn_plan_n_steps(const QnPlan *p);
QnPlanStep qn_plan_step(const QnPlan *p, int64_t i);

#endif

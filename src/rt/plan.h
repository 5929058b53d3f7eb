/* A plan: a graph compiled for one device into a flat list of steps with buffers at fixed offsets.
 * Running it allocates nothing.
 *
 * The graph must be concrete, verified, free of composites that the device has no kernel for, and
 * outlive the plan unchanged. A plan is run by one thread at a time; plans are independent of each
 * other but for the store that they share. What runs a plan is in quern/plan.h. */
#ifndef QN_RT_PLAN_H
#define QN_RT_PLAN_H

#include "rt/select.h"
#include "rt/store.h"

/* Adds the kernel of every step to the choices, so that another plan repeats them. */
QnStatus qn_plan_record(const QnPlan *p, QnChoices *c);

/* Runs once, step by step, and stops with QN_ENUMERIC at the first node that writes an infinity or
 * NaN, naming it. What a run changes in states may then have been changed in part. */
QnStatus qn_plan_run_checked(QnPlan *p);

/* The steps, for explain, profile and tests. */
typedef struct QnPlanStep {
    const QnNode *node;
    const QnKernel *kernel;
    QnCost cost;
    int64_t out_offset; /* output 0 in the arena; -1: it lies in a state */
    bool inplace;       /* output 0 was put over an input */
    size_t workspace_bytes;
    int64_t n_launched; /* steps that its launch does: 1, more, or 0 in the launch of one before */
    uint64_t ns, runs;  /* summed over runs, when profiling */
} QnPlanStep;
int64_t qn_plan_n_steps(const QnPlan *p);
QnPlanStep qn_plan_step(const QnPlan *p, int64_t i);

/* Whether runs replay one captured graph; if not, *reason (may be NULL) says why, or is "" where
 * the device has no such thing or the plan has not run twice. */
bool qn_plan_is_captured(const QnPlan *p, const char **reason);

/* Bytes that one run reads and writes in far memory (rt/device.h). */
int64_t qn_plan_far_traffic(const QnPlan *p);

#endif

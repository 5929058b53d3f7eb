/* What this machine can do at most, measured: the yardsticks of benchmarks and profiles. */
#ifndef QN_BACKEND_CPU_LIMITS_H
#define QN_BACKEND_CPU_LIMITS_H

#include "rt/kernel.h"

typedef struct QnLimits {
    double flops_per_s; /* multiply-adds on registers, f32, all threads of the environment */
    double
        bf16_flops_per_s; /* of bf16 with sums in f32, by the CPU's own instruction if it has one */
    double bytes_per_s;   /* memory read and written by all threads, arrays beyond the caches */
} QnLimits;

/* Takes about half a second; the best of several tries, as the machine may be busy. */
QnStatus qn_cpu_limits(const QnKernelEnv *env, QnLimits *out);

/* The least time that a node of this cost can take under these limits. */
double qn_cpu_limit_ns(const QnLimits *l, const QnNode *n, const QnCost *c);

#endif

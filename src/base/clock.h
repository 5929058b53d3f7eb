/* Time that never jumps, for measuring. */
#ifndef QN_BASE_CLOCK_H
#define QN_BASE_CLOCK_H

#include "base/compiler.h"

#include <time.h>

QN_INLINE int64_t qn_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Time that all threads of the process have been running. */
QN_INLINE int64_t qn_clock_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif

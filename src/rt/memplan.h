/* Offsets in one arena for blocks with known lifetimes. */
#ifndef QN_RT_MEMPLAN_H
#define QN_RT_MEMPLAN_H

#include "base/mem.h"

typedef struct QnLife {
    int64_t bytes;
    int64_t first, last; /* steps, inclusive, during which it holds data */
    int64_t offset;      /* result, a multiple of align */
} QnLife;

enum { QN_ARENA_ALIGN = 64 };

/* Places blocks so that those alive at the same step do not overlap: largest first, each at the
 * lowest gap that fits (Pisarchyk and Lee 2020, greedy by size). *total is the arena's size,
 * *bound the largest sum of bytes alive at one step, below which no placement can go. align is
 * QN_ARENA_ALIGN or what the device asks for (QnDevice.align). */
QnStatus qn_memplan(QnLife *lives, int64_t n, int64_t align, int64_t *total, int64_t *bound);

#endif

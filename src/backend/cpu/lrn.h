/* Local response normalisation: every element divided by a power of its neighbours' mean square. */
#ifndef QN_BACKEND_CPU_LRN_H
#define QN_BACKEND_CPU_LRN_H

#include "base/isa_list.h"

#include <stdbool.h>
#include <stdint.h>

/* QN_LRN_PIXELS: of plain images, a unit's; of channels-last ones a unit has one row or more. */
enum { QN_LRN_PIXELS = 128, QN_LRN_MOST = 64, QN_LRN_PAD = 32 };

typedef struct QnLrn {
    int64_t c, pixels; /* of an image, whose channels or pixels are adjacent */
    int64_t size;      /* of the window, at most QN_LRN_MOST: from channel c - size / 2 on */
    float scale, k, beta;
} QnLrn;

/* y = x / (k + scale * sum of x^2 over the window)^beta; y does not lie over x. */
typedef struct QnLrnFns {
    /* pixels p0..p1 of an image, at most QN_LRN_PIXELS, its channels l->pixels apart */
    void (*plain)(const QnLrn *l, const float *x, float *y, int64_t p0, int64_t p1);
    /* one pixel, its channels adjacent */
    void (*last)(const QnLrn *l, const float *x, float *y, float *scratch);
} QnLrnFns;

#define QN_X(name) extern const QnLrnFns qn_lrn_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnLrnFns *qn_lrn_find(const char *isa);

/* Floats of scratch that a call of `last` needs. */
static inline int64_t qn_lrn_scratch(const QnLrn *l)
{
    return 2 * (l->c + QN_LRN_PAD) + QN_LRN_MOST;
}

#endif

/* Pools over channels-last pixels; plain tensors are turned in the worker's scratch memory, some
 * channels of an image at a time. */
#ifndef QN_BACKEND_CPU_POOL_H
#define QN_BACKEND_CPU_POOL_H

#include "base/isa_list.h"
#include "ops/window.h"

enum { QN_POOL_CHANNELS = 64, QN_POOL_PLAIN_CHANNELS = 16 }; /* of a unit at most */

typedef struct QnPool {
    QnWindow w;
    int64_t n, c;
    bool plain;     /* or channels-last: every tensor alike */
    bool count_pad; /* averages divide by the padding's elements too */
} QnPool;

/* Unit: an image's block of channels. */
typedef struct QnPoolFns {
    void (*max)(const QnPool *p, const float *x, float *y, int64_t unit, float *scratch);
    void (*max_grad)(const QnPool *p, const float *dy, const float *x, float *dx, int64_t unit,
                     float *scratch);
    void (*avg)(const QnPool *p, const float *x, float *y, int64_t unit, float *scratch);
    void (*avg_grad)(const QnPool *p, const float *dy, float *dx, int64_t unit, float *scratch);
} QnPoolFns;

#define QN_X(name) extern const QnPoolFns qn_pool_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnPoolFns *qn_pool_find(const char *isa);

static inline int64_t qn_pool_in(const QnPool *p)
{
    return p->w.in[0] * p->w.in[1] * p->w.in[2];
}

static inline int64_t qn_pool_out(const QnPool *p)
{
    return p->w.out[0] * p->w.out[1] * p->w.out[2];
}

static inline int64_t qn_pool_channels(const QnPool *p)
{
    return p->plain ? QN_POOL_PLAIN_CHANNELS : QN_POOL_CHANNELS;
}

static inline int64_t qn_pool_blocks(const QnPool *p)
{
    return (p->c + qn_pool_channels(p) - 1) / qn_pool_channels(p);
}

/* Floats of scratch that a worker needs: two tensors of the input's size and one of the output's.
 */
static inline int64_t qn_pool_scratch(const QnPool *p)
{
    return p->plain ? (2 * qn_pool_in(p) + qn_pool_out(p)) * QN_POOL_PLAIN_CHANNELS : 0;
}

#endif

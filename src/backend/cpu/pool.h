/* Pools over channels-last pixels in f32; plain tensors are turned and 16-bit ones widened in the
 * worker's scratch memory, some channels of an image at a time. */
#ifndef QN_BACKEND_CPU_POOL_H
#define QN_BACKEND_CPU_POOL_H

#include "backend/cpu/convert.h"
#include "ops/window.h"

/* Channels of a unit at most; of 16 bits they are a cache line. */
enum { QN_POOL_CHANNELS = 64, QN_POOL_HALF_CHANNELS = 32, QN_POOL_PLAIN_CHANNELS = 16 };

typedef struct QnPool {
    QnWindow w;
    int64_t n, c;
    bool plain;     /* or channels-last: every tensor alike */
    bool count_pad; /* averages divide by the padding's elements too */
    QnDtype dtype;  /* of every tensor: f32, f16 or bf16 */
    const QnConvertFns *convert;
} QnPool;

/* Unit: an image's block of channels. */
typedef struct QnPoolFns {
    void (*max)(const QnPool *p, const void *x, void *y, int64_t unit, float *scratch);
    void (*max_grad)(const QnPool *p, const void *dy, const void *x, void *dx, int64_t unit,
                     float *scratch);
    void (*avg)(const QnPool *p, const void *x, void *y, int64_t unit, float *scratch);
    void (*avg_grad)(const QnPool *p, const void *dy, void *dx, int64_t unit, float *scratch);
} QnPoolFns;

/* Along each axis, which windows cover an element, by which tap: from begin[e] to begin[e + 1]. */
typedef struct QnPoolReach {
    int64_t *begin[3], *window[3], *tap[3];
} QnPoolReach;
QnStatus qn_pool_reach_init(QnPoolReach *r, const QnWindow *w);
void qn_pool_reach_fini(QnPoolReach *r);

/* The max pool of a batch norm's ReLU, by channel: of (x - mean) * factor + bias. */
typedef struct QnPoolNorm {
    const float *mean, *factor, *bias, *k0, *k1;
    const QnPoolReach *reach;
    /* Which tap won each window, -1 if no gradient reaches it; of every tensor channels-last. */
    int8_t *who;
    bool past; /* dx goes past the caches, where it can */
} QnPoolNorm;
enum { QN_POOL_NORM_TAPS = 127 }; /* at most */

/* Units as above; images of any of the types, everything by channel in f32. */
typedef struct QnPoolNormFns {
    void (*max)(const QnPool *p, const QnPoolNorm *k, const void *x, void *y, int64_t unit,
                float *scratch);
    /* Of the gradient g that x's normalised values get: sums of g and of g * (x - mean), which go
     * to the unit's channels in to[0..c) and to[c..2c). Finds who. */
    void (*sums)(const QnPool *p, const QnPoolNorm *k, const void *dy, const void *x, float *to,
                 int64_t unit, float *scratch);
    /* dx = factor * (g - k0 - (x - mean) * k1) */
    void (*grad)(const QnPool *p, const QnPoolNorm *k, const void *dy, const void *x, void *dx,
                 int64_t unit, float *scratch);
} QnPoolNormFns;

#define QN_X(name)                                                                                 \
    extern const QnPoolFns qn_pool_fns_##name;                                                     \
    extern const QnPoolNormFns qn_pool_norm_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnPoolNormFns *qn_pool_norm_find(const char *isa);
const QnPoolFns *qn_pool_find(const char *isa);

static inline int64_t qn_pool_in(const QnPool *p)
{
    return p->w.in[0] * p->w.in[1] * p->w.in[2];
}

static inline int64_t qn_pool_out(const QnPool *p)
{
    return p->w.out[0] * p->w.out[1] * p->w.out[2];
}

static inline bool qn_pool_is_half(const QnPool *p)
{
    return p->dtype != QN_DTYPE_F32;
}

static inline int64_t qn_pool_channels(const QnPool *p)
{
    int64_t most = p->plain             ? QN_POOL_PLAIN_CHANNELS
                   : qn_pool_is_half(p) ? QN_POOL_HALF_CHANNELS
                                        : QN_POOL_CHANNELS;
    return QN_MIN(most, QN_MAX(p->c, 1));
}

static inline int64_t qn_pool_blocks(const QnPool *p)
{
    return (p->c + qn_pool_channels(p) - 1) / qn_pool_channels(p);
}

/* Floats of a unit's channels that are widened, but not yet turned. */
static inline int64_t qn_pool_unturned(const QnPool *p)
{
    bool both = p->plain && qn_pool_is_half(p);
    return both ? QN_MAX(qn_pool_in(p), qn_pool_out(p)) * qn_pool_channels(p) : 0;
}

/* Floats of scratch that a worker needs: those, two tensors of the input's size and one of the
 * output's. */
static inline int64_t qn_pool_scratch(const QnPool *p)
{
    bool copies = p->plain || qn_pool_is_half(p);
    int64_t tensors = copies ? (2 * qn_pool_in(p) + qn_pool_out(p)) * qn_pool_channels(p) : 0;
    return qn_pool_unturned(p) + tensors;
}

#endif

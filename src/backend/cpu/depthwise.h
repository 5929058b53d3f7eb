/* Convolutions with one filter a channel, over channels-last f32 images: channels are the lanes of
 * vectors, and several pixels of a row are summed in registers at a time. */
#ifndef QN_BACKEND_CPU_DEPTHWISE_H
#define QN_BACKEND_CPU_DEPTHWISE_H

#include "base/isa_list.h"
#include "ops/window.h"

/* Elements f, f + n_phases, f + 2 n_phases, ... of an axis read with the same taps: the i-th of
 * them reads place i * step + at + k * at_step by tap `tap + k * tap_step`, for k < n_taps. */
typedef struct QnDepthwisePhase {
    int64_t n_taps, tap, tap_step, at, at_step;
    int64_t inside, inside_end; /* the i whose every tap reads an element */
} QnDepthwisePhase;

/* Forward there is one phase; the gradient by the input has as many as its stride. */
typedef struct QnDepthwiseAxis {
    int64_t in, out, k, step; /* lengths of what is read and written */
    int64_t n_phases;
    QnDepthwisePhase *phase; /* the first `out` of them at most */
    int64_t *begin, *end;    /* forward, by tap: the elements that read something by it */
} QnDepthwiseAxis;

typedef struct QnDepthwise {
    int64_t n, c, taps; /* images, channels, taps of a filter */
    QnDepthwiseAxis axis[3];
    bool past;       /* what is written goes past the caches, where it can */
    int64_t n_parts; /* of the rows that the gradient by the filters adds up, by shape alone */
} QnDepthwise;

/* backward: of the gradient by the input. False: out of memory. */
bool qn_depthwise_init(QnDepthwise *d, const QnConvGeom *g, bool backward);
void qn_depthwise_fini(QnDepthwise *d);

static inline int64_t qn_depthwise_pixels(const QnDepthwise *d)
{
    return d->n * d->axis[0].out * d->axis[1].out * d->axis[2].out;
}

/* Blocks of `lanes` channels; a block's filters and its bias, or its sums: [tap][lanes]. */
static inline int64_t qn_depthwise_blocks(const QnDepthwise *d, int64_t lanes)
{
    return (d->c + lanes - 1) / lanes;
}

static inline int64_t qn_depthwise_packed(const QnDepthwise *d, int64_t lanes)
{
    return qn_depthwise_blocks(d, lanes) * (d->taps + 1) * lanes;
}

static inline int64_t qn_depthwise_sums(const QnDepthwise *d, int64_t lanes)
{
    return qn_depthwise_blocks(d, lanes) * d->taps * lanes;
}

typedef struct QnDepthwiseFns {
    int64_t lanes;
    /* Filters (C,1,taps) and bias (C), which may be NULL, of a block. */
    void (*pack)(const QnDepthwise *d, const float *w, const float *bias, float *packed,
                 int64_t block);
    /* Pixels [begin, end) of all images that are written. */
    void (*pixels)(const QnDepthwise *d, const float *x, const float *packed, float *y,
                   int64_t begin, int64_t end);
} QnDepthwiseFns;

/* The gradient by the filters. */
typedef struct QnDepthwiseDwFns {
    /* Sums of a part's rows of dy: its own qn_depthwise_sums floats. */
    void (*part)(const QnDepthwise *d, const float *x, const float *dy, float *sums, int64_t part);
    /* The parts' together, for a block of channels. */
    void (*join)(const QnDepthwise *d, const float *sums, float *dw, int64_t block);
} QnDepthwiseDwFns;

#define QN_X(name)                                                                                 \
    extern const QnDepthwiseFns qn_depthwise_fns_##name;                                           \
    extern const QnDepthwiseDwFns qn_depthwise_dw_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnDepthwiseFns *qn_depthwise_find(const char *isa);
const QnDepthwiseDwFns *qn_depthwise_dw_find(const char *isa);

#endif

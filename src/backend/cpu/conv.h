/* Quern's own convolutions, which work on channels-last rows: plain tensors are turned band by band
 * in the worker's scratch memory. */
#ifndef QN_BACKEND_CPU_CONV_H
#define QN_BACKEND_CPU_CONV_H

#include "base/isa_list.h"
#include "ops/window.h"

/* Of a convolution, whichever of them the node (conv, conv_map, conv_dx, conv_dw) reads or writes.
 */
typedef struct QnConvTypes {
    const QnType *x, *w, *y;
} QnConvTypes;
QnConvTypes qn_conv_types(const QnNode *n);

/* Where the elements of one axis come from: from[o * k + t] is the element that tap t of o reads,
 * -1: none. */
typedef struct QnConvAxis {
    int64_t in, k, out;
    int64_t phase;     /* o and o + phase read with the same taps (the stride of a backward pass) */
    int64_t step, pad; /* tap t of o is o * step - pad + t; step 0: it is not that simple */
    int32_t *from;
} QnConvAxis;

/* y[n,o,j] = bias[j] + sum over taps t, channels c of x[n, from(o,t), c] * w[c,j,t], in groups: the
 * forward pass, and with other tables and steps the gradient by the input. */
typedef struct QnConvPass {
    int64_t n, groups, c, m; /* images; channels read and written, of one group */
    QnConvAxis axis[3];
    int64_t wc, wm;           /* steps of the weights; their taps are adjacent */
    int64_t wg;               /* from group to group */
    bool in_plain, out_plain; /* or channels-last */
    bool past_caches; /* what is written is more than they hold, in whole lines of 16 floats */
    /* Work units: an image's rows along `first`, the first axis that is really there. */
    int first;
    int64_t band, n_bands, band_in; /* rows written by a unit and most rows it reads */
} QnConvPass;

/* dw[j,c,t] = sum over n, o of dy[n,o,j] * x[n, from(o,t), c]. The sum is cut into n_splits by
 * image, the columns (t,c) into blocks of panels; both depend on the shape alone. */
typedef struct QnConvDw {
    QnConvPass pass; /* c: channels of x, m: of dy; in_plain: of x, out_plain: of dy */
    int64_t n_splits, block_panels, n_blocks, n_panels; /* of one group */
} QnConvDw;

typedef struct QnConvFns {
    int nr, dw_nr;                           /* columns of a panel, of one of conv_dw */
    int64_t (*scratch)(const QnConvPass *p); /* floats that a worker needs */
    int64_t (*dw_scratch)(const QnConvDw *d);
    /* Panel `unit` of (m + nr - 1) / nr * groups: weights [tap][c][nr], then the bias [nr]. */
    void (*pack)(const QnConvPass *p, const float *w, const float *bias, float *packed,
                 int64_t unit);
    void (*band)(const QnConvPass *p, const float *x, const float *packed, float *y, int64_t unit,
                 float *scratch);
    /* Unit of n_splits * groups * n_blocks: into sums [split][group][panel][m][dw_nr]. */
    void (*dw_block)(const QnConvDw *d, const float *x, const float *dy, float *sums, int64_t unit,
                     float *scratch);
    /* Adds up the splits of panel `unit` of groups * n_panels into dw. */
    void (*dw_finish)(const QnConvDw *d, const float *sums, float *dw, int64_t unit);
} QnConvFns;

#define QN_X(name) extern const QnConvFns qn_conv_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnConvFns *qn_conv_find(const char *isa);

static inline int64_t qn_conv_taps(const QnConvPass *p)
{
    return p->axis[0].k * p->axis[1].k * p->axis[2].k;
}

/* Floats of one packed panel. */
static inline int64_t qn_conv_panel(const QnConvPass *p, int nr)
{
    return (qn_conv_taps(p) * p->c + 1) * nr;
}

/* Elements of a row along `first`: the product of the later axes. */
static inline int64_t qn_conv_inner(const QnConvPass *p, bool in)
{
    int64_t s = 1;
    for (int d = p->first + 1; d < 3; d++)
        s *= in ? p->axis[d].in : p->axis[d].out;
    return s;
}

#endif

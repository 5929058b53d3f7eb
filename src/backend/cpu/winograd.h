/* Convolutions with filters of 3x3 by Winograd's algorithm F(4x4, 3x3) on channels-last images:
 * each tile of 4x4 written pixels takes 36 products of a channel pair where the direct sum takes
 * 144.
 *
 * Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016. The
 * polynomials are evaluated at 0, 2/3, -2/3, 3/2, -3/2 and infinity: the products of the points'
 * powers stay near 1, and so does what rounding errors are multiplied with (about a fifth of what
 * the usual points 1, -1, 2, -2 give; Barabasz et al., "Error Analysis and Improving the Accuracy
 * of Winograd Convolution", 2020, treat the choice). */
#ifndef QN_BACKEND_CPU_WINOGRAD_H
#define QN_BACKEND_CPU_WINOGRAD_H

#include "base/isa_list.h"

#include <stdbool.h>
#include <stdint.h>

enum { QN_WINOGRAD_POINTS = 36, QN_WINOGRAD_TILE = 4, QN_WINOGRAD_CHANNELS = 16 };

/* y = conv(x, w), or by other steps of the weights and other padding the gradient by the input.
 * Channel counts are multiples of QN_WINOGRAD_CHANNELS. */
typedef struct QnWinograd {
    int64_t n, in_h, in_w, c;     /* images read */
    int64_t out_h, out_w, m;      /* images written */
    int64_t top, left;            /* padding */
    int64_t rows, columns, tiles; /* tiles of an image, and of all */
    int64_t block;                /* tiles that a unit of work takes */
    int64_t wc, wm;               /* steps of the weights by channel read and written */
    bool flip;                    /* the taps in reverse */
    bool relu;                    /* afterwards */
} QnWinograd;

typedef struct QnWinogradRun {
    const float *x, *u; /* images, and transformed filters */
    const float *bias;  /* of the channels written; NULL: none */
    const float *more;  /* as y lies; NULL: none */
    float *y;
} QnWinogradRun;

typedef struct QnWinogradFns {
    int mr, nr; /* tiles and channels of a register tile */
    /* Filters of channels unit * nr… in the transformed form: u [36][panel][c][nr]. */
    void (*pack)(const QnWinograd *s, const float *w, float *u, int64_t unit);
    int64_t (*scratch)(const QnWinograd *s); /* floats that a worker needs */
    /* Tiles unit * block…: of the result, bias and more are added before the ReLU. */
    void (*block)(const QnWinograd *s, const QnWinogradRun *r, int64_t unit, float *scratch);
    /* ---- gradient by the weights: c of x, m of dy, `out` is dy's size ---- */
    /* Tiles t0..t1 of x and dy transformed: v [36][block][c] and e [36][block][m], of which tile
     * `first` is number 0. */
    void (*dw_tiles)(const QnWinograd *s, const float *x, const float *dy, float *v, float *e,
                     int64_t first, int64_t t0, int64_t t1);
    /* sums [36][c][m] += the products of n tiles, or = them; a unit is a point. */
    void (*dw_products)(const QnWinograd *s, const float *v, const float *e, int64_t n, bool add,
                        float *sums, int64_t unit);
    /* dw (m,c,3,3) of nr channels written, from unit * nr on. */
    void (*dw_finish)(const QnWinograd *s, const float *sums, float *dw, int64_t unit);
} QnWinogradFns;

#define QN_X(name) extern const QnWinogradFns qn_winograd_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnWinogradFns *qn_winograd_find(const char *isa);

static inline int64_t qn_winograd_panels(const QnWinograd *s, int nr)
{
    return (s->m + nr - 1) / nr;
}

#endif

/* What the convolution passes share: rows of an image in channels-last order. */
#ifndef QN_BACKEND_CPU_ISA_CONV_BAND_H
#define QN_BACKEND_CPU_ISA_CONV_BAND_H

#include "backend/cpu/conv.h"
#include "backend/cpu/isa/simd.h"

#include <string.h>

/* A panel of weights, and rows of the tiles that walk a padded copy: as many as leave registers for
 * a broadcast and the weights; even numbers, 4 at least. */
#if defined(__AVX512F__)
enum { QN_CONV_VECS = 4, QN_CONV_ROWS = 14 };
#define QN_CONV_MOST_ROWS(vecs) ((vecs) <= 2 ? QN_CONV_ROWS : 6)
#else
enum { QN_CONV_VECS = NV, QN_CONV_ROWS = MR };
#define QN_CONV_MOST_ROWS(vecs) ((vecs) > 0 ? QN_CONV_ROWS : 0)
#endif
enum { QN_CONV_COLUMNS = QN_CONV_VECS * VW };

typedef struct QnBand {
    int64_t begin, end;   /* rows written along pass->first */
    int64_t in_lo, in_hi; /* rows read */
} QnBand;

QN_INLINE QnBand qn_band_of(const QnConvPass *p, int64_t band)
{
    const QnConvAxis *a = &p->axis[p->first];
    QnBand b = { band * p->band, QN_MIN((band + 1) * p->band, a->out), a->in, 0 };
    for (int64_t i = b.begin * a->k; i < b.end * a->k; i++) {
        if (a->from[i] < 0)
            continue;
        b.in_lo = QN_MIN(b.in_lo, a->from[i]);
        b.in_hi = QN_MAX(b.in_hi, a->from[i] + 1);
    }
    b.in_lo = QN_MIN(b.in_lo, b.in_hi);
    return b;
}

/* Channels of one group of rows lo..hi of an image, as (pixel, channel): in place if they lie so,
 * else turned into `own`. Returns where pixel 0 of row 0 is or would be; *step from pixel to pixel.
 */
QN_INLINE const float *qn_band_rows(const float *x, bool plain, int64_t image, int64_t rows,
                                    int64_t inner, int64_t groups, int64_t group, int64_t c,
                                    int64_t lo, int64_t hi, float *own, int64_t *step)
{
    int64_t pixels = rows * inner, all = groups * c;
    *step = plain ? c : all;
    if (!plain)
        return x + image * pixels * all + group * c;
    qn_turn(x + (image * all + group * c) * pixels + lo * inner, pixels, c, (hi - lo) * inner, own,
            c);
    return own - lo * inner * c;
}

/* ---- few channels: little work for each pointer to a pixel ---- */

/* Whether windows are read where they lie in a copy of the band with its padding: a row of a window
 * is one run of floats there. */
QN_INLINE bool qn_band_is_padded(const QnConvPass *p)
{
    return p->c <= 4 && p->groups == 1 && p->first == 1 && p->axis[0].k == 1 && p->axis[1].step &&
           p->axis[2].step;
}

/* Pixels of a row of the copy; floats of the copy and of what a tile wider than a row reads behind
 * it. */
QN_INLINE int64_t qn_band_padded_row(const QnConvPass *p)
{
    return QN_MAX(p->axis[2].out - 1, 0) * p->axis[2].step + p->axis[2].k;
}

QN_INLINE int64_t qn_band_padded_size(const QnConvPass *p)
{
    int64_t rows = (p->band - 1) * p->axis[1].step + p->axis[1].k;
    int64_t beyond = QN_CONV_ROWS * p->axis[2].step;
    return qn_band_is_padded(p) ? (rows * qn_band_padded_row(p) + beyond) * p->c : 0;
}

/* The copy of what rows b->begin..b->end read of x, an image of (pixel, channel). */
QN_INLINE void qn_band_pad(const QnConvPass *p, const QnBand *b, const float *x, float *to)
{
    const QnConvAxis *a = &p->axis[1], *inner = &p->axis[2];
    int64_t rows = (b->end - 1 - b->begin) * a->step + a->k, width = qn_band_padded_row(p);
    int64_t left = QN_MIN(inner->pad, width), n = QN_MIN(inner->in, width - left);
    for (int64_t i = 0; i < rows; i++, to += width * p->c) {
        int64_t e = b->begin * a->step - a->pad + i;
        if (e < 0 || e >= a->in) {
            memset(to, 0, (size_t)(width * p->c) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)(left * p->c) * sizeof *to);
        memcpy(to + left * p->c, x + e * inner->in * p->c, (size_t)(n * p->c) * sizeof *to);
        memset(to + (left + n) * p->c, 0, (size_t)((width - left - n) * p->c) * sizeof *to);
    }
}

/* The convolution of the band from its copy: y is the band's first pixel. past: its rows are whole
 * cache lines, and too many for the caches. */
void QN_ISA_NAME(qn_conv_rows)(const QnConvPass *p, const QnBand *b, const float *padded,
                               const float *packed, float *y, int64_t y_step, bool past);
/* Adds the band's part of the gradient by the weights to sums. */
void QN_ISA_NAME(qn_conv_dw_rows)(const QnConvPass *p, const QnBand *b, const float *padded,
                                  const float *dy, int64_t dy_step, float *sums);

/* Whether all that one output pixel reads is gathered into adjacent floats, which pays when there
 * are few channels and so little work for each pointer. */
QN_INLINE bool qn_band_is_dense(const QnConvPass *p)
{
    return !qn_band_is_padded(p) && p->c <= 4 && p->c * qn_conv_taps(p) <= 64;
}

/* k neighbours of c channels each, given as constants where that is worth it. */
QN_INLINE void qn_band_gather_row(const float *row, const int32_t *from, int64_t k, int64_t c,
                                  int64_t step, float *to)
{
    if (from[0] >= 0 && from[k - 1] == from[0] + k - 1 && step == c) {
        row += from[0] * c;
        for (int64_t i = 0; i < k * c; i++)
            to[i] = row[i];
        return;
    }
    for (int64_t t = 0; t < k; t++) {
        for (int64_t i = 0; i < c; i++)
            to[t * c + i] = from[t] >= 0 ? row[from[t] * step + i] : 0;
    }
}

/* to[tap][channel]: what output pixel o reads, zeros where it reads none. */
QN_INLINE void qn_band_gather(const QnConvPass *p, const float *x, int64_t step, const int64_t *o,
                              float *to)
{
    const QnConvAxis *a = p->axis;
    const int32_t *from = a[2].from + o[2] * a[2].k;
    const int64_t c = p->c, k = a[2].k;
    for (int64_t t0 = 0; t0 < a[0].k; t0++) {
        int64_t e = a[0].from[o[0] * a[0].k + t0];
        for (int64_t t1 = 0; t1 < a[1].k; t1++, to += k * c) {
            int64_t f = a[1].from[o[1] * a[1].k + t1];
            const float *row = x + (e * a[1].in + f) * a[2].in * step;
            if ((e | f) < 0) {
                for (int64_t i = 0; i < k * c; i++)
                    to[i] = 0;
            } else if (k == 3 && c == 1) {
                qn_band_gather_row(row, from, 3, 1, step, to);
            } else if (k == 3 && c == 3) {
                qn_band_gather_row(row, from, 3, 3, step, to);
            } else {
                qn_band_gather_row(row, from, k, c, step, to);
            }
        }
    }
}

#endif

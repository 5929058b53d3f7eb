/* What the convolution passes share: rows of an image in channels-last order. */
#ifndef QN_BACKEND_CPU_ISA_CONV_BAND_H
#define QN_BACKEND_CPU_ISA_CONV_BAND_H

#include "backend/cpu/conv.h"
#include "backend/cpu/isa/simd.h"

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

#endif

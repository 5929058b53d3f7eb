/* The gradient of depthwise convolutions by their filters: registers hold the sums of up to 3 x 3
 * taps of a vector of channels over the pixels of a row. */
#include "backend/cpu/isa/depthwise_rows.h"

#include <string.h>

enum { RUN = 16 }; /* pixels whose channels are read in a run, where caches do not have them */
enum { SIDE = 3 }; /* taps in registers along either axis, at most */

/* Pixels of a row of dy and what they are multiplied with: rows of taps are `row` floats of x and
 * `sums_row` of sums apart, taps along them `tap` of x. Tap t meets pixels [begin[t], end[t]). */
typedef struct Meeting {
    const float *x, *dy; /* of pixel 0 and tap 0 */
    float *sums;
    const int64_t *begin, *end;
    int64_t row, tap, sums_row;
    int64_t first, last; /* pixels: no others are added */
} Meeting;

QN_INLINE int64_t within(const Meeting *m, int64_t p)
{
    return QN_MIN(QN_MAX(p, m->first), m->last);
}

/* Pixels [p, end); not whole: some taps meet them only. */
QN_INLINE void add_pixels(const Row *r, const Meeting *m, QnVec s[SIDE][SIDE], int64_t j, int64_t p,
                          int64_t end, int64_t lanes, const int rows, const int taps,
                          const bool whole)
{
    const int64_t c = r->d->c, step = r->step, row = m->row, tap = m->tap;
    const float *x = m->x + p * step + j, *dy = m->dy + p * c + j;
    for (; p < end; p++, x += step, dy += c) {
        QnVec d = qn_vec_keep(load_some(dy, lanes));
        QN_UNROLL for (int t = 0; t < taps; t++)
        {
            if (!whole && (p < m->begin[t] || p >= m->end[t]))
                continue;
            QN_UNROLL for (int b = 0; b < rows; b++) s[b][t] +=
                load_some(x + b * row + t * tap, lanes) * d;
        }
    }
}

/* Later taps begin and end with earlier pixels. */
QN_INLINE void add_vector(const Row *r, const Meeting *m, int64_t j, float *sums, int64_t lanes,
                          const int rows, const int taps)
{
    QnVec s[SIDE][SIDE];
    int64_t from = within(m, m->begin[taps - 1]), to = within(m, m->end[0]);
    int64_t begin = within(m, QN_MIN(m->begin[0], m->end[0]));
    int64_t end = QN_MAX(within(m, m->end[taps - 1]), begin);
    QN_UNROLL for (int b = 0; b < rows; b++)
    {
        QN_UNROLL for (int t = 0; t < taps; t++) s[b][t] =
            qn_vec_load(sums + b * m->sums_row + t * VW);
    }
    add_pixels(r, m, s, j, from, begin, lanes, rows, taps, false);
    add_pixels(r, m, s, j, begin, end, lanes, rows, taps, true);
    add_pixels(r, m, s, j, end, to, lanes, rows, taps, false);
    QN_UNROLL for (int b = 0; b < rows; b++)
    {
        QN_UNROLL for (int t = 0; t < taps; t++)
            qn_vec_store(sums + b * m->sums_row + t * VW, s[b][t]);
    }
}

/* Channels [c0, c1). */
QN_INLINE void add_channels(const Row *r, const Meeting *m, int64_t c0, int64_t c1, const int rows,
                            const int taps)
{
    int64_t block = r->d->taps * VW, j = c0;
    float *sums = m->sums + j / VW * block;
    for (; j + VW <= c1; j += VW, sums += block)
        add_vector(r, m, j, sums, VW, rows, taps);
    if (j < c1)
        add_vector(r, m, j, sums, c1 - j, rows, taps);
}

QN_INLINE void add_rows(const Row *r, const Meeting *m, int64_t c0, int64_t c1, int64_t rows,
                        const int taps)
{
    if (rows == 3)
        add_channels(r, m, c0, c1, 3, taps);
    else if (rows == 2)
        add_channels(r, m, c0, c1, 2, taps);
    else
        add_channels(r, m, c0, c1, 1, taps);
}

static void add_taps(const Row *r, const Meeting *m, int64_t c0, int64_t c1, int64_t rows,
                     int64_t taps)
{
    if (taps == 3)
        add_rows(r, m, c0, c1, rows, 3);
    else if (taps == 2)
        add_rows(r, m, c0, c1, rows, 2);
    else
        add_rows(r, m, c0, c1, rows, 1);
}

/* Pixels [first, last) of a row of dy. */
static void add_row(const Row *r, const float *dy, float *sums, int64_t c0, int64_t c1,
                    int64_t first, int64_t last)
{
    const QnDepthwisePhase *p = r->axis->phase;
    const Reads *r0 = &r->outer[0], *r1 = &r->outer[1];
    for (int64_t a = 0; a < r0->n; a++)
        for (int64_t b = 0; b < r1->n; b += SIDE)
            for (int64_t t = 0; t < p->n_taps; t += SIDE) {
                int64_t at = (p->at + t * p->at_step) * r->d->c;
                int64_t tap = a * r0->tap_step + b * r1->tap_step + t * VW;
                Meeting m = { .x = r->x + a * r0->at_step + b * r1->at_step + at,
                              .dy = dy,
                              .sums = sums + r->tap + tap,
                              .begin = r->axis->begin + t,
                              .end = r->axis->end + t,
                              .row = r1->at_step,
                              .tap = p->at_step * r->d->c,
                              .sums_row = r1->tap_step,
                              .first = first,
                              .last = last };
                add_taps(r, &m, c0, c1, QN_MIN(r1->n - b, (int64_t)SIDE),
                         QN_MIN(p->n_taps - t, (int64_t)SIDE));
            }
}

static void dw_part(const QnDepthwise *d, const float *x, const float *dy, float *sums,
                    int64_t part)
{
    int64_t rows = d->n * d->axis[0].out * d->axis[1].out, some = channels_at_once(d);
    int64_t begin = rows / d->n_parts * part + QN_MIN(part, rows % d->n_parts);
    int64_t end = begin + rows / d->n_parts + (part < rows % d->n_parts);
    int64_t count = qn_depthwise_sums(d, VW), width = d->axis[2].out;
    int64_t run = some < d->c ? width : RUN;
    sums += part * count;
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t c = 0; c < d->c; c += some) {
        for (int64_t row = begin; row < end; row++) {
            Row r = row_of(d, x, row);
            for (int64_t i = 0; i < width; i += run)
                add_row(&r, dy + row * width * d->c, sums, c, QN_MIN(c + some, d->c), i,
                        QN_MIN(i + run, width));
        }
    }
}

static void dw_join(const QnDepthwise *d, const float *sums, float *dw, int64_t block)
{
    int64_t first = block * VW, n = QN_MIN(d->c - first, (int64_t)VW);
    int64_t count = qn_depthwise_sums(d, VW);
    for (int64_t t = 0; t < d->taps; t++) {
        const float *from = sums + (block * d->taps + t) * VW;
        double sum[VW] = { 0 };
        for (int64_t part = 0; part < d->n_parts; part++) {
            for (int64_t l = 0; l < VW; l++)
                sum[l] += (double)from[part * count + l];
        }
        for (int64_t l = 0; l < n; l++)
            dw[(first + l) * d->taps + t] = (float)sum[l];
    }
}

const QnDepthwiseDwFns QN_ISA_NAME(qn_depthwise_dw_fns) = {
    .part = dw_part,
    .join = dw_join,
};

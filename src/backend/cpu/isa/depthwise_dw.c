/* The gradient of depthwise convolutions by their filters: registers hold the sums of up to 3 x 3
 * taps of a vector of channels over the pixels of a row. */
#include "backend/cpu/isa/depthwise_rows.h"

#include <string.h>

enum { SIDE = 3 }; /* taps in registers along either axis, at most */

/* What meets the pixels [begin, end) of dy's row: by `rows` rows of taps, `row` of x and of sums
 * apart, and by taps `tap` of x apart along each. */
typedef struct Meeting {
    const float *x, *dy;
    float *sums; /* of the first block of channels */
    int64_t begin, end;
    int64_t row, tap, sums_row;
} Meeting;

QN_INLINE void add_vector(const Row *r, const Meeting *m, const float *x, const float *dy,
                          float *sums, int64_t lanes, const int rows, const int taps)
{
    QnVec s[SIDE][SIDE];
    int64_t c = r->d->c;
    QN_UNROLL for (int b = 0; b < rows; b++)
    {
        QN_UNROLL for (int t = 0; t < taps; t++) s[b][t] =
            qn_vec_load(sums + b * m->sums_row + t * VW);
    }
    for (int64_t p = m->begin; p < m->end; p++, x += r->step, dy += c) {
        QnVec d = load_some(dy, lanes);
        QN_UNROLL for (int b = 0; b < rows; b++)
        {
            QN_UNROLL for (int t = 0; t < taps; t++) s[b][t] +=
                load_some(x + b * m->row + t * m->tap, lanes) * d;
        }
    }
    QN_UNROLL for (int b = 0; b < rows; b++)
    {
        QN_UNROLL for (int t = 0; t < taps; t++)
            qn_vec_store(sums + b * m->sums_row + t * VW, s[b][t]);
    }
}

QN_INLINE void add_channels(const Row *r, const Meeting *m, const int rows, const int taps)
{
    int64_t c = r->d->c, block = r->d->taps * VW, j = 0;
    float *sums = m->sums;
    if (m->begin >= m->end)
        return;
    for (; j + VW <= c; j += VW, sums += block)
        add_vector(r, m, m->x + j, m->dy + j, sums, VW, rows, taps);
    if (j < c)
        add_vector(r, m, m->x + j, m->dy + j, sums, c - j, rows, taps);
}

QN_INLINE void add_rows(const Row *r, const Meeting *m, int64_t rows, const int taps)
{
    if (rows == 3)
        add_channels(r, m, 3, taps);
    else if (rows == 2)
        add_channels(r, m, 2, taps);
    else
        add_channels(r, m, 1, taps);
}

/* Pixels of the row for which tap t reads an element: its [begin, end). */
QN_INLINE void find_span(const Row *r, const QnDepthwisePhase *p, int64_t t, int64_t span[2])
{
    int64_t at = p->at + t * p->at_step;
    span[0] = QN_MIN(div_up(-at, r->axis->step), r->axis->out);
    span[1] = QN_MAX(QN_MIN(div_up(r->axis->in - at, r->axis->step), r->axis->out), span[0]);
}

/* Taps [t, t + n) for pixels [begin, end). m: for pixel and tap 0. */
static void add_taps(const Row *r, const QnDepthwisePhase *p, const Meeting *m, int64_t rows,
                     int64_t t, int64_t n, int64_t begin, int64_t end)
{
    Meeting k = *m;
    if (begin >= end)
        return;
    k.begin = begin;
    k.end = end;
    k.x += (begin * r->axis->step + p->at + t * p->at_step) * r->d->c;
    k.dy += begin * r->d->c;
    k.sums += t * VW;
    if (n == 3)
        add_rows(r, &k, rows, 3);
    else if (n == 2)
        add_rows(r, &k, rows, 2);
    else
        add_rows(r, &k, rows, 1);
}

/* Some neighbouring taps of a row: together where all read an element, else each by itself. */
static void add_group(const Row *r, const QnDepthwisePhase *p, const Meeting *m, int64_t rows,
                      int64_t t, int64_t n)
{
    int64_t first[2], last[2];
    find_span(r, p, t, first);
    find_span(r, p, t + n - 1, last);
    if (n > 1)
        add_taps(r, p, m, rows, t, n, first[0], last[1]);
    for (int64_t i = t; i < t + n; i++) {
        int64_t own[2];
        find_span(r, p, i, own);
        if (n == 1 || first[0] >= last[1]) {
            add_taps(r, p, m, rows, i, 1, own[0], own[1]);
            continue;
        }
        add_taps(r, p, m, rows, i, 1, own[0], first[0]);
        add_taps(r, p, m, rows, i, 1, last[1], own[1]);
    }
}

/* A row of dy. */
static void add_row(const Row *r, const float *dy, float *sums)
{
    const QnDepthwisePhase *p = r->axis->phase;
    const Reads *r0 = &r->outer[0], *r1 = &r->outer[1];
    for (int64_t a = 0; a < r0->n; a++)
        for (int64_t b = 0; b < r1->n; b += SIDE)
            for (int64_t t = 0; t < p->n_taps; t += SIDE) {
                Meeting m = { .x = r->x + a * r0->at_step + b * r1->at_step,
                              .dy = dy,
                              .sums = sums + r->tap + a * r0->tap_step + b * r1->tap_step,
                              .row = r1->at_step,
                              .tap = p->at_step * r->d->c,
                              .sums_row = r1->tap_step };
                add_group(r, p, &m, QN_MIN(r1->n - b, (int64_t)SIDE), t,
                          QN_MIN(p->n_taps - t, (int64_t)SIDE));
            }
}

static void dw_part(const QnDepthwise *d, const float *x, const float *dy, float *sums,
                    int64_t part)
{
    int64_t rows = d->n * d->axis[0].out * d->axis[1].out;
    int64_t begin = rows / d->n_parts * part + QN_MIN(part, rows % d->n_parts);
    int64_t end = begin + rows / d->n_parts + (part < rows % d->n_parts);
    int64_t count = qn_depthwise_sums(d, VW);
    sums += part * count;
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t row = begin; row < end; row++) {
        Row r = row_of(d, x, row);
        add_row(&r, dy + row * d->axis[2].out * d->c, sums);
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

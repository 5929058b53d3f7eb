/* Depthwise convolutions, forward and backward to the input: of some pixels of a row, each register
 * sums one for a vector of channels. */
#include "backend/cpu/stream.h"
#include "backend/cpu/isa/depthwise_rows.h"

#include <string.h>

enum { NEAR = 8, SPREAD = 4 }; /* pixels in registers, of rows walked without and with gaps */

/* What is written along a row. */
typedef struct Target {
    const float *w; /* packed filters */
    float *y;
    int64_t step;       /* floats between pixels */
    int64_t begin, end; /* channels */
    bool past;          /* whole vectors go past the caches */
} Target;

QN_INLINE void store(const Target *to, float *y, QnVec v, int64_t lanes)
{
    if (lanes < VW)
        qn_vec_store_lanes(y, v, lanes);
    else if (to->past)
        qn_vec_stream(y, v);
    else
        qn_vec_store(y, v);
}

/* Pixels that lie in a row of x: of those from the first that a block reads on, [first, end). */
typedef struct Span {
    int64_t first, end;
} Span;

/* `taps` that read neighbours: a vector of x serves all pixels that it is read for. `whole`: all of
 * it is there. */
QN_INLINE void add_near(QnVec *sum, const float *x, int64_t step, const float *w, int64_t w_step,
                        Span there, int64_t lanes, const int n, const int taps, const bool whole)
{
    QnVec f[5];
    QN_UNROLL for (int t = 0; t < taps; t++) f[t] = qn_vec_load(w + t * w_step);
    QN_UNROLL for (int i = 0; i < n + taps - 1; i++, x += step)
    {
        if (!whole && (i < there.first || i >= there.end))
            continue;
        QnVec v = qn_vec_keep(load_some(x, lanes));
        QN_UNROLL for (int t = 0; t < taps; t++)
        {
            if (i >= t && i - t < n)
                sum[i - t] += v * f[t];
        }
    }
}

QN_INLINE void add_any(QnVec *sum, const float *x, const Reads *in, int64_t step, const float *w,
                       int64_t lanes, const int n)
{
    for (int64_t t = 0; t < in->n; t++, x += in->at_step, w += in->tap_step) {
        QnVec f = qn_vec_load(w);
        QN_UNROLL for (int p = 0; p < n; p++) sum[p] += load_some(x + p * step, lanes) * f;
    }
}

/* What a block of pixels reads along its row. */
typedef struct Block {
    Reads in;
    Span there; /* of neighbours, where not all are */
} Block;

/* n pixels of a vector of channels, the first of which reads x. taps: neighbours in a row, 0: as
 * b->in says. */
QN_INLINE void sum_vector(const Row *r, const Block *b, const Target *to, const float *x,
                          const float *w, float *y, int64_t lanes, const int n, const int taps,
                          const bool whole)
{
    QnVec sum[NEAR], bias = qn_vec_load(w + r->d->taps * VW);
    const Reads *r0 = &r->outer[0], *r1 = &r->outer[1];
    const int64_t step = r->step, w_step = b->in.tap_step;
    const Span there = b->there;
    w += r->tap + b->in.tap;
    QN_UNROLL for (int p = 0; p < n; p++) sum[p] = bias;
    for (int64_t i = 0; i < r0->n; i++, x += r0->at_step, w += r0->tap_step) {
        const float *xr = x, *wr = w;
        for (int64_t k = 0; k < r1->n; k++, xr += r1->at_step, wr += r1->tap_step) {
            if (taps)
                add_near(sum, xr, step, wr, w_step, there, lanes, n, taps, whole);
            else
                add_any(sum, xr, &b->in, step, wr, lanes, n);
        }
    }
    QN_UNROLL for (int p = 0; p < n; p++, y += to->step) store(to, y, sum[p], lanes);
}

QN_INLINE void sum_channels(const Row *r, const Block *b, const Target *to, int64_t first,
                            const int n, const int taps, const bool whole)
{
    int64_t c = to->end, block = (r->d->taps + 1) * VW, j = to->begin;
    const float *x = r->x + b->in.at, *w = to->w + j / VW * block;
    float *y = to->y + first * to->step;
    for (; j + VW <= c; j += VW, w += block)
        sum_vector(r, b, to, x + j, w, y + j, VW, n, taps, whole);
    if (j < c)
        sum_vector(r, b, to, x + j, w, y + j, c - j, n, taps, whole);
}

/* Elements [i, end) of a phase whose taps read neighbours, n at a time: the last ones may be done
 * again. There are n at least. */
QN_INLINE void sum_near(const Row *r, const QnDepthwisePhase *p, const Target *to, int64_t i,
                        int64_t end, const int n, const int taps)
{
    for (; i < end; i += n) {
        i = QN_MIN(i, end - n);
        int64_t at = i + p->at;
        Block b = { .in = { .at = at * r->d->c, .tap = p->tap * VW, .tap_step = p->tap_step * VW },
                    .there = { -at, r->axis->in - at } };
        if (i >= p->inside && i + n <= p->inside_end)
            sum_channels(r, &b, to, i, n, taps, true);
        else
            sum_channels(r, &b, to, i, n, taps, false);
    }
}

/* Elements [i, end) of a phase of any kind: those that read with every tap some at a time. */
static void sum_any(const Row *r, const QnDepthwisePhase *p, const Target *to, int64_t i,
                    int64_t end)
{
    int64_t inside_end = QN_MIN(p->inside_end, end);
    while (i < end) {
        Block b = { .in = row_reads(r, p, i) };
        if (i >= p->inside && i + SPREAD <= inside_end) {
            sum_channels(r, &b, to, i, SPREAD, 0, true);
            i += SPREAD;
        } else {
            sum_channels(r, &b, to, i, 1, 0, true);
            i++;
        }
    }
}

static void sum_phase(const Row *r, const QnDepthwisePhase *p, const Target *to, int64_t i,
                      int64_t end)
{
    int64_t taps = r->axis->step == 1 && p->at_step == 1 ? p->n_taps : 0, n = end - i;
    if (taps == 3 && n >= NEAR)
        sum_near(r, p, to, i, end, NEAR, 3);
    else if (taps == 3 && n >= SPREAD)
        sum_near(r, p, to, i, end, SPREAD, 3);
    else if (taps == 5 && n >= NEAR)
        sum_near(r, p, to, i, end, NEAR, 5);
    else if (taps == 5 && n >= SPREAD)
        sum_near(r, p, to, i, end, SPREAD, 5);
    else
        sum_any(r, p, to, i, end);
}

/* Channels [c0, c1) of pixels [begin, end) of a row. */
static void sum_row(const Row *r, const float *w, float *y, int64_t begin, int64_t end, int64_t c0,
                    int64_t c1)
{
    const QnDepthwise *d = r->d;
    const QnDepthwiseAxis *a = r->axis;
    int64_t phases = QN_MIN(a->n_phases, a->out);
    Target to = { .w = w, .y = y, .step = a->n_phases * d->c, .begin = c0, .end = c1 };
    to.past = d->past && d->c % VW == 0 && (uintptr_t)y % sizeof(QnVec) == 0;
    for (int64_t f = 0; f < phases; f++, to.y += d->c)
        sum_phase(r, &a->phase[f], &to, div_up(begin - f, a->n_phases),
                  div_up(end - f, a->n_phases));
}

static void pixels(const QnDepthwise *d, const float *x, const float *packed, float *y,
                   int64_t begin, int64_t end)
{
    int64_t width = d->axis[2].out, some = channels_at_once(d);
    for (int64_t c = 0; c < d->c; c += some) {
        for (int64_t at = begin; at < end;) {
            int64_t row = at / width, first = at % width, last = QN_MIN(width, first + end - at);
            Row r = row_of(d, x, row);
            sum_row(&r, packed, y + row * width * d->c, first, last, c, QN_MIN(c + some, d->c));
            at += last - first;
        }
    }
    if (d->past)
        qn_stream_end();
}

static void pack(const QnDepthwise *d, const float *w, const float *bias, float *packed,
                 int64_t block)
{
    int64_t first = block * VW, n = QN_MIN(d->c - first, (int64_t)VW);
    float *to = packed + block * (d->taps + 1) * VW;
    if (n < VW || !bias)
        memset(to, 0, (size_t)(d->taps + 1) * VW * sizeof *to);
    qn_turn(w + first * d->taps, d->taps, n, d->taps, to, VW);
    if (bias)
        memcpy(to + d->taps * VW, bias + first, (size_t)n * sizeof *to);
}

const QnDepthwiseFns QN_ISA_NAME(qn_depthwise_fns) = {
    .lanes = VW,
    .pack = pack,
    .pixels = pixels,
};

/* Depthwise convolutions, forward and backward to the input: of some pixels of a row, each register
 * sums one for a vector of channels. */
#include "backend/cpu/stream.h"
#include "backend/cpu/isa/depthwise_rows.h"

enum { NEAR = 8, SPREAD = 4 }; /* pixels in registers, of rows walked without and with gaps */

/* What is written along a row, and from where. */
typedef struct Target {
    float *y;
    int64_t step; /* floats between pixels */
    bool past;    /* whole vectors go past the caches */
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

/* Taps that read neighbours: a vector of x serves all pixels that it is read for. */
QN_INLINE void add_near(QnVec *sum, const float *x, int64_t step, const float *w, int64_t w_step,
                        int64_t lanes, const int n, const int taps)
{
    QnVec f[5];
    QN_UNROLL for (int t = 0; t < taps; t++) f[t] = qn_vec_load(w + t * w_step);
    QN_UNROLL for (int i = 0; i < n + taps - 1; i++)
    {
        QnVec v = load_some(x + i * step, lanes);
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

/* n pixels of a vector of channels, the first of which reads x; `taps` neighbours in a row, or 0:
 * what `in` says. */
QN_INLINE void sum_vector(const Row *r, const Reads *in, const Target *to, const float *x,
                          const float *w, float *y, int64_t lanes, const int n, const int taps)
{
    QnVec sum[NEAR], bias = qn_vec_load(w + r->d->taps * VW);
    w += r->tap + in->tap;
    QN_UNROLL for (int p = 0; p < n; p++) sum[p] = bias;
    for (int64_t a = 0; a < r->outer[0].n; a++)
        for (int64_t b = 0; b < r->outer[1].n; b++) {
            const float *xr = x + a * r->outer[0].at_step + b * r->outer[1].at_step;
            const float *wr = w + a * r->outer[0].tap_step + b * r->outer[1].tap_step;
            if (taps)
                add_near(sum, xr, r->step, wr, in->tap_step, lanes, n, taps);
            else
                add_any(sum, xr, in, r->step, wr, lanes, n);
        }
    QN_UNROLL for (int p = 0; p < n; p++) store(to, y + p * to->step, sum[p], lanes);
}

QN_INLINE void sum_channels(const Row *r, const Reads *in, const Target *to, const float *w,
                            float *y, const int n, const int taps)
{
    int64_t c = r->d->c, block = (r->d->taps + 1) * VW, j = 0;
    const float *x = r->x + in->at;
    for (; j + VW <= c; j += VW, w += block)
        sum_vector(r, in, to, x + j, w, y + j, VW, n, taps);
    if (j < c)
        sum_vector(r, in, to, x + j, w, y + j, c - j, n, taps);
}

/* Elements [i, end) of a phase, n at a time: as long as there are so many. */
QN_INLINE int64_t sum_inside(const Row *r, const QnDepthwisePhase *p, const Target *to,
                             const float *w, int64_t i, int64_t end, const int n, const int taps)
{
    for (; i + n <= end; i += n) {
        Reads in = row_reads(r, p, i);
        sum_channels(r, &in, to, w, to->y + i * to->step, n, taps);
    }
    return i;
}

/* Elements [i, end) of a phase of the row. */
static void sum_phase(const Row *r, const QnDepthwisePhase *p, const Target *to, const float *w,
                      int64_t i, int64_t end)
{
    int64_t inside_end = QN_MIN(p->inside_end, end);
    bool near = r->axis->step == 1 && p->at_step == 1;
    for (; i < end; i++) {
        if (i < p->inside || i >= inside_end) {
            ;
        } else if (near && p->n_taps == 3) {
            i = sum_inside(r, p, to, w, i, inside_end, NEAR, 3);
            i = sum_inside(r, p, to, w, i, inside_end, SPREAD, 3);
        } else if (near && p->n_taps == 5) {
            i = sum_inside(r, p, to, w, i, inside_end, NEAR, 5);
            i = sum_inside(r, p, to, w, i, inside_end, SPREAD, 5);
        } else {
            i = sum_inside(r, p, to, w, i, inside_end, SPREAD, 0);
        }
        if (i < end)
            sum_inside(r, p, to, w, i, i + 1, 1, 0);
    }
}

static void sum_row(const QnDepthwise *d, const Row *r, const float *w, float *y, int64_t begin,
                    int64_t end)
{
    const QnDepthwiseAxis *a = r->axis;
    int64_t phases = QN_MIN(a->n_phases, a->out);
    bool past = d->past && d->c % VW == 0 && (uintptr_t)y % sizeof(QnVec) == 0;
    for (int64_t f = 0; f < phases; f++) {
        Target to = { .y = y + f * d->c, .step = a->n_phases * d->c, .past = past };
        sum_phase(r, &a->phase[f], &to, w, div_up(begin - f, a->n_phases),
                  div_up(end - f, a->n_phases));
    }
}

static void pixels(const QnDepthwise *d, const float *x, const float *packed, float *y,
                   int64_t begin, int64_t end)
{
    int64_t width = d->axis[2].out;
    for (int64_t at = begin; at < end;) {
        int64_t row = at / width, first = at % width, last = QN_MIN(width, first + end - at);
        Row r = row_of(d, x, row);
        sum_row(d, &r, packed, y + row * width * d->c, first, last);
        at += last - first;
    }
    if (d->past)
        qn_stream_end();
}

static void pack(const QnDepthwise *d, const float *w, const float *bias, float *packed,
                 int64_t block)
{
    int64_t first = block * VW, n = QN_MIN(d->c - first, (int64_t)VW);
    float *to = packed + block * (d->taps + 1) * VW;
    for (int64_t t = 0; t <= d->taps; t++, to += VW) {
        for (int64_t l = 0; l < VW; l++) {
            float bias_l = bias && l < n ? bias[first + l] : 0;
            to[l] = t == d->taps ? bias_l : l < n ? w[(first + l) * d->taps + t] : 0;
        }
    }
}

const QnDepthwiseFns QN_ISA_NAME(qn_depthwise_fns) = {
    .lanes = VW,
    .pack = pack,
    .pixels = pixels,
};

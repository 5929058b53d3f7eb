/* Passes over one part of a tensor, by channel. With adjacent channels (inner 1) eight pixels are
 * folded at a time, so that the sums in memory are touched less often; else a channel's row is
 * folded in vectors. */
#include "backend/cpu/channels.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/isa/simd.h"

#include <string.h>

static int64_t part_begin(const QnChannels *s, int64_t part)
{
    return s->outer / s->n_parts * part + QN_MIN(part, s->outer % s->n_parts);
}

/* ---- adjacent channels: n pixels of c ---- */

static void sum_pixels(const float *x, int64_t n, int64_t c, float *sum)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8, x += 8 * c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++)
        {
            const float *p = x + j;
            sum[j] += ((p[0] + p[c]) + (p[2 * c] + p[3 * c])) +
                      ((p[4 * c] + p[5 * c]) + (p[6 * c] + p[7 * c]));
        }
    }
    for (; i < n; i++, x += c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++) sum[j] += x[j];
    }
}

QN_INLINE float square(float x)
{
    return x * x;
}

/* Sums of x - mean, which is what rounding left of it, and of its square. */
static void square_pixels(const float *x, const float *mean, int64_t n, int64_t c, float *left,
                          float *sum)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++)
        {
            const float *p = x + j;
            float m = mean[j], d0 = p[0] - m, d1 = p[c] - m, d2 = p[2 * c] - m, d3 = p[3 * c] - m;
            left[j] += (d0 + d1) + (d2 + d3);
            sum[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
        }
    }
    for (; i < n; i++, x += c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++)
        {
            left[j] += x[j] - mean[j];
            sum[j] += square(x[j] - mean[j]);
        }
    }
}

/* The norm's operand beside its mean, and of dy what the ReLU behind the norm lets through. */
typedef struct Back {
    const float *mean, *factor, *bias;
    float least;
} Back;

static Back back_of(const float *mean, const QnChannelRelu *r)
{
    return r ? (Back){ mean, r->factor, r->bias, r->least } : (Back){ mean, NULL, NULL, 0 };
}

QN_INLINE float passed(const Back *b, float dy, float x, int64_t j, bool relu)
{
    return !relu || x * b->factor[j] + b->bias[j] > b->least ? dy : 0.0f;
}

/* Sums of n pixels. */
QN_INLINE void grad_pixels(const float *dy, const float *x, const Back *b, int64_t n, int64_t c,
                           float *sum, float *dot, bool relu)
{
    const Back k = *b;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * c, dy += 4 * c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++)
        {
            const float *p = x + j, *d = dy + j;
            const float m = k.mean[j];
            float x0 = p[0] - m, x1 = p[c] - m, x2 = p[2 * c] - m, x3 = p[3 * c] - m;
            float d0 = passed(&k, d[0], x0, j, relu), d1 = passed(&k, d[c], x1, j, relu);
            float d2 = passed(&k, d[2 * c], x2, j, relu), d3 = passed(&k, d[3 * c], x3, j, relu);
            sum[j] += (d0 + d1) + (d2 + d3);
            dot[j] += (d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3);
        }
    }
    for (; i < n; i++, x += c, dy += c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++)
        {
            float x0 = x[j] - k.mean[j], d = passed(&k, dy[j], x0, j, relu);
            sum[j] += d;
            dot[j] += d * x0;
        }
    }
}

/* ---- a channel's row of n ---- */

static float sum_row(const float *x, int64_t n)
{
    QnVec a = qn_vec_set(0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * VW <= n; i += 4 * VW) {
        a += qn_vec_load(x + i);
        b += qn_vec_load(x + i + VW);
        c += qn_vec_load(x + i + 2 * VW);
        d += qn_vec_load(x + i + 3 * VW);
    }
    float s = qn_vec_sum((a + b) + (c + d));
    for (; i < n; i++)
        s += x[i];
    return s;
}

static float square_row(const float *x, float mean, int64_t n, float *left)
{
    QnVec a = qn_vec_set(0), b = a, c = a, d = a, m = qn_vec_set(mean);
    int64_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW) {
        QnVec u = qn_vec_load(x + i) - m, v = qn_vec_load(x + i + VW) - m;
        a += u * u;
        b += v * v;
        c += u;
        d += v;
    }
    float s = qn_vec_sum(a + b), l = qn_vec_sum(c + d);
    for (; i < n; i++) {
        s += square(x[i] - mean);
        l += x[i] - mean;
    }
    *left += l;
    return s;
}

/* Adds to the sums of channel j a row of n. */
QN_INLINE void grad_row(const float *dy, const float *x, const Back *k, int64_t n, int64_t j,
                        float *sum, float *dot, bool relu)
{
    QnVec a = qn_vec_set(0), b = a, c = a, d = a, m = qn_vec_set(k->mean[j]), zero = a;
    QnVec f = relu ? qn_vec_set(k->factor[j]) : a, g = relu ? qn_vec_set(k->bias[j]) : a;
    int64_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW) {
        QnVec u = qn_vec_load(x + i) - m, v = qn_vec_load(x + i + VW) - m;
        QnVec p = qn_vec_load(dy + i), q = qn_vec_load(dy + i + VW);
        if (relu) {
            p = qn_vec_pick(u * f + g > k->least, p, zero);
            q = qn_vec_pick(v * f + g > k->least, q, zero);
        }
        a += p * u;
        b += q * v;
        c += p;
        d += q;
    }
    float s = qn_vec_sum(a + b), t = qn_vec_sum(c + d);
    for (; i < n; i++) {
        float u = x[i] - k->mean[j], p = passed(k, dy[i], u, j, relu);
        s += p * u;
        t += p;
    }
    sum[j] += t;
    dot[j] += s;
}

/* ---- results past the caches ---- */

enum { TILE = 512, MOST_CHANNELS = 2048 };

/* Pixels whose results are made in a buffer and then written at once; 0: they are made in place. */
static int64_t tile_pixels(const QnChannels *s, bool in_place)
{
    bool can = s->streams && s->inner == 1 && s->c <= MOST_CHANNELS && !in_place;
    return can ? QN_MAX(1, TILE / s->c) : 0;
}

/* ---- the passes ---- */

static void channel_stats(const QnChannels *s, const float *x, int64_t part, float *to)
{
    int64_t begin = part_begin(s, part), n = part_begin(s, part + 1) - begin, c = s->c;
    float *mean = to, *squares = to + c, *left = to + 2 * c, count = (float)(n * s->inner);
    x += begin * c * s->inner;
    memset(to, 0, (size_t)(3 * c) * sizeof *to);
    if (s->inner == 1) {
        sum_pixels(x, n, c, mean);
        for (int64_t j = 0; j < c; j++)
            mean[j] /= count;
        square_pixels(x, mean, n, c, left, squares);
    } else {
        for (int64_t i = 0; i < n * c; i++)
            mean[i % c] += sum_row(x + i * s->inner, s->inner);
        for (int64_t j = 0; j < c; j++)
            mean[j] /= count;
        for (int64_t i = 0; i < n * c; i++)
            squares[i % c] += square_row(x + i * s->inner, mean[i % c], s->inner, &left[i % c]);
    }
    for (int64_t j = 0; j < c; j++) {
        squares[j] -= left[j] * left[j] / count;
        mean[j] += left[j] / count;
    }
}

static void affine_pixels(const float *x, const float *mean, const float *scale, const float *bias,
                          float *y, int64_t n, int64_t c)
{
    for (int64_t i = 0; i < n; i++, x += c, y += c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++) y[j] = (x[j] - mean[j]) * scale[j] + bias[j];
    }
}

static void channel_affine(const QnChannels *s, const float *x, const float *mean,
                           const float *scale, const float *bias, float *y, int64_t part)
{
    int64_t begin = part_begin(s, part), n = part_begin(s, part + 1) - begin, c = s->c;
    int64_t tile = tile_pixels(s, x == y);
    float made[MOST_CHANNELS];
    x += begin * c * s->inner;
    y += begin * c * s->inner;
    for (int64_t i = 0; tile && i < n; i += tile) {
        int64_t m = QN_MIN(tile, n - i);
        affine_pixels(x + i * c, mean, scale, bias, made, m, c);
        QN_ISA_NAME(qn_stream)(made, y + i * c, (size_t)(m * c) * sizeof *made);
    }
    qn_stream_end();
    if (tile)
        return;
    if (s->inner == 1) {
        affine_pixels(x, mean, scale, bias, y, n, c);
        return;
    }
    for (int64_t i = 0; i < n * c; i++, x += s->inner, y += s->inner) {
        float m = mean[i % c], a = scale[i % c], b = bias[i % c];
        QN_IVDEP for (int64_t j = 0; j < s->inner; j++) y[j] = (x[j] - m) * a + b;
    }
}

QN_INLINE void grad_sums(const QnChannels *s, const float *dy, const float *x, const Back *k,
                         int64_t n, float *to, bool relu)
{
    if (s->inner == 1) {
        grad_pixels(dy, x, k, n, s->c, to, to + s->c, relu);
        return;
    }
    for (int64_t i = 0; i < n * s->c; i++)
        grad_row(dy + i * s->inner, x + i * s->inner, k, s->inner, i % s->c, to, to + s->c, relu);
}

static void channel_grad_sums(const QnChannels *s, const float *dy, const float *x,
                              const float *mean, const QnChannelRelu *relu, int64_t part, float *to)
{
    int64_t begin = part_begin(s, part), n = part_begin(s, part + 1) - begin;
    int64_t first = begin * s->c * s->inner;
    Back k = back_of(mean, relu);
    memset(to, 0, (size_t)(2 * s->c) * sizeof *to);
    if (relu)
        grad_sums(s, dy + first, x + first, &k, n, to, true);
    else
        grad_sums(s, dy + first, x + first, &k, n, to, false);
}

QN_INLINE void grad_apply_pixels(const float *dy, const float *x, const Back *b,
                                 const QnChannelGrad *g, float *dx, int64_t n, int64_t c, bool relu)
{
    const Back k = *b;
    const QnChannelGrad a = *g;
    for (int64_t i = 0; i < n; i++, x += c, dy += c, dx += c) {
        QN_IVDEP for (int64_t j = 0; j < c; j++)
        {
            float x0 = x[j] - k.mean[j], d = passed(&k, dy[j], x0, j, relu);
            dx[j] = a.scale[j] * (d - a.k0[j] - x0 * a.k1[j]);
        }
    }
}

/* A row of n of channel j. */
QN_INLINE void grad_apply_row(const float *dy, const float *x, const Back *k,
                              const QnChannelGrad *g, float *dx, int64_t n, int64_t j, bool relu)
{
    float m = k->mean[j], a = g->scale[j], p = g->k0[j], q = g->k1[j], least = k->least;
    float f = relu ? k->factor[j] : 0, b = relu ? k->bias[j] : 0;
    QN_IVDEP for (int64_t i = 0; i < n; i++)
    {
        float x0 = x[i] - m, d = !relu || x0 * f + b > least ? dy[i] : 0.0f;
        dx[i] = a * (d - p - x0 * q);
    }
}

/* n rows of pixels, or of channels. */
QN_INLINE void grad_apply(const QnChannels *s, const float *dy, const float *x, const Back *k,
                          const QnChannelGrad *g, float *dx, int64_t n, bool relu)
{
    int64_t c = s->c, tile = tile_pixels(s, dx == dy || dx == x);
    float made[MOST_CHANNELS];
    for (int64_t i = 0; tile && i < n; i += tile) {
        int64_t m = QN_MIN(tile, n - i);
        grad_apply_pixels(dy + i * c, x + i * c, k, g, made, m, c, relu);
        QN_ISA_NAME(qn_stream)(made, dx + i * c, (size_t)(m * c) * sizeof *made);
    }
    qn_stream_end();
    if (tile)
        return;
    if (s->inner == 1) {
        grad_apply_pixels(dy, x, k, g, dx, n, c, relu);
        return;
    }
    for (int64_t i = 0; i < n * c; i++) {
        int64_t at = i * s->inner;
        grad_apply_row(dy + at, x + at, k, g, dx + at, s->inner, i % c, relu);
    }
}

static void channel_grad(const QnChannels *s, const float *dy, const float *x, const float *mean,
                         const QnChannelRelu *relu, const QnChannelGrad *g, float *dx, int64_t part)
{
    int64_t begin = part_begin(s, part), n = part_begin(s, part + 1) - begin;
    int64_t first = begin * s->c * s->inner;
    Back k = back_of(mean, relu);
    if (relu)
        grad_apply(s, dy + first, x + first, &k, g, dx + first, n, true);
    else
        grad_apply(s, dy + first, x + first, &k, g, dx + first, n, false);
}

const QnChannelFns QN_ISA_NAME(qn_channel_fns) = {
    .stats = channel_stats,
    .affine = channel_affine,
    .grad_sums = channel_grad_sums,
    .grad = channel_grad,
};

/* Pools and their gradients: each window folded tap by tap, vectorised over channels. */
#include "backend/cpu/pool.h"
#include "backend/cpu/isa/simd.h"

#include <math.h>
#include <string.h>

/* Pixels of an image: channels are adjacent, pixels `step` apart. */
typedef struct Image {
    float *at;
    int64_t step;
} Image;

/* Taps of one window that lie inside, by axis, and the window's element count. */
typedef struct Taps {
    int64_t lo[3], hi[3], base[3];
    float inverse; /* of the count */
} Taps;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a <= 0 ? 0 : b == 1 ? a : (a + b - 1) / b; /* a division takes as long as a window */
}

static void taps_of_axis(const QnPool *p, int d, int64_t o, Taps *t, int64_t *count)
{
    const QnWindow *w = &p->w;
    int64_t base = o * w->stride[d] - w->pad[d];
    t->base[d] = base;
    t->lo[d] = QN_MIN(ceil_div(-base, w->dil[d]), w->k[d]);
    t->hi[d] = QN_MIN(ceil_div(w->in[d] - base, w->dil[d]), w->k[d]);
    t->hi[d] = QN_MAX(t->hi[d], t->lo[d]);
    int64_t padded = QN_MIN(ceil_div(w->in[d] + w->end[d] - base, w->dil[d]), w->k[d]);
    *count *= p->count_pad ? padded : t->hi[d] - t->lo[d];
}

/* One pass over all windows of an image: fn gets the window's number. */
typedef struct Walk {
    const QnPool *p;
    Image in, out, other; /* of the input's, the output's, the input's shape */
    int64_t c;
} Walk;

static int64_t pixel(const QnPool *p, const Taps *t, int64_t a, int64_t b, int64_t c)
{
    const QnWindow *w = &p->w;
    return ((t->base[0] + a * w->dil[0]) * w->in[1] + t->base[1] + b * w->dil[1]) * w->in[2] +
           t->base[2] + c * w->dil[2];
}

/* For every tap of the window that lies inside: declares its pixel `at` and runs the body. */
#define EACH_TAP(p, t, at)                                                                         \
    for (int64_t a_ = (t)->lo[0]; a_ < (t)->hi[0]; a_++)                                           \
        for (int64_t b_ = (t)->lo[1]; b_ < (t)->hi[1]; b_++)                                       \
            for (int64_t at = pixel(p, t, a_, b_, (t)->lo[2]),                                     \
                         end_ = at + ((t)->hi[2] - (t)->lo[2]) * (p)->w.dil[2];                    \
                 at < end_; at += (p)->w.dil[2])

typedef void WindowFn(const Walk *k, const Taps *t, int64_t o);

QN_INLINE void walk(const Walk *k, WindowFn *fn)
{
    const QnPool *p = k->p;
    Taps t;
    int64_t o = 0;
    for (int64_t a = 0; a < p->w.out[0]; a++) {
        int64_t n0 = 1;
        taps_of_axis(p, 0, a, &t, &n0);
        for (int64_t b = 0; b < p->w.out[1]; b++) {
            int64_t n1 = n0;
            taps_of_axis(p, 1, b, &t, &n1);
            for (int64_t c = 0; c < p->w.out[2]; c++, o++) {
                int64_t n2 = n1;
                taps_of_axis(p, 2, c, &t, &n2);
                t.inverse = 1.0f / (float)n2;
                fn(k, &t, o);
            }
        }
    }
}

/* ---- the windows ---- */

QN_INLINE float greater(float m, float x)
{
    return x > m || x != x ? x : m;
}

enum { VECTORS = 4 };

/* n vectors of channels from j on, which stay in registers over the taps. */
QN_INLINE void max_vectors(const Walk *k, const Taps *t, float *y, int64_t j, int n)
{
    QnVec best[VECTORS];
    QN_UNROLL for (int v = 0; v < n; v++) best[v] = qn_vec_set(-INFINITY);
    EACH_TAP(k->p, t, at)
    {
        const float *from = k->in.at + at * k->in.step + j;
        QN_UNROLL for (int v = 0; v < n; v++)
        {
            QnVec x = qn_vec_load(from + v * VW);
            best[v] = qn_vec_pick((x > best[v]) | (x != x), x, best[v]);
        }
    }
    QN_UNROLL for (int v = 0; v < n; v++) qn_vec_store(y + j + v * VW, best[v]);
}

static void max_window(const Walk *k, const Taps *t, int64_t o)
{
    float *y = k->out.at + o * k->out.step;
    int64_t j = 0;
    for (; j + VECTORS * VW <= k->c; j += VECTORS * VW)
        max_vectors(k, t, y, j, VECTORS);
    for (; j + VW <= k->c; j += VW)
        max_vectors(k, t, y, j, 1);
    if (j < k->c && k->c >= VW) { /* the last ones once more, with what is left */
        max_vectors(k, t, y, k->c - VW, 1);
        j = k->c;
    }
    for (; j < k->c; j++) {
        float best = -INFINITY;
        EACH_TAP(k->p, t, at)
        {
            best = greater(best, k->in.at[at * k->in.step + j]);
        }
        y[j] = best;
    }
}

/* The first greatest element of each channel, NaN counting as greatest, gets dy: added, or with
 * `alone` stored, where no two windows meet. A vector of channels from j on, of whose dy is d. */
QN_INLINE void max_grad_vector(const Walk *k, const Taps *t, QnVec d, int64_t j, bool alone)
{
    QnVec best = qn_vec_set(-INFINITY), zero = qn_vec_set(0);
    QnVecInt who = { 0 }, tap = { 0 }; /* if all are -infinity, the first */
    EACH_TAP(k->p, t, at)
    {
        QnVec x = qn_vec_load(k->in.at + at * k->in.step + j);
        QnVecInt wins = (x > best) | ((x != x) & (best == best));
        best = qn_vec_pick(wins, x, best);
        who = (wins & tap) | (~wins & who);
        tap += 1;
    }
    tap = (QnVecInt){ 0 };
    EACH_TAP(k->p, t, at)
    {
        float *dx = k->other.at + at * k->other.step + j;
        QnVec add = qn_vec_pick(who == tap, d, zero);
        if (!alone)
            add += qn_vec_load(dx);
        qn_vec_store(dx, add);
        tap += 1;
    }
}

/* The same for one channel. */
static void max_grad_channel(const Walk *k, const Taps *t, float dy, int64_t j, bool alone)
{
    float best = -INFINITY;
    int64_t who = -1;
    EACH_TAP(k->p, t, at)
    {
        float x = k->in.at[at * k->in.step + j];
        bool wins = who < 0 || x > best || (x != x && best == best);
        best = wins ? x : best;
        who = wins ? at : who;
    }
    EACH_TAP(k->p, t, at)
    {
        float *dx = k->other.at + at * k->other.step + j, add = at == who ? dy : 0.0f;
        *dx = alone ? add : *dx + add;
    }
}

QN_INLINE void max_grad_all(const Walk *k, const Taps *t, int64_t o, bool alone)
{
    const float *dy = k->out.at + o * k->out.step;
    int64_t j = 0;
    for (; j + VW <= k->c; j += VW)
        max_grad_vector(k, t, qn_vec_load(dy + j), j, alone);
    if (j < k->c && k->c >= VW) { /* the last vector; what is done already is not added again */
        float d[VW];
        memcpy(d, dy + k->c - VW, sizeof d);
        if (!alone)
            memset(d, 0, (size_t)(j - (k->c - VW)) * sizeof *d);
        max_grad_vector(k, t, qn_vec_load(d), k->c - VW, alone);
        j = k->c;
    }
    for (; j < k->c; j++)
        max_grad_channel(k, t, dy[j], j, alone);
}

static void max_grad_window(const Walk *k, const Taps *t, int64_t o)
{
    max_grad_all(k, t, o, false);
}

static void max_grad_window_alone(const Walk *k, const Taps *t, int64_t o)
{
    max_grad_all(k, t, o, true);
}

QN_INLINE void avg_vectors(const Walk *k, const Taps *t, float *y, int64_t j, int n)
{
    QnVec sum[VECTORS];
    QN_UNROLL for (int v = 0; v < n; v++) sum[v] = qn_vec_set(0);
    EACH_TAP(k->p, t, at)
    {
        const float *x = k->in.at + at * k->in.step + j;
        QN_UNROLL for (int v = 0; v < n; v++) sum[v] += qn_vec_load(x + v * VW);
    }
    QN_UNROLL for (int v = 0; v < n; v++) qn_vec_store(y + j + v * VW, sum[v] * t->inverse);
}

static void avg_window(const Walk *k, const Taps *t, int64_t o)
{
    float *y = k->out.at + o * k->out.step;
    int64_t j = 0;
    for (; j + VECTORS * VW <= k->c; j += VECTORS * VW)
        avg_vectors(k, t, y, j, VECTORS);
    for (; j + VW <= k->c; j += VW)
        avg_vectors(k, t, y, j, 1);
    if (j < k->c && k->c >= VW) {
        avg_vectors(k, t, y, k->c - VW, 1);
        j = k->c;
    }
    for (; j < k->c; j++) {
        float sum = 0;
        EACH_TAP(k->p, t, at)
        {
            sum += k->in.at[at * k->in.step + j];
        }
        y[j] = sum * t->inverse;
    }
}

static void avg_grad_window(const Walk *k, const Taps *t, int64_t o)
{
    const float *dy = k->out.at + o * k->out.step;
    EACH_TAP(k->p, t, at)
    {
        float *dx = k->other.at + at * k->other.step;
        QN_IVDEP for (int64_t j = 0; j < k->c; j++) dx[j] += dy[j] * t->inverse;
    }
}

/* ---- units ---- */

/* Whether every input element lies in one window. */
static bool tiles_exactly(const QnPool *p)
{
    const QnWindow *w = &p->w;
    bool exact = true;
    for (int d = 0; d < 3; d++)
        exact &= w->stride[d] == w->k[d] && w->in[d] == w->out[d] * w->k[d] && !w->pad[d] &&
                 (w->dil[d] == 1 || w->k[d] == 1);
    return exact;
}

typedef struct Unit {
    int64_t c, all, image, first; /* channels of it; of the tensor; where it lies */
    bool plain;
} Unit;

static Unit unit_of(const QnPool *p, int64_t unit)
{
    int64_t blocks = qn_pool_blocks(p), step = qn_pool_channels(p);
    Unit u = { .all = p->c, .image = unit / blocks, .first = unit % blocks * step };
    u.c = QN_MIN(step, p->c - u.first);
    u.plain = p->plain;
    return u;
}

/* Where an image of 16 bits begins. */
static char *half_at(const Unit *u, char *x, int64_t pixels)
{
    int64_t first = u->image * u->all * pixels + (u->plain ? u->first * pixels : u->first);
    return x + (size_t)first * sizeof(uint16_t);
}

/* Rows of n, in tensors of 16 bits `step` apart. */
static void widen_rows(const QnPool *p, const char *x, int64_t step, float *to, int64_t rows,
                       int64_t n)
{
    if (step == n) {
        p->convert->to_f32(p->dtype, x, to, rows * n);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        p->convert->to_f32(p->dtype, x + (size_t)(i * step) * sizeof(uint16_t), to + i * n, n);
}

static void narrow_rows(const QnPool *p, const float *from, char *y, int64_t step, int64_t rows,
                        int64_t n)
{
    if (step == n) {
        p->convert->from_f32(p->dtype, from, y, rows * n);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        p->convert->from_f32(p->dtype, from + i * n, y + (size_t)(i * step) * sizeof(uint16_t), n);
}

/* What a unit works with: *next is its free scratch, `unturned` the part for what is not yet
 * turned. */
typedef struct Scratch {
    float *unturned, *next;
} Scratch;

static Scratch scratch_of(const QnPool *p, float *scratch)
{
    return (Scratch){ scratch, scratch + qn_pool_unturned(p) };
}

static Image image_new(const Unit *u, int64_t pixels, Scratch *s)
{
    Image i = { s->next, u->c };
    s->next += pixels * u->c;
    return i;
}

/* The unit's pixels to read: in place, or turned or widened into scratch. */
static Image image_in(const QnPool *p, const Unit *u, const void *x, int64_t pixels, Scratch *s)
{
    union {
        const void *given;
        void *read_only;
    } start = { x };
    const float *planes = (const float *)x + (u->image * u->all + u->first) * pixels;
    if (!u->plain && !qn_pool_is_half(p))
        return (Image){ (float *)start.read_only + u->image * u->all * pixels + u->first, u->all };
    Image i = image_new(u, pixels, s);
    if (qn_pool_is_half(p)) {
        const char *half = half_at(u, start.read_only, pixels);
        if (!u->plain) {
            widen_rows(p, half, u->all, i.at, pixels, u->c);
            return i;
        }
        widen_rows(p, half, pixels, s->unturned, u->c, pixels);
        planes = s->unturned;
    }
    qn_turn(planes, pixels, u->c, pixels, i.at, u->c);
    return i;
}

/* The unit's pixels to write, later given back by image_end. */
static Image image_out(const QnPool *p, const Unit *u, void *y, int64_t pixels, Scratch *s)
{
    if (u->plain || qn_pool_is_half(p))
        return image_new(u, pixels, s);
    return (Image){ (float *)y + u->image * u->all * pixels + u->first, u->all };
}

static void image_clear(const Unit *u, const Image *i, int64_t pixels)
{
    for (int64_t k = 0; k < pixels; k++)
        memset(i->at + k * i->step, 0, (size_t)u->c * sizeof(float));
}

static void image_end(const QnPool *p, const Unit *u, const Image *i, void *y, int64_t pixels,
                      const Scratch *s)
{
    bool half = qn_pool_is_half(p);
    float *planes = half ? s->unturned : (float *)y + (u->image * u->all + u->first) * pixels;
    if (u->plain)
        qn_turn(i->at, i->step, pixels, u->c, planes, pixels);
    if (half && u->plain)
        narrow_rows(p, planes, half_at(u, y, pixels), pixels, u->c, pixels);
    else if (half)
        narrow_rows(p, i->at, half_at(u, y, pixels), u->all, pixels, u->c);
}

/* One tensor from another by windows. */
QN_INLINE void forward(const QnPool *p, const void *x, void *y, int64_t unit, float *scratch,
                       WindowFn *fn)
{
    Unit u = unit_of(p, unit);
    Scratch s = scratch_of(p, scratch);
    Walk k = { .p = p, .c = u.c };
    k.in = image_in(p, &u, x, qn_pool_in(p), &s);
    k.out = image_out(p, &u, y, qn_pool_out(p), &s);
    walk(&k, fn);
    image_end(p, &u, &k.out, y, qn_pool_out(p), &s);
}

static void pool_max(const QnPool *p, const void *x, void *y, int64_t unit, float *scratch)
{
    forward(p, x, y, unit, scratch, max_window);
}

static void pool_avg(const QnPool *p, const void *x, void *y, int64_t unit, float *scratch)
{
    forward(p, x, y, unit, scratch, avg_window);
}

static void pool_max_grad(const QnPool *p, const void *dy, const void *x, void *dx, int64_t unit,
                          float *scratch)
{
    Unit u = unit_of(p, unit);
    Scratch s = scratch_of(p, scratch);
    Walk k = { .p = p, .c = u.c };
    k.in = image_in(p, &u, x, qn_pool_in(p), &s);
    k.out = image_in(p, &u, dy, qn_pool_out(p), &s);
    k.other = image_out(p, &u, dx, qn_pool_in(p), &s);
    if (tiles_exactly(p)) {
        walk(&k, max_grad_window_alone);
    } else {
        image_clear(&u, &k.other, qn_pool_in(p));
        walk(&k, max_grad_window);
    }
    image_end(p, &u, &k.other, dx, qn_pool_in(p), &s);
}

static void pool_avg_grad(const QnPool *p, const void *dy, void *dx, int64_t unit, float *scratch)
{
    Unit u = unit_of(p, unit);
    Scratch s = scratch_of(p, scratch);
    Walk k = { .p = p, .c = u.c };
    k.out = image_in(p, &u, dy, qn_pool_out(p), &s);
    k.other = image_out(p, &u, dx, qn_pool_in(p), &s);
    image_clear(&u, &k.other, qn_pool_in(p));
    walk(&k, avg_grad_window);
    image_end(p, &u, &k.other, dx, qn_pool_in(p), &s);
}

const QnPoolFns QN_ISA_NAME(qn_pool_fns) = {
    .max = pool_max,
    .max_grad = pool_max_grad,
    .avg = pool_avg,
    .avg_grad = pool_avg_grad,
};

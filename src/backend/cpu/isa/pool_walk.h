/* How pools go over an image: window by window, tap by tap, channels in vectors; and the units that
 * they are cut into, whose pixels are channels-last f32 in place or in scratch memory. */
#ifndef QN_BACKEND_CPU_ISA_POOL_WALK_H
#define QN_BACKEND_CPU_ISA_POOL_WALK_H

#include "backend/cpu/pool.h"
#include "backend/cpu/isa/simd.h"

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

QN_INLINE int64_t ceil_div(int64_t a, int64_t b)
{
    return a <= 0 ? 0 : b == 1 ? a : (a + b - 1) / b; /* a division takes as long as a window */
}

QN_INLINE void taps_of_axis(const QnPool *p, int d, int64_t o, Taps *t, int64_t *count)
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

QN_INLINE int64_t pixel(const QnPool *p, const Taps *t, int64_t a, int64_t b, int64_t c)
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

/* ---- units ---- */

/* Whether every input element lies in one window. */
QN_INLINE bool tiles_exactly(const QnPool *p)
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

QN_INLINE Unit unit_of(const QnPool *p, int64_t unit)
{
    int64_t blocks = qn_pool_blocks(p), step = qn_pool_channels(p);
    Unit u = { .all = p->c, .image = unit / blocks, .first = unit % blocks * step };
    u.c = QN_MIN(step, p->c - u.first);
    u.plain = p->plain;
    return u;
}

/* Where an image of 16 bits begins. */
QN_INLINE char *half_at(const Unit *u, char *x, int64_t pixels)
{
    int64_t first = u->image * u->all * pixels + (u->plain ? u->first * pixels : u->first);
    return x + (size_t)first * sizeof(uint16_t);
}

/* Rows of n, in tensors of 16 bits `step` apart. */
QN_INLINE void widen_rows(const QnPool *p, const char *x, int64_t step, float *to, int64_t rows,
                          int64_t n)
{
    if (step == n) {
        p->convert->to_f32(p->dtype, x, to, rows * n);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        p->convert->to_f32(p->dtype, x + (size_t)(i * step) * sizeof(uint16_t), to + i * n, n);
}

QN_INLINE void narrow_rows(const QnPool *p, const float *from, char *y, int64_t step, int64_t rows,
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

QN_INLINE Scratch scratch_of(const QnPool *p, float *scratch)
{
    return (Scratch){ scratch, scratch + qn_pool_unturned(p) };
}

QN_INLINE Image image_new(const Unit *u, int64_t pixels, Scratch *s)
{
    Image i = { s->next, u->c };
    s->next += pixels * u->c;
    return i;
}

/* The unit's pixels to read: in place, or turned or widened into scratch. */
QN_INLINE Image image_in(const QnPool *p, const Unit *u, const void *x, int64_t pixels, Scratch *s)
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
QN_INLINE Image image_out(const QnPool *p, const Unit *u, void *y, int64_t pixels, Scratch *s)
{
    if (u->plain || qn_pool_is_half(p))
        return image_new(u, pixels, s);
    return (Image){ (float *)y + u->image * u->all * pixels + u->first, u->all };
}

QN_INLINE void image_clear(const Unit *u, const Image *i, int64_t pixels)
{
    for (int64_t k = 0; k < pixels; k++)
        memset(i->at + k * i->step, 0, (size_t)u->c * sizeof(float));
}

QN_INLINE void image_end(const QnPool *p, const Unit *u, const Image *i, void *y, int64_t pixels,
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

#endif

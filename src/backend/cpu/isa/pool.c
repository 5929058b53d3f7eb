/* Pools and their gradients: each window folded tap by tap, vectorised over channels. */
#include "backend/cpu/isa/pool_walk.h"

#include <math.h>

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

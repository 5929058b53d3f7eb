/* The max pool of a batch norm's ReLU, and the way back through all three: what the norm makes of
 * its operand is computed as it is read, never stored. Of the greatest element of a window (the
 * first of several, NaN counting as greatest) the gradient reaches it if it is above 0. In 16 bits
 * too the greatest is that before anything is rounded. */
#include "backend/cpu/isa/pool_walk.h"
#include "backend/cpu/stream.h"

#include <math.h>

/* A block of channels and what they are normalised by. */
typedef struct Norm {
    const float *mean, *factor, *bias, *k0, *k1;
    float *sum, *dot;
    int8_t *who; /* of the image's windows, `step` apart */
    int64_t step;
    bool past; /* whole vectors are written past the caches */
} Norm;

static Norm norm_of(const QnPool *p, const QnPoolNorm *k, const Unit *u)
{
    int64_t c = u->first;
    Norm n = { .mean = k->mean + c, .factor = k->factor + c, .bias = k->bias + c, .step = u->all };
    if (k->who)
        n.who = k->who + u->image * qn_pool_out(p) * u->all + c;
    if (k->k0) {
        n.k0 = k->k0 + c;
        n.k1 = k->k1 + c;
    }
    return n;
}

enum { VECTORS = 4 };

/* What goes over the windows of an image; on the way to a maximum w.other is what `rounded` makes.
 */
typedef struct Pass {
    Walk w; /* first */
    Norm n;
} Pass;

static const Norm *norm_in(const Walk *w)
{
    return &((const Pass *)(const void *)w)->n;
}

QN_INLINE QnVec load_lanes(const float *p, int64_t lanes)
{
    return lanes == VW ? qn_vec_load(p) : qn_vec_load_lanes(p, lanes);
}

QN_INLINE void store_lanes(float *p, QnVec v, int64_t lanes)
{
    if (lanes == VW)
        qn_vec_store(p, v);
    else
        qn_vec_store_lanes(p, v, lanes);
}

QN_INLINE bool is_empty(const Taps *t)
{
    return t->lo[0] == t->hi[0] || t->lo[1] == t->hi[1] || t->lo[2] == t->hi[2];
}

/* ---- forward ---- */

QN_INLINE void max_of(const Walk *k, const Taps *t, int64_t o, int64_t j, int64_t lanes)
{
    const Norm *n = norm_in(k);
    QnVec m = load_lanes(n->mean + j, lanes), f = load_lanes(n->factor + j, lanes);
    QnVec b = load_lanes(n->bias + j, lanes), best = qn_vec_set(-INFINITY), zero = qn_vec_set(0);
    EACH_TAP(k->p, t, at)
    {
        QnVec v = (load_lanes(k->in.at + at * k->in.step + j, lanes) - m) * f + b;
        best = qn_vec_pick((v > best) | (v != v), v, best);
    }
    if (!is_empty(t)) /* what lies in the padding alone is no ReLU's */
        best = qn_vec_pick(best < zero, zero, best);
    store_lanes(k->out.at + o * k->out.step + j, best, lanes);
}

static void max_window(const Walk *k, const Taps *t, int64_t o)
{
    int64_t j = 0;
    for (; j + VW <= k->c; j += VW)
        max_of(k, t, o, j, VW);
    if (j < k->c)
        max_of(k, t, o, j, k->c - j);
}

static void norm_max(const QnPool *p, const QnPoolNorm *k, const void *x, void *y, int64_t unit,
                     float *scratch)
{
    Unit u = unit_of(p, unit);
    Scratch s = scratch_of(p, scratch);
    Pass pass = { .w = { .p = p, .c = u.c }, .n = norm_of(p, k, &u) };
    pass.w.in = image_in(p, &u, x, qn_pool_in(p), &s);
    pass.w.out = image_out(p, &u, y, qn_pool_out(p), &s);
    walk(&pass.w, max_window);
    image_end(p, &u, &pass.w.out, y, qn_pool_out(p), &s);
}

/* ---- backward ---- */

QN_INLINE QnVecInt load_who(const int8_t *p, int64_t lanes)
{
    int8_t t[VW] = { 0 };
    if (lanes == VW)
        return qn_vec_load_bytes(p);
    memcpy(t, p, (size_t)lanes);
    return qn_vec_load_bytes(t);
}

QN_INLINE void store_who(int8_t *p, QnVecInt v, int64_t lanes)
{
    int8_t t[VW];
    qn_vec_store_bytes(lanes == VW ? p : t, v);
    if (lanes < VW)
        memcpy(p, t, (size_t)lanes);
}

/* Who won window o, and the sums of what the gradient brings it. */
QN_INLINE void sums_of(const Walk *k, const Taps *t, int64_t o, int64_t j, int64_t lanes)
{
    const Norm *n = norm_in(k);
    const int64_t *width = k->p->w.k;
    QnVec m = load_lanes(n->mean + j, lanes), f = load_lanes(n->factor + j, lanes);
    QnVec b = load_lanes(n->bias + j, lanes), best = qn_vec_set(-INFINITY), zero = qn_vec_set(0);
    QnVec of_best = zero, d = load_lanes(k->out.at + o * k->out.step + j, lanes);
    QnVecInt who = { 0 }, nan = { 0 };
    for (int64_t a0 = t->lo[0]; a0 < t->hi[0]; a0++)
        for (int64_t a1 = t->lo[1]; a1 < t->hi[1]; a1++) {
            int64_t at = pixel(k->p, t, a0, a1, t->lo[2]);
            QnVecInt tap = (QnVecInt){ 0 } + (int32_t)((a0 * width[1] + a1) * width[2] + t->lo[2]);
            for (int64_t a2 = t->lo[2]; a2 < t->hi[2]; a2++, at += k->p->w.dil[2]) {
                QnVec x = load_lanes(k->in.at + at * k->in.step + j, lanes) - m, v = x * f + b;
                QnVecInt wins = v > best;
                nan |= v != v;
                best = qn_vec_pick(wins, v, best);
                of_best = qn_vec_pick(wins, x, of_best);
                who = (wins & tap) | (~wins & who);
                tap += 1;
            }
        }
    who |= ~((best > zero) & ~nan); /* -1: all bits */
    d = qn_vec_pick(who >= (QnVecInt){ 0 }, d, zero);
    store_who(n->who + o * n->step + j, who, lanes);
    store_lanes(n->sum + j, load_lanes(n->sum + j, lanes) + d, lanes);
    store_lanes(n->dot + j, load_lanes(n->dot + j, lanes) + d * of_best, lanes);
}

static void sums_window(const Walk *k, const Taps *t, int64_t o)
{
    int64_t j = 0;
    for (; j + VW <= k->c; j += VW)
        sums_of(k, t, o, j, VW);
    if (j < k->c)
        sums_of(k, t, o, j, k->c - j);
}

static void norm_sums(const QnPool *p, const QnPoolNorm *k, const void *dy, const void *x,
                      float *to, int64_t unit, float *scratch)
{
    Unit u = unit_of(p, unit);
    Scratch s = scratch_of(p, scratch);
    Pass pass = { .w = { .p = p, .c = u.c }, .n = norm_of(p, k, &u) };
    pass.n.sum = to + u.first;
    pass.n.dot = to + p->c + u.first;
    memset(pass.n.sum, 0, (size_t)u.c * sizeof *to);
    memset(pass.n.dot, 0, (size_t)u.c * sizeof *to);
    pass.w.in = image_in(p, &u, x, qn_pool_in(p), &s);
    pass.w.out = image_in(p, &u, dy, qn_pool_out(p), &s);
    walk(&pass.w, sums_window);
}

/* dx of a vector of channels, of what reaches the norm's result. */
QN_INLINE void grad_store(const Walk *k, int64_t at, int64_t j, QnVec g, int64_t lanes)
{
    const Norm *n = norm_in(k);
    QnVec m = load_lanes(n->mean + j, lanes), f = load_lanes(n->factor + j, lanes);
    QnVec k0 = load_lanes(n->k0 + j, lanes), k1 = load_lanes(n->k1 + j, lanes);
    QnVec x = load_lanes(k->in.at + at * k->in.step + j, lanes) - m, dx = f * (g - k0 - x * k1);
    float *to = k->other.at + at * k->other.step + j;
    if (n->past && lanes == VW)
        qn_vec_stream(to, dx);
    else
        store_lanes(to, dx, lanes);
}

/* Windows that do not meet and cover everything: each writes all of its elements. */
QN_INLINE void grad_of(const Walk *k, const Taps *t, int64_t o, int64_t j, int64_t lanes)
{
    const Norm *n = norm_in(k);
    QnVec d = load_lanes(k->out.at + o * k->out.step + j, lanes), zero = qn_vec_set(0);
    QnVecInt who = load_who(n->who + o * n->step + j, lanes), tap = { 0 };
    EACH_TAP(k->p, t, at)
    {
        grad_store(k, at, j, qn_vec_pick(who == tap, d, zero), lanes);
        tap += 1;
    }
}

static void grad_window(const Walk *k, const Taps *t, int64_t o)
{
    int64_t j = 0;
    for (; j + VW <= k->c; j += VW)
        grad_of(k, t, o, j, VW);
    if (j < k->c)
        grad_of(k, t, o, j, k->c - j);
}

/* Windows of one row of the output that reach an element's row, by their first tap. */
typedef struct Row {
    int64_t window, tap;
} Row;

/* n vectors (the last of `lanes`) of element e of a row, which begins at pixel `base`. */
QN_INLINE void grad_element(const Walk *k, const QnPoolReach *r, const Row *row, int n_rows,
                            int64_t base, int64_t e, int64_t j, int n, int64_t lanes)
{
    const Norm *norm = norm_in(k);
    QnVec g[VECTORS], zero = qn_vec_set(0);
    QN_UNROLL for (int v = 0; v < n; v++) g[v] = zero;
    for (int i = 0; i < n_rows; i++) {
        for (int64_t c = r->begin[2][e]; c < r->begin[2][e + 1]; c++) {
            int64_t o = row[i].window + r->window[2][c];
            QnVecInt tap = (QnVecInt){ 0 } + (int32_t)(row[i].tap + r->tap[2][c]);
            QN_UNROLL for (int v = 0; v < n; v++)
            {
                QnVec d = load_lanes(k->out.at + o * k->out.step + j + v * VW, lanes);
                QnVecInt who = load_who(norm->who + o * norm->step + j + v * VW, lanes);
                g[v] += qn_vec_pick(who == tap, d, zero);
            }
        }
    }
    QN_UNROLL for (int v = 0; v < n; v++) grad_store(k, base + e, j + v * VW, g[v], lanes);
}

static void grad_row(const Walk *k, const QnPoolReach *r, const Row *row, int n_rows, int64_t base)
{
    for (int64_t e = 0; e < k->p->w.in[2]; e++) {
        int64_t j = 0;
        for (; j + VECTORS * VW <= k->c; j += VECTORS * VW)
            grad_element(k, r, row, n_rows, base, e, j, VECTORS, VW);
        for (; j + VW <= k->c; j += VW)
            grad_element(k, r, row, n_rows, base, e, j, 1, VW);
        if (j < k->c)
            grad_element(k, r, row, n_rows, base, e, j, 1, k->c - j);
    }
}

/* Any windows: each element asks those that cover it. */
static void grad_rows(const Walk *k, const QnPoolReach *r)
{
    const QnWindow *w = &k->p->w;
    Row row[QN_POOL_NORM_TAPS];
    for (int64_t e0 = 0; e0 < w->in[0]; e0++)
        for (int64_t e1 = 0; e1 < w->in[1]; e1++) {
            int n = 0;
            for (int64_t a = r->begin[0][e0]; a < r->begin[0][e0 + 1]; a++)
                for (int64_t b = r->begin[1][e1]; b < r->begin[1][e1 + 1]; b++)
                    row[n++] = (Row){ (r->window[0][a] * w->out[1] + r->window[1][b]) * w->out[2],
                                      (r->tap[0][a] * w->k[1] + r->tap[1][b]) * w->k[2] };
            grad_row(k, r, row, n, (e0 * w->in[1] + e1) * w->in[2]);
        }
}

static void norm_grad(const QnPool *p, const QnPoolNorm *k, const void *dy, const void *x, void *dx,
                      int64_t unit, float *scratch)
{
    Unit u = unit_of(p, unit);
    Scratch s = scratch_of(p, scratch);
    Pass pass = { .w = { .p = p, .c = u.c }, .n = norm_of(p, k, &u) };
    pass.w.in = image_in(p, &u, x, qn_pool_in(p), &s);
    pass.w.out = image_in(p, &u, dy, qn_pool_out(p), &s);
    pass.w.other = image_out(p, &u, dx, qn_pool_in(p), &s);
    pass.n.past = k->past && !p->plain && !qn_pool_is_half(p) && pass.w.other.step % VW == 0 &&
                  (uintptr_t)pass.w.other.at % sizeof(QnVec) == 0;
    if (tiles_exactly(p))
        walk(&pass.w, grad_window);
    else
        grad_rows(&pass.w, k->reach);
    if (pass.n.past)
        qn_stream_end();
    image_end(p, &u, &pass.w.other, dx, qn_pool_in(p), &s);
}

const QnPoolNormFns QN_ISA_NAME(qn_pool_norm_fns) = {
    .max = norm_max,
    .sums = norm_sums,
    .grad = norm_grad,
};

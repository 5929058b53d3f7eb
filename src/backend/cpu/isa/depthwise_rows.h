/* How depthwise convolutions walk rows: which taps read something, and where. */
#ifndef QN_BACKEND_CPU_ISA_DEPTHWISE_ROWS_H
#define QN_BACKEND_CPU_ISA_DEPTHWISE_ROWS_H

#include "backend/cpu/depthwise.h"
#include "backend/cpu/isa/simd.h"

QN_INLINE QnVec load_some(const float *p, int64_t lanes)
{
    return lanes == VW ? qn_vec_load(p) : qn_vec_load_lanes(p, lanes);
}

QN_INLINE int64_t div_up(int64_t a, int64_t b)
{
    return a <= 0 ? 0 : b == 1 ? a : (a + b - 1) / b; /* a division takes as long as a pixel */
}

/* The taps of an element that read something: n of them from place `at` on, by `tap` on. */
typedef struct Reads {
    int64_t n, at, at_step, tap, tap_step;
} Reads;

/* In floats: places that are `line` apart, filters' taps that are `taps` vectors apart. */
QN_INLINE Reads reads_of(const QnDepthwiseAxis *a, const QnDepthwisePhase *p, int64_t i,
                         int64_t line, int64_t taps)
{
    int64_t base = i * a->step + p->at, lo = 0, hi = p->n_taps;
    if (i < p->inside || i >= p->inside_end) {
        lo = QN_MIN(div_up(-base, p->at_step), hi);
        hi = QN_MAX(QN_MIN(div_up(a->in - base, p->at_step), hi), lo);
    }
    if (lo == hi) /* nothing, which is nowhere */
        return (Reads){ 0 };
    return (Reads){ .n = hi - lo,
                    .at = (base + lo * p->at_step) * line,
                    .at_step = p->at_step * line,
                    .tap = (p->tap + lo * p->tap_step) * taps * VW,
                    .tap_step = p->tap_step * taps * VW };
}

QN_INLINE Reads reads_at(const QnDepthwiseAxis *a, int64_t element, int64_t line, int64_t taps)
{
    return reads_of(a, &a->phase[element % a->n_phases], element / a->n_phases, line, taps);
}

/* A row that is written: what it reads in the outer axes. Steps are in floats. */
typedef struct Row {
    const QnDepthwise *d;
    const QnDepthwiseAxis *axis; /* along the row */
    const float *x;              /* the first row that is read */
    int64_t tap;                 /* the first tap by which, in packed filters */
    int64_t step;                /* of x, from pixel to pixel */
    Reads outer[2];
} Row;

QN_INLINE Row row_of(const QnDepthwise *d, const float *x, int64_t row)
{
    const QnDepthwiseAxis *a = d->axis;
    int64_t e1 = row % a[1].out, e0 = row / a[1].out % a[0].out, image = row / a[1].out / a[0].out;
    int64_t line = a[2].in * d->c, plane = a[1].in * line;
    Row r = { .d = d,
              .axis = &a[2],
              .step = a[2].step * d->c,
              .outer = { reads_at(&a[0], e0, plane, a[1].k * a[2].k),
                         reads_at(&a[1], e1, line, a[2].k) } };
    r.x = x + image * a[0].in * plane + r.outer[0].at + r.outer[1].at;
    r.tap = r.outer[0].tap + r.outer[1].tap;
    return r;
}

/* What element i of a phase reads along the row. */
QN_INLINE Reads row_reads(const Row *r, const QnDepthwisePhase *p, int64_t i)
{
    return reads_of(r->axis, p, i, r->d->c, 1);
}

/* Channels whose rows stay in the first-level cache until the next row of results reads them
 * again; all, where those were too few for memory to be read in runs. */
QN_INLINE int64_t channels_at_once(const QnDepthwise *d)
{
    enum { ROWS_FLOATS = 6 << 10, RUN = 80 };
    int64_t rows = QN_MIN(d->axis[1].in, d->axis[1].k) * QN_MIN(d->axis[0].in, d->axis[0].k);
    int64_t some = ROWS_FLOATS / (rows * d->axis[2].in) / VW * VW;
    return some < RUN ? QN_MAX(d->c, 1) : some;
}

#endif

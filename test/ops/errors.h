/* How far results are from the reference: over all elements of all cases of an operator, a type and
 * a backend. */
#ifndef QN_TEST_OPS_ERRORS_H
#define QN_TEST_OPS_ERRORS_H

#include "ops/harness.h"

typedef struct Errors {
    double ulps; /* worst, in units of the last place of the reference's own value; of what cancels
                  * to less, in those of a thousandth of the output's largest */
    double relative; /* worst |got - want| / (1 + |want|): what tolerances bound */
    int64_t cases, failed;
} Errors;

/* Bits of the fraction, and the least exponent of normal numbers. */
static inline bool float_format(QnDtype d, int *fraction, int *least)
{
    *fraction = d == QN_DTYPE_F32 ? 23 : d == QN_DTYPE_F16 ? 10 : d == QN_DTYPE_BF16 ? 7 : 52;
    *least = d == QN_DTYPE_F16 ? -14 : d == QN_DTYPE_F64 ? -1022 : -126;
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || d == QN_DTYPE_F64;
}

static inline void errors_add(Errors *e, QnDtype d, const double *got, const double *want,
                              int64_t n)
{
    int fraction, least;
    double most = 0;
    if (!float_format(d, &fraction, &least))
        return; /* compared exactly */
    for (int64_t i = 0; i < n; i++)
        most = isfinite(want[i]) ? fmax(most, fabs(want[i])) : most;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs(got[i] - want[i]);
        if (!isfinite(off))
            continue; /* infinities and NaNs, which are compared as such */
        double size = fmax(fabs(want[i]), most / 1024);
        int at = size == 0 ? least : QN_MAX(ilogb(size), least);
        e->ulps = QN_MAX(e->ulps, ldexp(off, fraction - at));
        e->relative = QN_MAX(e->relative, off / (1 + fabs(want[i])));
    }
}

/* Compares the outputs of a case with the reference's; what differs beyond the operator's tolerance
 * is printed. `f` is the case's type. */
static inline bool errors_case(Errors *e, const Case *c, QnDtype f, const char *by,
                               double *const *got, double *const *want)
{
    bool same = true;
    for (int i = 0; i < c->node->n_out; i++) {
        QnDtype d = c->node->out[i].type.dtype;
        int64_t n = value_count(&c->node->out[i]), at;
        double tol = case_tol(c, qn_dtype_is_float(d) ? f : d);
        double *rounded = new_doubles(n);
        memcpy(rounded, want[i], (size_t)n * sizeof *rounded);
        round_to_dtype(d, rounded, n);
        at = first_difference(got[i], rounded, n, tol);
        if (at >= 0) {
            print_message("%s: %s: output %d, element %lld is %.9g, should be %.9g\n", c->name, by,
                          i, (long long)at, got[i][at], rounded[at]);
            same = false;
        }
        errors_add(e, d, got[i], want[i], n);
        qn_free(rounded);
    }
    e->cases++;
    e->failed += !same;
    return same;
}

#endif

/* A row of floats to one number, in a fixed order. */
#ifndef QN_BACKEND_CPU_ISA_ROW_FOLDS_H
#define QN_BACKEND_CPU_ISA_ROW_FOLDS_H

#include "backend/cpu/isa/simd.h"

#include <math.h>

QN_INLINE QnVec qn_vec_max(QnVec a, QnVec b)
{
    return qn_vec_pick(a > b, a, b);
}

static inline float qn_row_max(const float *x, int64_t n)
{
    QnVec a = qn_vec_set(-INFINITY), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * VW <= n; i += 4 * VW) {
        a = qn_vec_max(a, qn_vec_load(x + i));
        b = qn_vec_max(b, qn_vec_load(x + i + VW));
        c = qn_vec_max(c, qn_vec_load(x + i + 2 * VW));
        d = qn_vec_max(d, qn_vec_load(x + i + 3 * VW));
    }
    float t[VW];
    qn_vec_store(t, qn_vec_max(qn_vec_max(a, b), qn_vec_max(c, d)));
    for (; i < n; i++)
        t[i % VW] = t[i % VW] > x[i] ? t[i % VW] : x[i];
    for (int w = VW / 2; w > 0; w /= 2) { /* a tree: a chain of lanes would cost more than x */
        for (int l = 0; l < w; l++)
            t[l] = t[l] > t[l + w] ? t[l] : t[l + w];
    }
    return t[0];
}

static inline float qn_row_sum(const float *x, int64_t n)
{
    QnVec a = qn_vec_set(0), b = a;
    int64_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW) {
        a += qn_vec_load(x + i);
        b += qn_vec_load(x + i + VW);
    }
    float s = qn_vec_sum(a + b);
    for (; i < n; i++)
        s += x[i];
    return s;
}

#endif

/* Interpolation along one axis, as resize's reference and kernels share it. */
#ifndef QN_OPS_RESIZE_H
#define QN_OPS_RESIZE_H

#include "ops/attrs.h"

/* The input elements that one output element is made of. */
typedef struct QnTaps {
    int n;
    int64_t at[4];
    double weight[4];
} QnTaps;

/* Output element o of m from an axis of n elements; indices are kept inside. */
QnTaps qn_resize_taps(const QnResizeAttr *a, int64_t o, int64_t m, int64_t n);

#endif

/* Operators on rows of adjacent floats: softmax, cross-entropy, layer and RMS norm. */
#ifndef QN_BACKEND_CPU_ROWS_H
#define QN_BACKEND_CPU_ROWS_H

#include "base/isa_list.h"
#include "base/compiler.h"

typedef struct QnRowFns {
    /* y may be x. */
    void (*softmax)(const float *x, float *y, int64_t n);
    void (*log_softmax)(const float *x, float *y, int64_t n, float *scratch);
    /* Loss of one row against its label, `even` of the target spread over all classes. */
    float (*cross_entropy)(const float *x, int64_t n, int64_t label, float even, float *scratch);
    /* dx may be x. Returns the loss, to the bit what cross_entropy does, if that is wanted. */
    float (*cross_entropy_grad)(const float *x, float *dx, int64_t n, int64_t label, float even,
                                float dy, bool wants_loss);
    /* y = a + b; y may be a or b. */
    void (*add)(const float *a, const float *b, float *y, int64_t n);
    /* y = (x - mean) * rstd * scale + bias; y may be x; scale and bias may be NULL; mean NULL: RMS
     * norm. */
    void (*norm)(const float *x, float *y, const float *scale, const float *bias, int64_t n,
                 float eps, float *mean, float *rstd);
    /* dscale and dbias are added to; scale NULL: neither is touched; dbias NULL: RMS norm, whose
     * mean is 0. more, which needs a scale, is added to dx; NULL: nothing is. dx may be dy, x or
     * more. */
    void (*norm_grad)(const float *dy, const float *x, const float *scale, int64_t n, bool center,
                      float mean, float rstd, const float *more, float *dx, float *dscale,
                      float *dbias);
} QnRowFns;

#define QN_X(name) extern const QnRowFns qn_row_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnRowFns *qn_rows_find(const char *isa);

#endif

/* Reductions: the inner loops, compiled for each instruction set. */
#ifndef QN_BACKEND_CPU_FOLD_H
#define QN_BACKEND_CPU_FOLD_H

#include "base/isa_list.h"
#include "base/compiler.h"

typedef enum QnFoldKind {
    QN_FOLD_SUM,
    QN_FOLD_ABS,    /* sum of |x| */
    QN_FOLD_SQUARE, /* sum of x^2 */
    QN_FOLD_PROD,
    QN_FOLD_MAX, /* NaN if there is one */
    QN_FOLD_MIN,
    QN_FOLD_KINDS
} QnFoldKind;

/* As many elements go into a float at once; their results are joined in double. */
enum { QN_FOLD_RUN = 4096, QN_FOLD_ROWS = 32, QN_FOLD_COLUMNS = 256 };

typedef struct QnFoldFns {
    /* Folds n <= QN_FOLD_RUN adjacent floats, n > 0. */
    float (*run)(QnFoldKind kind, const float *x, int64_t n);
    /* acc[j] = acc[j] folded with x[i * step + j] for i < rows, j < columns. */
    void (*columns)(QnFoldKind kind, float *acc, const float *x, int64_t step, int64_t rows,
                    int64_t columns);
    /* Sum of e^(x - m), and of (x - m)^2, over n <= QN_FOLD_RUN floats. */
    float (*exp_sum)(const float *x, float m, int64_t n);
    float (*off_squares)(const float *x, float m, int64_t n);
} QnFoldFns;

#define QN_X(name) extern const QnFoldFns qn_fold_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnFoldFns *qn_fold_find(const char *isa);

#endif

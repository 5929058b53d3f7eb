/* Samples from .npy arrays: x of (N, …), y of (N) or (N,M). */
#ifndef QN_IO_NPY_SET_H
#define QN_IO_NPY_SET_H

#include "io/dataset.h"

typedef struct QnNpySetOptions {
    const char *x_path; /* numbers of any type; become float */
    const char *y_path; /* NULL: no labels. (N) of whole numbers: classes; else vectors */
    bool regression;    /* whole numbers are values too, not classes */
    float scale;        /* x is multiplied by it; 0: 1 */
    const char *const *class_names; /* NULL: none */
    int64_t class_count;            /* 0: largest label + 1 */
} QnNpySetOptions;

QnStatus qn_npy_set_open(const QnNpySetOptions *options, QnDataset **out);

#endif

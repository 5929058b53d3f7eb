/* Products of rows of 16-bit integers, summed in 32 bits: the core of exact 8-bit products. */
#ifndef QN_BACKEND_CPU_DOTS_H
#define QN_BACKEND_CPU_DOTS_H

#include "base/compiler.h"
#include "base/isa_list.h"

#include <stdint.h>

/* y[i * y_step + j] = sum over t of a[i * k + t] * b[j * k + t]. Elements lie in -255..255, and k
 * is at most QN_DOTS_MOST, so that no sum leaves 32 bits. */
enum { QN_DOTS_MOST = 1 << 15 };
typedef void QnDotsFn(const int16_t *a, int64_t rows, const int16_t *b, int64_t columns, int64_t k,
                      int32_t *y, int64_t y_step);
#define QN_X(name) QnDotsFn qn_dots_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnDotsFn *qn_dots_find(const char *isa);

#endif

/* Element types. f16 and bf16 are storage types: arithmetic on them is done in f32 or wider. */
#ifndef QN_IR_DTYPE_H
#define QN_IR_DTYPE_H

#include "base/status.h"

/* X(NAME, text, bytes) */
#define QN_DTYPE_MAP(X)                                                                            \
    X(F32, "f32", 4)                                                                               \
    X(F16, "f16", 2)                                                                               \
    X(BF16, "bf16", 2)                                                                             \
    X(F64, "f64", 8)                                                                               \
    X(I8, "i8", 1)                                                                                 \
    X(U8, "u8", 1)                                                                                 \
    X(I32, "i32", 4)                                                                               \
    X(I64, "i64", 8)                                                                               \
    X(BOOL, "bool", 1)

typedef enum QnDtype {
#define QN_X(name, text, bytes) QN_DTYPE_##name,
    QN_DTYPE_MAP(QN_X)
#undef QN_X
        QN_DTYPE_COUNT
} QnDtype;

size_t qn_dtype_bytes(QnDtype dtype);
const char *qn_dtype_name(QnDtype dtype);
bool qn_dtype_find(const char *text, QnDtype *dtype); /* false: no such name */
bool qn_dtype_is_float(QnDtype dtype);
bool qn_dtype_is_int(QnDtype dtype); /* i8 u8 i32 i64, not bool */

/* Converts n contiguous elements. To integers: rounds toward zero, saturates, NaN gives 0. To bool:
 * nonzero is 1. i64 beyond 2^53 loses its low bits. */
void qn_dtype_to_f64(QnDtype dtype, const void *src, double *dst, int64_t n);
void qn_dtype_from_f64(QnDtype dtype, const double *src, void *dst, int64_t n);
void qn_dtype_to_f32(QnDtype dtype, const void *src, float *dst, int64_t n);
void qn_dtype_from_f32(QnDtype dtype, const float *src, void *dst, int64_t n);

#endif

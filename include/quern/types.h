/* Element types and shapes. */
#ifndef QUERN_TYPES_H
#define QUERN_TYPES_H

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types: X(NAME, text, bytes). f16 and bf16 are computed in f32 or wider. What follows u64
 * is for storage alone: such tensors are moved, cast and written to files, and other operators
 * refuse them. Elements of the 4-bit types (f4e2m1, i4, u4) take a byte each, in its low bits;
 * where a format of files packs two into a byte, its reader unpacks them. */
#define QN_DTYPE_MAP(X)                                                                            \
    X(F32, "f32", 4)                                                                               \
    X(F16, "f16", 2)                                                                               \
    X(BF16, "bf16", 2)                                                                             \
    X(F64, "f64", 8)                                                                               \
    X(I8, "i8", 1)                                                                                 \
    X(U8, "u8", 1)                                                                                 \
    X(I32, "i32", 4)                                                                               \
    X(I64, "i64", 8)                                                                               \
    X(BOOL, "bool", 1)                                                                             \
    X(I16, "i16", 2)                                                                               \
    X(U16, "u16", 2)                                                                               \
    X(U32, "u32", 4)                                                                               \
    X(U64, "u64", 8)                                                                               \
    X(F8E4M3FN, "f8e4m3fn", 1)                                                                     \
    X(F8E4M3FNUZ, "f8e4m3fnuz", 1)                                                                 \
    X(F8E5M2, "f8e5m2", 1)                                                                         \
    X(F8E5M2FNUZ, "f8e5m2fnuz", 1)                                                                 \
    X(F4E2M1, "f4e2m1", 1)                                                                         \
    X(I4, "i4", 1)                                                                                 \
    X(U4, "u4", 1)

typedef enum QnDtype {
#define QN_X(name, text, bytes) QN_DTYPE_##name,
    QN_DTYPE_MAP(QN_X)
#undef QN_X
        QN_DTYPE_COUNT
} QnDtype;

QN_API size_t qn_dtype_bytes(QnDtype dtype);
QN_API const char *qn_dtype_name(QnDtype dtype);
QN_API bool qn_dtype_find(const char *text, QnDtype *dtype); /* false: no such name */
QN_API bool qn_dtype_is_float(QnDtype dtype);
QN_API bool qn_dtype_is_int(QnDtype dtype);      /* of any width and sign, not bool */
QN_API bool qn_dtype_is_unsigned(QnDtype dtype); /* u4 u8 u16 u32 u64 */
QN_API bool qn_dtype_is_storage(QnDtype dtype);  /* moved and cast, never computed with */

/* Converts n contiguous elements. To integers: rounds toward zero, saturates, NaN gives 0. To bool:
 * nonzero is 1. To floats: to nearest, ties to even; those of 8 and 4 bits saturate, but
 * infinities stay where the type has them. i64 and u64 beyond 2^53 lose their low bits. */
QN_API void qn_dtype_to_f64(QnDtype dtype, const void *src, double *dst, int64_t n);
QN_API void qn_dtype_from_f64(QnDtype dtype, const double *src, void *dst, int64_t n);
QN_API void qn_dtype_to_f32(QnDtype dtype, const void *src, float *dst, int64_t n);
QN_API void qn_dtype_from_f32(QnDtype dtype, const float *src, void *dst, int64_t n);

/* A dim is a count (>= 0) or, when negative, an expression over a graph's symbols. */
#define QN_MAX_RANK 8

typedef int64_t QnDim;

typedef struct QnShape {
    int rank;               /* 0 (a scalar) to QN_MAX_RANK */
    QnDim dim[QN_MAX_RANK]; /* outermost first; unused ones are 0 */
} QnShape;

/* The order in memory of a tensor of rank >= 3 whose axis 1 is channels. Shapes, axes and operators
 * always speak of the logical order (N,C,spatial...); only kernels and the layout pass look here.
 */
typedef enum QnLayout {
    QN_LAYOUT_PLAIN,         /* row-major, last axis fastest */
    QN_LAYOUT_CHANNELS_LAST, /* (N,spatial...,C) in memory */
} QnLayout;

typedef struct QnType {
    QnDtype dtype;
    QnLayout layout;
    QnShape shape;
} QnType;

QN_API bool qn_shape_is_equal(const QnShape *a, const QnShape *b);
QN_API bool qn_shape_is_concrete(const QnShape *s);
/* Elements of a concrete shape (1 for rank 0); -1 if symbolic or if the product overflows. */
QN_API int64_t qn_shape_count(const QnShape *s);
/* Bytes of a concrete type; -1 as above. */
QN_API int64_t qn_type_bytes(const QnType *t);
QN_API bool qn_type_is_equal(const QnType *a, const QnType *b);

/* Row-major strides in elements of a concrete shape. */
QN_API void qn_shape_strides(const QnShape *s, int64_t stride[QN_MAX_RANK]);
QN_API QnShape qn_shape_make(int rank, const QnDim *dims);
#define QN_SHAPE(...)                                                                              \
    ((QnShape){ .rank = (int)(sizeof((QnDim[]){ __VA_ARGS__ }) / sizeof(QnDim)),                   \
                .dim = { __VA_ARGS__ } })

/* "f32[8,1,28,28]" into buf, symbols as "?". Returns buf. */
#define QN_TYPE_TEXT_BYTES 200
QN_API const char *qn_type_text(const QnType *t, char buf[QN_TYPE_TEXT_BYTES]);
QN_API const char *qn_shape_text(const QnShape *s, char buf[QN_TYPE_TEXT_BYTES]);

/* Lists of numbers, as attributes of operators. */
typedef struct QnInts {
    int n;
    int64_t v[2 * QN_MAX_RANK];
} QnInts;

typedef struct QnDims {
    int n;
    QnDim d[QN_MAX_RANK];
} QnDims;

#define QN_INTS(...)                                                                               \
    ((QnInts){ .n = (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                   \
               .v = { __VA_ARGS__ } })
#define QN_ALL_AXES ((QnInts){ .n = 0 })

#ifdef __cplusplus
}
#endif

#endif

/* Shapes. A dim is a count (>= 0) or, when negative, an expression over the graph's symbols. */
#ifndef QN_IR_SHAPE_H
#define QN_IR_SHAPE_H

#include "ir/dtype.h"

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

bool qn_shape_is_equal(const QnShape *a, const QnShape *b);
bool qn_shape_is_concrete(const QnShape *s);
/* Elements of a concrete shape (1 for rank 0); -1 if symbolic or if the product overflows. */
int64_t qn_shape_count(const QnShape *s);
/* Bytes of a concrete type; -1 as above. */
int64_t qn_type_bytes(const QnType *t);
bool qn_type_is_equal(const QnType *a, const QnType *b);

/* Row-major strides in elements of a concrete shape. */
void qn_shape_strides(const QnShape *s, int64_t stride[QN_MAX_RANK]);
/* Strides in elements by logical axis, the layout considered. */
void qn_type_strides(const QnType *t, int64_t stride[QN_MAX_RANK]);
/* Logical axes from slowest to fastest in memory. */
void qn_type_order(const QnType *t, int axis[QN_MAX_RANK]);
/* Negative axes count from the end. false: out of range. */
bool qn_shape_axis(const QnShape *s, int64_t axis, int *out);

QnShape qn_shape_make(int rank, const QnDim *dims);
#define QN_SHAPE(...)                                                                              \
    ((QnShape){ .rank = (int)(sizeof((QnDim[]){ __VA_ARGS__ }) / sizeof(QnDim)),                   \
                .dim = { __VA_ARGS__ } })

/* "f32[8,1,28,28]" into buf, symbols as "?". Returns buf. */
#define QN_TYPE_TEXT_BYTES 200
const char *qn_type_text(const QnType *t, char buf[QN_TYPE_TEXT_BYTES]);
const char *qn_shape_text(const QnShape *s, char buf[QN_TYPE_TEXT_BYTES]);

#endif

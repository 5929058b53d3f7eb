/* Helpers that operator files share: axes, reductions' shapes, index loops of references. */
#ifndef QN_OPS_UTIL_H
#define QN_OPS_UTIL_H

#include "ir/graph.h"

#include <string.h>

/* Axes as builders take them: QN_AXES(0, -1), or QN_ALL_AXES. */
#define QN_AXES QN_INTS

/* Attributes of every reduction. No axes: all of them. */
typedef struct QnReduceAttr {
    QnInts axes;
    bool keepdims;
} QnReduceAttr;

#define QN_REDUCE_FIELDS                                                                           \
    { .name = "axes",                                                                              \
      .kind = QN_ATTR_INTS,                                                                        \
      .offset = offsetof(QnReduceAttr, axes),                                                      \
      .doc = "axes folded away, negative from the end; none: all" },                               \
    {                                                                                              \
        .name = "keepdims", .kind = QN_ATTR_BOOL, .offset = offsetof(QnReduceAttr, keepdims),      \
        .doc = "keep folded axes with length 1"                                                    \
    }

/* Sets bit a of *mask for each axis a; refuses axes out of range or named twice. */
QnStatus qn_util_axes_mask(const char *op, const QnShape *s, const QnInts *axes, unsigned *mask);
/* Output shape of a reduction over the axes. */
QnStatus qn_util_reduce_shape(const char *op, const QnShape *s, const QnReduceAttr *a,
                              QnShape *out);
/* infer of reductions that keep the dtype. */
QnStatus qn_util_reduce_infer(QnInfer *c, const char *op);

/* Shape s with axes of length 1 where the mask is set: what keepdims gives. */
QnShape qn_util_keep_shape(const QnShape *s, unsigned mask);

/* Steps `index` over a concrete shape in row-major order; false after the last. */
bool qn_util_next(const QnShape *s, int64_t index[QN_MAX_RANK]);
/* Offset of `index` under strides. */
int64_t qn_util_offset(int rank, const int64_t *index, const int64_t *stride);

/* Strides of s along the axes of a shape of `rank` that it broadcasts to: 0 where it is repeated.
 */
void qn_util_spread_strides(const QnShape *s, int rank, int64_t out[QN_MAX_RANK]);

/* Elements before, along and after an axis of a concrete shape: x is (outer, n, inner). */
typedef struct QnRows {
    int64_t outer, n, inner;
} QnRows;
QnRows qn_util_rows(const QnShape *s, int axis);

/* infer of operators along one axis that keep shape and dtype and need floats. */
QnStatus qn_util_axis_infer(QnInfer *c, const char *op, int64_t axis);

/* Launches of one work group of QN_GROUP items a row, scalars (n, inner). The folded axes of a
 * reduction must be neighbours once axes of length 1 are left out; others are refused. */
enum { QN_GROUP = 256 };
QnStatus qn_util_rows_call(const char *kernel, const QnShape *s, int64_t axis, QnDeviceCall *c);
QnStatus qn_util_reduce_call(const char *kernel, const QnShape *s, unsigned mask, QnDeviceCall *c);

#endif

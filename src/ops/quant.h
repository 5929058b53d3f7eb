/* What quantisation shares: how scales and zero points line up with the tensor. They are one number
 * for all (a scalar, or one element), one for each place along an axis, or one for each block of
 * `block` elements along the axis; then they have x's rank, and the axis ceil(length / block). */
#ifndef QN_OPS_QUANT_H
#define QN_OPS_QUANT_H

#include "ir/graph.h"

typedef struct QnQuantAttr {
    int64_t axis;
    int64_t block; /* 0: no blocks */
} QnQuantAttr;

#define QN_QUANT_FIELDS(Type, member)                                                              \
    { .name = "axis",                                                                              \
      .kind = QN_ATTR_INT,                                                                         \
      .offset = offsetof(Type, member.axis),                                                       \
      .def = 1,                                                                                    \
      .min = -QN_MAX_RANK,                                                                         \
      .max = QN_MAX_RANK - 1,                                                                      \
      .doc = "along which scales differ, if there are several" },                                  \
    {                                                                                              \
        .name = "block", .kind = QN_ATTR_INT, .offset = offsetof(Type, member.block),              \
        .max = 1 << 30, .doc = "elements along the axis that share a scale; 0: each has its own"   \
    }

/* Whether tensors are quantised to this type: integers of at most 32 bits, floats of 8 or 4. */
bool qn_quant_is_code(QnDtype d);
/* Operand 1 holds scales (floats) that line up with operand 0, operand 2 (optional) zero points of
 * their shape, in the dtype `code`. */
QnStatus qn_quant_check(QnInfer *c, const char *op, const QnQuantAttr *a, QnDtype code);

/* The shapes in which both broadcast: x as `work`, scales and zero points through qn_quant_param.
 */
typedef struct QnQuantView {
    QnShape work;
    QnShape param;
    int axis;
    int64_t block; /* > 0: scales are repeated along the axis, since blocks do not divide it */
} QnQuantView;
QnQuantView qn_quant_view(const QnShape *x, const QnShape *scale, const QnQuantAttr *a);
QnValue *qn_quant_param(QnGraph *g, const QnQuantView *v, QnValue *param);

/* round(v) + zero (may be NULL) in the type of codes; integers saturate, floats of 8 bits, which
 * are not rounded to integers, if asked for. v is a float; zero broadcasts to it. */
QnValue *qn_quant_code(QnGraph *g, QnValue *v, QnValue *zero, QnDtype code, bool saturate);

/* Operand i holds floats, operand i + 1 integers of dtype `code` in the same shape: how operand
 * `what` is quantised. */
QnStatus qn_quant_check_pair(const QnInfer *c, const char *op, const char *what, int i,
                             QnDtype code);

#endif

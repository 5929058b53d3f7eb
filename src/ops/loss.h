/* What losses by class numbers share: x (N,C,...), labels (N,...), results a loss for each label.
 */
#ifndef QN_OPS_LOSS_H
#define QN_OPS_LOSS_H

#include "ir/graph.h"
#include "ops/attrs.h"

/* Operands i and i+1 are x and labels; *row becomes the labels' shape, x without axis 1. */
QnStatus qn_loss_labels(QnInfer *c, const char *op, int i, QnShape *row);

/* Attributes of cross-entropy, its gradient, and both in one. */
typedef struct QnCrossEntropyAttr {
    double smoothing;
    int64_t ignore;
} QnCrossEntropyAttr;

#define QN_CROSS_ENTROPY_FIELDS                                                                    \
    { .name = "label_smoothing",                                                                   \
      .kind = QN_ATTR_FLOAT,                                                                       \
      .offset = offsetof(QnCrossEntropyAttr, smoothing),                                           \
      .min = 0,                                                                                    \
      .max = 1,                                                                                    \
      .doc = "share of the target spread evenly over all classes" },                               \
    {                                                                                              \
        .name = "ignore_index", .kind = QN_ATTR_INT,                                               \
        .offset = offsetof(QnCrossEntropyAttr, ignore), .def = -100,                               \
        .doc = "rows of this label count nothing"                                                  \
    }

/* Launch of a kernel of their text, one work group a row of input number x. */
QnStatus qn_cross_entropy_call(const char *kernel, const QnNode *n, int x, QnDeviceCall *c);

typedef struct QnLossRows { /* row r of n has its classes at base + k * inner, k in [0, classes) */
    int64_t n, classes, inner;
} QnLossRows;
QnLossRows qn_loss_rows(const QnShape *x);
int64_t qn_loss_base(const QnLossRows *r, int64_t row);
/* Refuses a label outside [0, classes) that is not ignored. */
QnStatus qn_loss_check(const char *op, const QnLossRows *r, int64_t row, int64_t label,
                       int64_t ignore);

/* Each row's loss and its weight (0 or 1) folded as asked; MEAN divides by the weights' sum. weight
 * NULL: every row counts. */
QnValue *qn_loss_fold(QnGraph *g, QnValue *loss, QnValue *weight, QnReduction how);

/* Row of an attribute table: how losses of elements fold. */
#define QN_LOSS_REDUCTION(Type)                                                                    \
    {                                                                                              \
        .name = "reduction", .kind = QN_ATTR_ENUM, .offset = offsetof(Type, reduction),            \
        .names = qn_loss_reductions, .doc = "mean or sum over all elements, or none"               \
    }
extern const char *const qn_loss_reductions[];

/* infer of losses of x against a target of the same type. */
QnStatus qn_loss_pair_infer(QnInfer *c, const char *op, int how);

#endif

/* What the files of reductions share. Their attributes start with a QnReduceAttr. */
#ifndef QN_OPS_FOLD_H
#define QN_OPS_FOLD_H

#include "ops/util.h"

/* One output element from the n elements folded into it, in row-major order. */
typedef double (*QnFoldFn)(const double *x, int64_t n, double param);
QnStatus qn_fold_ref(const QnRefArgs *a, const char *op, QnFoldFn f, double param);

/* The same for integers, one element after the other from `start`; QN_FOLD_FIRST: from the first.
 */
#define QN_FOLD_FIRST INT64_MIN
typedef int64_t (*QnWholeFn)(QnDtype dtype, int64_t s, int64_t x);
QnStatus qn_fold_whole_ref(const QnRefArgs *a, const char *op, QnWholeFn f, int64_t start);

/* infer: dtype kept, floats only, and refusing to fold nothing where `empty` is false. */
QnStatus qn_fold_infer(QnInfer *c, const char *op, bool empty);

/* Every input element costs so many flops. */
QnCost qn_fold_cost(const QnNode *n, double flops);

/* Launch of a kernel(y, x, n, inner) with one work group a row; for floats. */
QnStatus qn_fold_rows_call(const QnNode *n, const char *kernel, QnDeviceCall *c);

/* Launch of the two kernels of QN_FOLD; for floats, and bools of reduce_all and
 * reduce_any. */
QnStatus qn_fold_call(const QnNode *n, const char *fold, const char *last, QnDeviceCall *c);

/* A value of output 0's shape, repeated along the folded axes to the input's shape. */
QnValue *qn_fold_spread(QnGraph *g, const QnNode *n, QnValue *v);

/* The lengths of the folded axes: their product is the number of elements folded into each. */
QnDims qn_fold_dims(const QnNode *n);

#endif

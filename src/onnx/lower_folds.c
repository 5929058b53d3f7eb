/* Reductions and means that are compositions of ours. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <math.h>

static QnValue *fold_log_sum(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_log(g, qn_sum(g, x, axes, keepdims));
}

static QnStatus import_log_sum(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, fold_log_sum, true, -INFINITY);
}

static QnValue *fold_sum_square(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_sum(g, qn_mul(g, x, x), axes, keepdims);
}

static QnStatus import_sum_square(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, fold_sum_square, false, 0);
}

/* Of tensors, not of elements. */
static QnStatus import_mean(QnOnnxNode *n)
{
    QnValue *y = qn_onnx_in(n, 0);
    for (int i = 1; i < n->n_in; i++)
        y = qn_add(n->g, y, qn_onnx_in(n, i));
    return qn_onnx_out0(n, qn_div(n->g, y, qn_scalar_like(n->g, y, QN_MAX(n->n_in, 1))));
}

const QnOnnxMap qn_onnx_folds[] = {
    { "ReduceLogSum", NULL, 1, 0, import_log_sum, NULL },
    { "ReduceSumSquare", NULL, 1, 0, import_sum_square, NULL },
    { "Mean", NULL, 1, 0, import_mean, NULL },
    { 0 },
};

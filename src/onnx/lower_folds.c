/* Reductions and means that are compositions of ours. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <math.h>

/* 16-bit floats are computed in f32 from beginning to end, not rounded between the operators. */
static QnValue *widened(QnGraph *g, QnValue *x)
{
    QnDtype dtype = x->type.dtype;
    return dtype == QN_DTYPE_F16 || dtype == QN_DTYPE_BF16 ? qn_cast(g, x, QN_DTYPE_F32) : x;
}

static QnValue *fold_log_sum(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_cast(g, qn_log(g, qn_sum(g, widened(g, x), axes, keepdims)), x->type.dtype);
}

static QnStatus import_log_sum(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, fold_log_sum, true, -INFINITY);
}

static QnValue *fold_sum_square(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    QnValue *wide = widened(g, x);
    return qn_cast(g, qn_sum(g, qn_mul(g, wide, wide), axes, keepdims), x->type.dtype);
}

static QnStatus import_sum_square(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, fold_sum_square, false, 0);
}

/* Of tensors, not of elements. */
static QnStatus import_mean(QnOnnxNode *n)
{
    QnValue *first = qn_onnx_in(n, 0), *y = widened(n->g, first);
    for (int i = 1; i < n->n_in; i++)
        y = qn_add(n->g, y, widened(n->g, qn_onnx_in(n, i)));
    y = qn_div(n->g, y, qn_scalar_like(n->g, y, QN_MAX(n->n_in, 1)));
    return qn_onnx_out0(n, qn_cast(n->g, y, first->type.dtype));
}

const QnOnnxMap qn_onnx_folds[] = {
    { "ReduceLogSum", NULL, 1, 0, import_log_sum, NULL },
    { "ReduceSumSquare", NULL, 1, 0, import_sum_square, NULL },
    { "Mean", NULL, 1, 0, import_mean, NULL },
    { 0 },
};

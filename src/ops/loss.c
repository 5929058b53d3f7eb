#include "ops/loss.h"

#include "ops/norm.h"
#include "ops/ops.h"
#include "ops/util.h"

QnStatus qn_loss_labels(QnInfer *c, const char *op, int i, QnShape *row)
{
    const QnType *x = c->in[i], *labels = c->in[i + 1];
    if (!qn_dtype_is_float(x->dtype) || labels->dtype != QN_DTYPE_I64)
        return qn_fail(QN_EDTYPE, "%s: needs floats and i64 labels, not %s and %s", op,
                       qn_dtype_name(x->dtype), qn_dtype_name(labels->dtype));
    bool fits = x->shape.rank >= 2 && labels->shape.rank == x->shape.rank - 1;
    *row = labels->shape;
    for (int k = 0; fits && k < row->rank; k++) {
        QnDim want = x->shape.dim[k ? k + 1 : 0];
        fits = row->dim[k] == want || row->dim[k] < 0 || want < 0;
    }
    if (!fits) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "%s: scores %s and labels %s; they must be (N,C,...) and (N,...)",
                       op, qn_shape_text(&x->shape, a), qn_shape_text(&labels->shape, b));
    }
    return QN_OK;
}

QnLossRows qn_loss_rows(const QnShape *x)
{
    QnRows r = qn_util_rows(x, 1);
    return (QnLossRows){ r.outer * r.inner, r.n, r.inner };
}

int64_t qn_loss_base(const QnLossRows *r, int64_t row)
{
    return row / r->inner * r->classes * r->inner + row % r->inner;
}

QnStatus qn_loss_check(const char *op, const QnLossRows *r, int64_t row, int64_t label,
                       int64_t ignore)
{
    if (label == ignore || (label >= 0 && label < r->classes))
        return QN_OK;
    return qn_fail(QN_EARG, "%s: label %lld at row %lld; there are classes 0..%lld", op,
                   (long long)label, (long long)row, (long long)r->classes - 1);
}

QnStatus qn_cross_entropy_call(const char *kernel, const QnNode *n, int x, QnDeviceCall *c)
{
    const QnCrossEntropyAttr *a = n->attr;
    QN_TRY(qn_util_rows_call(kernel, &n->in[x]->type.shape, 1, c));
    qn_device_float(c, a->smoothing);
    qn_device_int(c, a->ignore);
    return QN_OK;
}

QnValue *qn_loss_fold(QnGraph *g, QnValue *loss, QnValue *weight, QnReduction how)
{
    if (how == QN_REDUCTION_NONE || qn_value_is_poison(loss))
        return loss;
    QnValue *sum = qn_sum(g, loss, QN_ALL_AXES, false);
    if (how == QN_REDUCTION_SUM)
        return sum;
    if (weight)
        return qn_div(g, sum, qn_sum(g, weight, QN_ALL_AXES, false));
    int64_t n = qn_shape_count(&loss->type.shape);
    if (n >= 0)
        return qn_mul_scalar(g, sum, 1 / (double)n);
    QnValue *ones = qn_full(g, 1, loss->type.dtype, &loss->type.shape);
    return qn_div(g, sum, qn_sum(g, ones, QN_ALL_AXES, false));
}

const char *const qn_loss_reductions[] = { "mean", "sum", "none", NULL };

QnStatus qn_loss_pair_infer(QnInfer *c, const char *op, int how)
{
    QN_TRY(qn_norm_dtypes(c, op, ~0u));
    QN_TRY(qn_norm_shape(c, op, 1, &c->in[0]->shape));
    c->out[0].dtype = qn_norm_stat(c->in[0]->dtype);
    if (how == QN_REDUCTION_NONE)
        c->out[0].shape = c->in[0]->shape;
    return QN_OK;
}

/* Losses by class numbers: SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss. */
#include "onnx/mapping.h"
#include "ops/loss.h"
#include "ops/ops.h"

static QnStatus read_reduction(const QnOnnxNode *n, QnReduction *how)
{
    if (qn_onnx_is(n, "reduction", "none", "mean"))
        *how = QN_REDUCTION_NONE;
    else if (qn_onnx_is(n, "reduction", "sum", "mean"))
        *how = QN_REDUCTION_SUM;
    else if (qn_onnx_is(n, "reduction", "mean", "mean"))
        *how = QN_REDUCTION_MEAN;
    else
        return qn_fail(QN_EFORMAT, "attribute 'reduction' is none of none, mean and sum");
    return QN_OK;
}

/* The weight of each label's class; what is ignored may be no class at all. */
static QnValue *weight_of(QnGraph *g, QnValue *weights, QnValue *labels, int64_t ignore)
{
    QnValue *none = qn_equal(g, labels, qn_scalar_like(g, labels, (double)ignore));
    labels = qn_where(g, none, qn_scalar_like(g, labels, 0), labels);
    return qn_gather(g, weights, labels, 0);
}

/* The loss of log-probabilities. */
static QnValue *loss_of(QnOnnxNode *n, QnValue *logp, QnReduction how)
{
    bool has_ignore = qn_onnx_attr(n, "ignore_index") != NULL;
    int64_t ignore = qn_onnx_int(n, "ignore_index", 0);
    QnValue *labels = qn_onnx_in(n, 1);
    if (!has_ignore)
        ignore = INT64_MIN / 2; /* no label has it */
    if (!qn_onnx_has(n, 2))
        return qn_nll(n->g, logp, labels, ignore, how);
    QnNode *rows = qn_nll_rows(n->g, logp, labels, ignore);
    QnValue *weights = qn_onnx_in(n, 2);
    QnValue *w =
        has_ignore ? weight_of(n->g, weights, labels, ignore) : qn_gather(n->g, weights, labels, 0);
    w = qn_mul(n->g, qn_cast(n->g, w, logp->type.dtype), qn_node_out(n->g, rows, 1));
    return qn_loss_fold(n->g, qn_mul(n->g, qn_node_out(n->g, rows, 0), w), w, how);
}

static QnStatus check_operands(const QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0), *labels = qn_onnx_type(n, 1), *w = qn_onnx_type(n, 2);
    if (!x || !labels || x->shape.rank < 2 || labels->shape.rank != x->shape.rank - 1)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,C,...), input 1 (N,...)");
    if (qn_onnx_has(n, 2) && (!w || w->shape.rank != 1 || w->shape.dim[0] != x->shape.dim[1]))
        return qn_fail(QN_ESHAPE, "input 2 must have a number for each of %lld classes",
                       (long long)x->shape.dim[1]);
    return QN_OK;
}

static QnStatus import_loss(QnOnnxNode *n)
{
    QnReduction how = QN_REDUCTION_MEAN;
    bool is_softmax = n->op[0] == 'S';
    QN_TRY(read_reduction(n, &how));
    QN_TRY(check_operands(n));
    QnValue *logp = qn_onnx_in(n, 0);
    QnDtype t = logp->type.dtype;
    if (is_softmax)
        logp = qn_log_softmax(n->g, logp, 1);
    QN_TRY(qn_onnx_out0(n, qn_cast(n->g, loss_of(n, logp, how), t)));
    return is_softmax && n->n_out > 1 && n->out_used[1] ? qn_onnx_out(n, 1, logp) : QN_OK;
}

const QnOnnxMap qn_onnx_loss[] = {
    { "SoftmaxCrossEntropyLoss", NULL, 12, 0, import_loss, NULL },
    { "NegativeLogLikelihoodLoss", NULL, 12, 0, import_loss, NULL },
    { 0 },
};

/* Normalisations whose ONNX form is several of our operators. */
#include "onnx/mapping.h"
#include "ops/norm.h"
#include "ops/ops.h"

/* ---- BatchNormalization ---------------------------------------------------------------------- */

/* Whether the batch's own statistics are taken: opset 14 says so, 7 to 13 by the number of outputs,
 * 6 by is_test. */
static bool batch_norm_trains(const QnOnnxNode *n)
{
    bool trains = n->training;
    for (int i = 1; n->opset < 14 && n->opset >= 7 && i < n->n_out; i++)
        trains |= n->out_used[i];
    if (n->opset >= 14)
        trains |= qn_onnx_int(n, "training_mode", 0) != 0;
    return n->opset < 7 ? !qn_onnx_int(n, "is_test", 0) : trains;
}

/* momentum * old + (1 - momentum) * now, in the type of old. */
static QnValue *running(QnGraph *g, QnValue *old, QnValue *now, double momentum)
{
    if (qn_value_is_poison(old) || qn_value_is_poison(now))
        return qn_graph_poison(g);
    now = qn_cast(g, qn_mul_scalar(g, now, 1 - momentum), old->type.dtype);
    return qn_add(g, qn_mul_scalar(g, old, momentum), now);
}

static QnStatus batch_norm_train(QnOnnxNode *n, double eps)
{
    double momentum = qn_onnx_float(n, "momentum", 0.9);
    QnValue *x = qn_onnx_in(n, 0);
    QnNode *b = qn_batch_norm(n->g, x, qn_onnx_in(n, 1), qn_onnx_in(n, 2), eps);
    QN_TRY(qn_onnx_out0(n, qn_node_out(n->g, b, 0)));
    QnValue *mean = qn_node_out(n->g, b, 1);
    QnInts axes = qn_norm_view_channel(&x->type.shape).axes;
    QnValue *var = qn_variance(n->g, qn_cast(n->g, x, mean->type.dtype), axes, false, 0);
    QnValue *const out[] = { running(n->g, qn_onnx_in(n, 3), mean, momentum),
                             running(n->g, qn_onnx_in(n, 4), var, momentum), mean, var };
    for (int i = 1; i < n->n_out && i < 5; i++)
        if (n->out_used[i])
            QN_TRY(qn_onnx_out(n, i, out[i - 1]));
    return QN_OK;
}

/* spatial=0: statistics for each element of (C,spatial...), as opsets 1 to 8 have it. */
static QnStatus batch_norm_elements(QnOnnxNode *n, const QnType *x, double eps)
{
    QnValue *p[5];
    QnShape one = x->shape;
    one.dim[0] = 1;
    for (int i = 1; i < 5; i++) {
        const QnType *t = qn_onnx_type(n, i);
        if (!t || qn_shape_count(&t->shape) != qn_shape_count(&one))
            return qn_fail(QN_ESHAPE, "input %d must have a number for each element of a sample",
                           i);
        p[i] = qn_reshape(n->g, qn_onnx_in(n, i), &one);
    }
    QnValue *rstd = qn_rsqrt(n->g, qn_add_scalar(n->g, p[4], eps));
    QnValue *y = qn_mul(n->g, qn_sub(n->g, qn_onnx_in(n, 0), p[3]), qn_mul(n->g, rstd, p[1]));
    return qn_onnx_out0(n, qn_add(n->g, y, p[2]));
}

static QnStatus import_batch_norm(QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0);
    double eps = qn_onnx_float(n, "epsilon", 1e-5);
    if (!x || x->shape.rank < 1)
        return qn_fail(QN_ESHAPE, "input 0 must be a tensor (N,C,...)");
    bool by_element = n->opset < 9 && !qn_onnx_int(n, "spatial", 1);
    if (batch_norm_trains(n))
        return by_element ? qn_onnx_refuse(n, "training with spatial=0") : batch_norm_train(n, eps);
    if (by_element)
        return batch_norm_elements(n, x, eps);
    QnValue *v = qn_onnx_in(n, 0);
    if (x->shape.rank == 1) /* (N): one channel */
        v = qn_unsqueeze(n->g, v, 1);
    v = qn_batch_norm_inference(n->g, v, qn_onnx_in(n, 1), qn_onnx_in(n, 2), qn_onnx_in(n, 3),
                                qn_onnx_in(n, 4), eps);
    return qn_onnx_out0(n, x->shape.rank == 1 ? qn_squeeze(n->g, v, 1) : v);
}

const QnOnnxMap qn_onnx_norm[] = {
    { "BatchNormalization", NULL, 1, 0, import_batch_norm, NULL },
    { 0 },
};

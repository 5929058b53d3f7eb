/* Normalisations whose ONNX form is several of our operators. */
#include "onnx/mapping.h"
#include "ops/norm.h"
#include "ops/ops.h"

#include <string.h>

/* ---- BatchNormalization ---------------------------------------------------------------------- */

/* Statistics that a run must not change. */
static bool batch_norm_is_frozen(const QnOnnxNode *n)
{
    return qn_onnx_has(n, 3) && qn_onnx_has(n, 4) && n->in[3]->is_frozen && n->in[4]->is_frozen;
}

/* Whether the batch's own statistics are taken: opset 14 says so, 7 to 13 by the number of outputs,
 * 6 by is_test. */
static bool batch_norm_trains(const QnOnnxNode *n)
{
    bool trains = n->training;
    if (n->inference || batch_norm_is_frozen(n))
        return false;
    for (int i = 1; n->opset < 14 && n->opset >= 7 && i < n->n_out; i++)
        trains |= n->out_used[i];
    if (n->opset >= 14)
        trains |= qn_onnx_int(n, "training_mode", 0) != 0;
    return n->opset < 7 ? trains || !qn_onnx_int(n, "is_test", 0) : trains;
}

/* momentum * old + (1 - momentum) * now, in the type of old. */
static QnValue *running(QnGraph *g, QnValue *old, QnValue *now, double momentum)
{
    if (qn_value_is_poison(old) || qn_value_is_poison(now))
        return qn_graph_poison(g);
    now = qn_cast(g, qn_mul_scalar(g, now, 1 - momentum), old->type.dtype);
    return qn_add(g, qn_mul_scalar(g, old, momentum), now);
}

/* The biased variance, of a node that gives the unbiased one. */
static QnValue *batch_norm_variance(QnGraph *g, QnNode *b, const QnValue *x)
{
    if (!b || qn_value_is_poison(x))
        return qn_graph_poison(g);
    const QnShape *s = &x->type.shape;
    double count = (double)qn_shape_count(s) / (double)QN_MAX(s->dim[1], 1);
    return qn_mul_scalar(g, qn_node_out(g, b, 3), count > 1 ? (count - 1) / count : 1);
}

/* Where the old statistics are states, they become the new ones. */
static QnStatus batch_norm_train(QnOnnxNode *n, double eps)
{
    double momentum = qn_onnx_float(n, "momentum", 0.9);
    QnDtype t = qn_onnx_type(n, 0)->dtype;
    const QnType *scale = qn_onnx_type(n, 1);
    QnValue *x = qn_onnx_in(n, 0);
    if (scale && scale->dtype != t)
        x = qn_cast(n->g, x, scale->dtype);
    QnNode *b = qn_batch_norm(n->g, x, qn_onnx_in(n, 1), qn_onnx_in(n, 2), eps);
    QN_TRY(qn_onnx_out0(n, qn_cast(n->g, qn_node_out(n->g, b, 0), t)));
    QnValue *mean = qn_node_out(n->g, b, 1);
    QnValue *var = batch_norm_variance(n->g, b, x);
    QnValue *const out[] = { running(n->g, qn_onnx_in(n, 3), mean, momentum),
                             running(n->g, qn_onnx_in(n, 4), var, momentum), mean, var };
    for (int i = 0; i < 2; i++)
        if (n->training && qn_onnx_has(n, 3 + i) && n->in[3 + i]->is_state &&
            !n->in[3 + i]->is_frozen)
            qn_assign(n->g, qn_onnx_in(n, 3 + i), out[i]);
    for (int i = 1; i < n->n_out && i < 5; i++)
        if (n->out_used[i])
            QN_TRY(qn_onnx_out(n, i, out[i - 1]));
    return qn_graph_check(n->g);
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
    for (int i = 3; i < 5; i++)
        if (qn_onnx_has(n, i))
            n->in[i]->is_statistic = true;
    bool by_element = n->opset < 9 && !qn_onnx_int(n, "spatial", 1);
    if (batch_norm_trains(n))
        return by_element ? qn_onnx_refuse(n, "training with spatial=0") : batch_norm_train(n, eps);
    if (by_element)
        return batch_norm_elements(n, x, eps);
    QnValue *v = qn_onnx_in(n, 0);
    if (x->shape.rank == 1) /* (N): one channel */
        v = qn_unsqueeze(n->g, v, 1);
    QnDtype t = x->dtype;
    int rank = x->shape.rank;
    const QnType *scale = qn_onnx_type(n, 1);
    if (scale && scale->dtype != t) /* since opset 14 they may differ */
        v = qn_cast(n->g, v, scale->dtype);
    v = qn_batch_norm_inference(n->g, v, qn_onnx_in(n, 1), qn_onnx_in(n, 2), qn_onnx_in(n, 3),
                                qn_onnx_in(n, 4), eps);
    for (int i = 1; i < 3; i++) /* what training would change stays as it is */
        if (i < n->n_out && n->out_used[i] && qn_onnx_has(n, 2 + i))
            QN_TRY(qn_onnx_out_item(n, i, n->in[2 + i]));
    return qn_onnx_out0(n, qn_cast(n->g, rank == 1 ? qn_squeeze(n->g, v, 1) : v, t));
}

/* ---- LayerNormalization, RMSNormalization ---------------------------------------------------- */

/* Whether operand i has just the axes [from, rank) of x, as our operators want their parameters. */
static bool spans(const QnOnnxNode *n, int i, const QnShape *x, int from)
{
    const QnType *t = qn_onnx_type(n, i);
    bool same = t && t->shape.rank == x->rank - from;
    for (int k = 0; same && k < t->shape.rank; k++)
        same = t->shape.dim[k] == x->dim[from + k];
    return same;
}

/* Mean and inverse deviation have x's rank in ONNX. */
static QnStatus out_stat(QnOnnxNode *n, int i, QnValue *v, const QnShape *x, int axis)
{
    QnShape s = *x;
    for (int k = axis; k < s.rank; k++)
        s.dim[k] = 1;
    return i < n->n_out && n->out_used[i] ? qn_onnx_out(n, i, qn_reshape(n->g, v, &s)) : QN_OK;
}

/* The type of mean and inverse deviation; they are computed in f32 or wider. */
static QnStatus stash_type(const QnOnnxNode *n, QnDtype *out)
{
    int64_t number = qn_onnx_int(n, "stash_type", 1);
    return qn_onnx_dtype(number, out) && qn_dtype_is_float(*out)
               ? QN_OK
               : qn_fail(QN_EFORMAT, "attribute 'stash_type' is %lld", (long long)number);
}

static QnStatus import_layer_norm(QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0);
    double eps = qn_onnx_float(n, "epsilon", 1e-5);
    int axis;
    QnDtype stat;
    if (!x)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", -1), x->shape.rank, &axis));
    QN_TRY(stash_type(n, &stat));
    bool rms = !strcmp(n->op, "RMSNormalization"), has_bias = qn_onnx_has(n, 2);
    bool inside = spans(n, 1, &x->shape, axis) && (!has_bias || spans(n, 2, &x->shape, axis));
    QnValue *scale = qn_onnx_in(n, 1), *bias = qn_onnx_in_or(n, 2, NULL), *v = qn_onnx_in(n, 0);
    QnNode *node =
        rms ? qn_rms_norm_node(n->g, v, inside ? scale : NULL, axis, eps)
            : qn_layer_norm_node(n->g, v, inside ? scale : NULL, inside ? bias : NULL, axis, eps);
    QnValue *y = qn_node_out(n->g, node, 0);
    if (!inside)
        y = qn_mul(n->g, y, scale);
    if (!inside && bias)
        y = qn_add(n->g, y, bias);
    QN_TRY(qn_onnx_out0(n, y));
    if (rms)
        return QN_OK;
    QN_TRY(out_stat(n, 1, qn_cast(n->g, qn_node_out(n->g, node, 1), stat), &x->shape, axis));
    return out_stat(n, 2, qn_cast(n->g, qn_node_out(n->g, node, 2), stat), &x->shape, axis);
}

/* ---- GroupNormalization ---------------------------------------------------------------------- */

/* Opset 18 has a scale and a bias for each group, 21 for each channel. */
static QnValue *for_channels(QnOnnxNode *n, int i, int64_t groups, int64_t channels)
{
    const QnType *t = qn_onnx_type(n, i);
    QnValue *v = qn_onnx_in(n, i);
    if (n->opset >= 21 || !t || qn_shape_count(&t->shape) != groups || groups == channels)
        return v;
    v = qn_expand(n->g, qn_reshape(n->g, v, &QN_SHAPE(groups, 1)),
                  &QN_SHAPE(groups, channels / groups));
    return qn_reshape(n->g, v, &QN_SHAPE(channels));
}

static QnStatus import_group_norm(QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0);
    int64_t groups = qn_onnx_int(n, "num_groups", 0);
    if (!x || x->shape.rank < 2 || groups < 1 || x->shape.dim[1] % groups)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,C,...) with C in %lld groups",
                       (long long)groups);
    int64_t channels = x->shape.dim[1];
    return qn_onnx_out0(n,
                        qn_group_norm(n->g, qn_onnx_in(n, 0), for_channels(n, 1, groups, channels),
                                      for_channels(n, 2, groups, channels), groups,
                                      qn_onnx_float(n, "epsilon", 1e-5)));
}

/* ---- GlobalLpPool ---------------------------------------------------------------------------- */

static QnStatus import_global_lp_pool(QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0);
    const QnOnnxAttr *a = qn_onnx_attr(n, "p"); /* a float in opset 1 */
    double p = a && a->kind == QN_ONNX_FLOAT ? (double)a->f : (double)qn_onnx_int(n, "p", 2);
    QnInts axes = { .v = { 2, 3, 4, 5, 6, 7 } };
    if (!x || x->shape.rank < 3 || !(p >= 1))
        return qn_fail(QN_ESHAPE, "input 0 must be (N,C,spatial...), p at least 1");
    axes.n = x->shape.rank - 2;
    QnValue *v = qn_onnx_in(n, 0);
    if (p == 1)
        return qn_onnx_out0(n, qn_norm_l1(n->g, v, axes, true));
    if (p == 2)
        return qn_onnx_out0(n, qn_norm_l2(n->g, v, axes, true));
    v = qn_pow(n->g, qn_abs(n->g, v), qn_scalar_like(n->g, v, p));
    v = qn_sum(n->g, v, axes, true);
    return qn_onnx_out0(n, qn_pow(n->g, v, qn_scalar_like(n->g, v, 1 / p)));
}

const QnOnnxMap qn_onnx_norm[] = {
    { "BatchNormalization", NULL, 1, 0, import_batch_norm, NULL },
    { "LayerNormalization", NULL, 17, 0, import_layer_norm, NULL },
    { "RMSNormalization", NULL, 23, 0, import_layer_norm, NULL },
    { "GroupNormalization", NULL, 18, 0, import_group_norm, NULL },
    { "GlobalLpPool", NULL, 1, 0, import_global_lp_pool, NULL },
    { 0 },
};

/* Gradient clipping, built from maps and sums: nothing here is an operator of its own. */
#include "ops/dialect.h"

#ifdef QN_HOST

/* The L2 norm of all tensors together, f32 or wider. */
QN_API QnValue *qn_global_norm(QnGraph *g, QnValue *const *x, int n)
{
    QnValue *total = NULL;
    for (int i = 0; i < n; i++) {
        if (!x[i] || qn_value_is_poison(x[i]))
            return qn_graph_poison(g);
        QnDtype t = x[i]->type.dtype == QN_DTYPE_F64 ? QN_DTYPE_F64 : QN_DTYPE_F32;
        QnValue *s = qn_sum(g, qn_square(g, qn_cast(g, x[i], t)), (QnInts){ 0 }, false);
        total = total ? qn_add(g, total, qn_cast(g, s, total->type.dtype)) : s;
    }
    return total ? qn_sqrt(g, total) : qn_full(g, 0, QN_DTYPE_F32, &(QnShape){ 0 });
}

/* Scales all tensors by min(1, max_norm / (norm + 1e-6)), norm that of all together (PyTorch's
 * clip_grad_norm_); out may be x. Returns the norm before. */
QN_API QnValue *qn_clip_global_norm(QnGraph *g, QnValue *const *x, int n, double max_norm,
                                    QnValue **out)
{
    QnValue *norm = qn_global_norm(g, x, n);
    QnValue *ratio = qn_mul_scalar(g, qn_reciprocal(g, qn_add_scalar(g, norm, 1e-6)), max_norm);
    if (qn_value_is_poison(ratio))
        return ratio;
    ratio = qn_minimum(g, ratio, qn_scalar_like(g, ratio, 1));
    for (int i = 0; i < n; i++)
        out[i] = qn_mul(g, x[i], qn_cast(g, ratio, x[i]->type.dtype));
    return norm;
}

/* Limits every element to [-limit, limit]; out may be x. */
QN_API void qn_clip_values(QnGraph *g, QnValue *const *x, int n, double limit, QnValue **out)
{
    for (int i = 0; i < n; i++)
        out[i] = qn_clip(g, x[i], -limit, limit);
}

#endif

#include "ops/f8.h"

#include "base/float8.h"
#include "ops/ops.h"
#include "ops/util.h"

static bool is_f8(QnDtype dtype)
{
    return dtype == QN_DTYPE_F8E4M3FN || dtype == QN_DTYPE_F8E5M2;
}

double qn_f8_most(QnDtype dtype)
{
    return qn_float8_max(dtype == QN_DTYPE_F8E5M2 ? QN_FLOAT8_E5M2 : QN_FLOAT8_E4M3FN);
}

QnStatus qn_f8_check(const char *op, QnDtype dtype, const QnType *x)
{
    if (!is_f8(dtype))
        return qn_fail(QN_EDTYPE, "%s: to f8e4m3fn or f8e5m2, not %s", op, qn_dtype_name(dtype));
    if (x->dtype != QN_DTYPE_F32 && x->dtype != QN_DTYPE_BF16)
        return qn_fail(QN_EDTYPE, "%s: from f32 or bf16, not %s", op, qn_dtype_name(x->dtype));
    for (int i = 0; i < x->shape.rank; i++) {
        if (x->shape.dim[i] == 0)
            return qn_fail(QN_ESHAPE, "%s: axis %d has length 0; nothing to scale by", op, i);
    }
    return QN_OK;
}

QnStatus qn_f8_check_history(const char *op, const QnType *history)
{
    bool row = history->dtype == QN_DTYPE_F32 && history->shape.rank == 1;
    if (!row || history->shape.dim[0] <= 0)
        return qn_fail(QN_EDTYPE, "%s: a history is f32 of one axis, of a known length above 0",
                       op);
    return QN_OK;
}

QnValue *qn_f8_largest(QnGraph *g, QnValue *x)
{
    return qn_cast(g, qn_reduce_max(g, qn_abs(g, x), QN_ALL_AXES, false), QN_DTYPE_F32);
}

QnValue *qn_f8_is_sound(QnGraph *g, QnValue *amax)
{
    return qn_less(g, amax, qn_scalar_like(g, amax, 1e38));
}

QnF8Operand qn_f8_operand(QnGraph *g, QnValue *x, const char *state, QnDtype to, bool update)
{
    QnValue *history = NULL;
    if (state)
        history = qn_state(g, &(QnStateAttr){ .name = state, .dims = { 1, { QN_F8_HISTORY } } });
    QnNode *scale = qn_scale_f8(g, x, history, to);
    QnValue *times = qn_node_out(g, scale, 0);
    bool moves = history && update;
    QnNode *q = qn_quantize_f8(g, x, times, moves ? history : NULL, to, true, true);
    if (moves)
        qn_assign(g, history, qn_node_out(g, q, 2));
    return (QnF8Operand){ .straight = qn_node_out(g, q, 0),
                          .turned = qn_node_out(g, q, 1),
                          .inverse = qn_node_out(g, scale, 1) };
}

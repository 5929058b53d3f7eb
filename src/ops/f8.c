#include "ops/f8.h"

#include "base/float8.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>

/* The history moves by one; an infinity or NaN does not enter it. */
static QnValue *delayed(QnGraph *g, QnValue *amax, const char *state, bool update)
{
    QnStateAttr a = { .name = state, .dims = { 1, { QN_F8_HISTORY } } };
    QnValue *history = qn_state(g, &a), *seen = qn_reduce_max(g, history, QN_AXES(0), false);
    QnValue *most = qn_scalar_like(g, amax, 1e38), *zero = qn_scalar_like(g, amax, 0);
    QnValue *now = qn_where(g, qn_less(g, amax, most), amax, seen);
    if (update) {
        QnValue *rest = qn_slice_axis(g, history, 0, 0, QN_F8_HISTORY - 1);
        QnValue *moved[] = { qn_reshape(g, now, &QN_SHAPE(1)), rest };
        qn_assign(g, history, qn_concat(g, moved, 2, 0));
    }
    return qn_where(g, qn_greater(g, seen, zero), seen, now);
}

QnValue *qn_f8_scale(QnGraph *g, QnValue *x, const char *state, QnDtype to, bool update)
{
    double most = to == QN_DTYPE_F8E5M2 ? 57344 : 448;
    QnValue *amax = qn_reduce_max(g, qn_abs(g, x), QN_ALL_AXES, false);
    amax = qn_cast(g, amax, QN_DTYPE_F32);
    if (state)
        amax = delayed(g, amax, state, update);
    QnValue *least = qn_scalar_like(g, amax, 1e-30), *one = qn_scalar_like(g, amax, most);
    amax = qn_where(g, qn_greater(g, amax, least), amax, one); /* nothing there: a scale of 1 */
    QnValue *octaves = qn_mul_scalar(g, qn_log(g, qn_div(g, one, amax)), 1 / log(2));
    octaves = qn_clip(g, qn_floor(g, octaves), -60, 60);
    return qn_pow(g, qn_scalar_like(g, octaves, 2), octaves);
}

QnValue *qn_f8_round(QnGraph *g, QnValue *x, QnValue *scale, QnDtype to)
{
    if (qn_value_is_poison(x))
        return x;
    return qn_cast(g, qn_mul(g, x, qn_cast(g, scale, x->type.dtype)), to);
}

#include "ops/scatter.h"
#include "ops/whole.h"

#include <math.h>

const char *const qn_scatter_names[] = { "none", "add", "mul", "max", "min", NULL };

static double combine(int reduction, double y, double u)
{
    switch (reduction) {
    case QN_SCATTER_ADD: return y + u;
    case QN_SCATTER_MUL: return y * u;
    case QN_SCATTER_MAX: return fmax(y, u);
    case QN_SCATTER_MIN: return fmin(y, u);
    default: return u;
    }
}

static int64_t combine_whole(QnDtype dtype, int reduction, int64_t y, int64_t u)
{
    switch (reduction) {
    case QN_SCATTER_ADD: return qn_whole_add(y, u);
    case QN_SCATTER_MUL: return qn_whole_mul(y, u);
    case QN_SCATTER_MAX: return qn_whole_less(dtype, y, u) ? u : y;
    case QN_SCATTER_MIN: return qn_whole_less(dtype, u, y) ? u : y;
    default: return u;
    }
}

void qn_scatter_at(const QnRefArgs *a, int reduction, int64_t at, int64_t from)
{
    double *y = &a->out[0][at];
    QnDtype dtype = a->in_type[0]->dtype;
    if (qn_whole_is(a))
        qn_whole_put(a, 0, at,
                     combine_whole(dtype, reduction, qn_dtype_whole_of(dtype, *y, a->i64_bits),
                                   qn_whole_at(a, 2, from)));
    else
        *y = combine(reduction, *y, a->in[2][from]);
}

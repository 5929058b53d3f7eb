#include "ops/update.h"

#include <math.h>
#include <string.h>

QnStatus qn_update_infer(QnInfer *c, const char *op, int n_moments, bool has_step)
{
    const QnType *p = c->in[0], *lr = c->in[n_moments + 2];
    if (!qn_dtype_is_float(p->dtype))
        return qn_fail(QN_EDTYPE, "%s: the parameter is %s, it must be of a float type", op,
                       qn_dtype_name(p->dtype));
    for (int i = 1; i <= n_moments + 1; i++) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        if (c->in[i]->dtype != p->dtype || !qn_shape_is_equal(&c->in[i]->shape, &p->shape))
            return qn_fail(QN_ESHAPE, "%s: the parameter is %s, its %s %s; they must agree", op,
                           qn_type_text(p, a), i <= n_moments ? "moment" : "gradient",
                           qn_type_text(c->in[i], b));
    }
    if (lr->dtype != QN_DTYPE_F32 || lr->shape.rank)
        return qn_fail(QN_EDTYPE, "%s: lr must be an f32 scalar, not %s of rank %d", op,
                       qn_dtype_name(lr->dtype), lr->shape.rank);
    if (has_step &&
        (c->in[n_moments + 3]->dtype != QN_DTYPE_I64 || c->in[n_moments + 3]->shape.rank))
        return qn_fail(QN_EDTYPE, "%s: step must be an i64 scalar, not %s of rank %d", op,
                       qn_dtype_name(c->in[n_moments + 3]->dtype),
                       c->in[n_moments + 3]->shape.rank);
    c->n_out = n_moments + 1;
    for (int i = 0; i <= n_moments; i++)
        c->out[i] = *p;
    return QN_OK;
}

QnCost qn_update_cost(const QnNode *n, double flops)
{
    QnCost c = { .flops = flops * (double)qn_shape_count(&n->in[0]->type.shape) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

bool qn_update_is_left_out(const QnRefArgs *r, int lr)
{
    if (!(r->in[lr][0] < 0))
        return false;
    for (int i = 0; i < r->n_out; i++)
        memcpy(r->out[i], r->in[i], (size_t)qn_shape_count(&r->in_type[i]->shape) * sizeof(double));
    return true;
}

void qn_update_call(const QnNode *n, const char *kernel, const char *at, QnDeviceCall *c)
{
    int64_t count = qn_shape_count(&n->in[0]->type.shape);
    *c = (QnDeviceCall){ .kernel = kernel, .at = at, .n_groups = (count + 3) / 4 };
    qn_device_int(c, count);
}

double qn_update_log(double beta)
{
    return log(beta);
}

QnNode *qn_update_emit(QnGraph *g, const QnOp *op, const void *attr, QnValue *p,
                       QnValue *const *moments, int n_moments, QnValue *grad, QnValue *lr,
                       QnValue *step)
{
    QnValue *in[8] = { p };
    int n = 1;
    for (int i = 0; i < n_moments; i++)
        in[n++] = moments[i];
    in[n++] = grad;
    in[n++] = lr;
    if (step)
        in[n++] = step;
    return qn_emit(g, op, attr, in, n);
}

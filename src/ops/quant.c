#include "ops/quant.h"

#include "ops/ops.h"
#include "ops/region.h"

bool qn_quant_is_code(QnDtype d)
{
    return qn_dtype_is_float(d) ? qn_dtype_bytes(d) == 1
                                : qn_dtype_is_int(d) && qn_dtype_bytes(d) <= 4;
}

static bool is_single(const QnShape *s)
{
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] != 1)
            return false;
    }
    return s->rank <= 1;
}

/* Scales and zero points: of one shape, or one number each in whatever shape. */
static bool is_paired(const QnShape *s, const QnShape *z)
{
    bool fits = z->rank == s->rank;
    for (int i = 0; fits && i < z->rank; i++)
        fits = qn_region_may_equal(z->dim[i], s->dim[i]);
    return fits || (is_single(s) && is_single(z));
}

static QnStatus check_blocks(const char *op, const QnShape *x, const QnShape *s, int axis,
                             int64_t block)
{
    char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
    if (x->dim[axis] < 0)
        return qn_fail(QN_EUNSUPPORTED, "%s: axis %d is symbolic; blocks need its length", op,
                       axis);
    bool fits = s->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++) {
        int64_t n = x->dim[i], blocks = n / block + (n % block != 0);
        fits = i == axis ? s->dim[i] == blocks : qn_region_may_equal(s->dim[i], n);
    }
    return fits ? QN_OK
                : qn_fail(QN_ESHAPE,
                          "%s: scales are %s for x %s in blocks of %lld along axis %d; give one "
                          "for each block",
                          op, qn_shape_text(s, p), qn_shape_text(x, q), (long long)block, axis);
}

static QnStatus check_shape(const char *op, const QnShape *x, const QnShape *s,
                            const QnQuantAttr *a)
{
    char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
    int axis;
    if (a->block == 0 && is_single(s))
        return QN_OK;
    if (!qn_shape_axis(x, a->axis, &axis))
        return qn_fail(QN_EARG, "%s: axis %lld is out of range for rank %d", op, (long long)a->axis,
                       x->rank);
    if (a->block > 0)
        return check_blocks(op, x, s, axis, a->block);
    if (s->rank != 1 || !qn_region_may_equal(s->dim[0], x->dim[axis]))
        return qn_fail(QN_ESHAPE,
                       "%s: scales are %s for x %s; give one, or one for each place along axis %d",
                       op, qn_shape_text(s, p), qn_shape_text(x, q), axis);
    return QN_OK;
}

QnStatus qn_quant_check(QnInfer *c, const char *op, const QnQuantAttr *a, QnDtype code)
{
    const QnType *s = c->in[1];
    if (!qn_dtype_is_float(s->dtype) || qn_dtype_bytes(s->dtype) < 2)
        return qn_fail(QN_EDTYPE, "%s: scales are %s; they must be floats of 16 bits or more", op,
                       qn_dtype_name(s->dtype));
    QN_TRY(check_shape(op, &c->in[0]->shape, &s->shape, a));
    if (c->n_in < 3 || c->in[2]->dtype == QN_DTYPE_COUNT)
        return QN_OK;
    const QnType *z = c->in[2];
    if (z->dtype != code)
        return qn_fail(QN_EDTYPE, "%s: zero points are %s, quantised numbers %s; they must agree",
                       op, qn_dtype_name(z->dtype), qn_dtype_name(code));
    if (!is_paired(&s->shape, &z->shape)) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "%s: zero points are %s, scales %s; they must agree", op,
                       qn_shape_text(&z->shape, p), qn_shape_text(&s->shape, q));
    }
    return QN_OK;
}

QnStatus qn_quant_check_pair(const QnInfer *c, const char *op, const char *what, int i,
                             QnDtype code)
{
    const QnType *s = c->in[i], *z = c->in[i + 1];
    if (!qn_dtype_is_float(s->dtype) || s->dtype != c->in[1]->dtype)
        return qn_fail(QN_EDTYPE, "%s: the scale of %s is %s; all scales must be of one float type",
                       op, what, qn_dtype_name(s->dtype));
    if (z->dtype != code)
        return qn_fail(QN_EDTYPE, "%s: the zero point of %s is %s; it must be %s", op, what,
                       qn_dtype_name(z->dtype), qn_dtype_name(code));
    if (!is_paired(&s->shape, &z->shape)) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE,
                       "%s: of %s the zero points are %s, the scales %s; they must agree", op, what,
                       qn_shape_text(&z->shape, p), qn_shape_text(&s->shape, q));
    }
    return QN_OK;
}

QnQuantView qn_quant_view(const QnShape *x, const QnShape *scale, const QnQuantAttr *a)
{
    QnQuantView v = { .work = *x };
    if (a->block == 0 && is_single(scale))
        return v; /* param: a scalar */
    qn_shape_axis(x, a->axis, &v.axis);
    if (a->block == 0) {
        v.param.rank = x->rank;
        for (int i = 0; i < x->rank; i++)
            v.param.dim[i] = i == v.axis ? x->dim[i] : 1;
        return v;
    }
    v.param = *scale;
    if (x->dim[v.axis] % a->block || x->rank == QN_MAX_RANK) {
        v.block = a->block;
        return v;
    }
    v.work.rank = v.param.rank = x->rank + 1;
    for (int i = x->rank; i > v.axis + 1; i--) {
        v.work.dim[i] = x->dim[i - 1];
        v.param.dim[i] = scale->dim[i - 1];
    }
    v.work.dim[v.axis] = scale->dim[v.axis];
    v.work.dim[v.axis + 1] = a->block;
    v.param.dim[v.axis + 1] = 1;
    return v;
}

QnValue *qn_quant_param(QnGraph *g, const QnQuantView *v, QnValue *param)
{
    if (!v->block)
        return qn_reshape(g, param, &v->param);
    QnValue *i = qn_arange(g, 0, 1, v->work.dim[v->axis], QN_DTYPE_I64);
    QnValue *block = qn_full(g, (double)v->block, QN_DTYPE_I64, &(QnShape){ 0 });
    return qn_gather(g, param, qn_div(g, i, block), v->axis);
}

QnValue *qn_quant_code(QnGraph *g, QnValue *v, QnValue *zero, QnDtype code, bool saturate)
{
    if (!qn_dtype_is_float(code))
        v = qn_round(g, v);
    if (zero)
        v = qn_add(g, v, qn_cast(g, zero, qn_value_type(v)->dtype));
    return qn_cast_as(g, v, code, saturate);
}

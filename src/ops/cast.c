/* y = x in another dtype. Floats round to nearest even; to integers toward zero, saturating, NaN
 * to 0; to bool, nonzero is 1. The rounding happens where the result is stored. */
#include "ops/dialect.h"

QN_SCALAR float cast_f(float x)
{
    return x;
}

QN_SCALAR qn_long cast_i(qn_long x)
{
    return x;
}
QN_MAP1(cast)

#ifdef QN_HOST

typedef struct Attr {
    QnDtype dtype;
} Attr;

static const QnAttrField cast_fields[] = {
    { .name = "dtype", .kind = QN_ATTR_DTYPE, .offset = offsetof(Attr, dtype), .doc = "of y" },
};

static QnStatus cast_infer(QnInfer *c)
{
    c->out[0].dtype = ((const Attr *)c->attr)->dtype;
    c->out[0].shape = c->in[0]->shape;
    return QN_OK;
}

static double cast_ref(const double *x, const double *param)
{
    (void)param;
    return x[0];
}

static int64_t cast_ref_int(const int64_t *x)
{
    return cast_i(x[0]);
}

static void cast_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnDtype from = n->in[0]->type.dtype;
    if (qn_dtype_is_float(from) && qn_dtype_is_float(n->out[0].type.dtype))
        dx[0] = qn_cast(g, dy[0], from);
}

static const QnSample cast_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ QN_DTYPE_F32 } },
    { .in = { { 1, { 130 } } }, .n_in = 1, .attr = &(Attr){ QN_DTYPE_F64 }, .lo = -9, .hi = 9 },
    { .in = { { 2, { 5, 3 }, .keep_off = 0.01, .kink = 1 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_I32 },
      .lo = -9,
      .hi = 9,
      .flags = QN_SAMPLE_NO_GRAD }, /* steps */
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I64, .lo = -300, .hi = 300 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_U8 } },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_F32 } },
};

/* x itself if it has the dtype already. */
QN_API QnValue *qn_cast(QnGraph *g, QnValue *x, QnDtype dtype)
{
    if (!qn_value_is_poison(x) && x->type.dtype == dtype)
        return x;
    return qn_emit1(g, &qn_op_cast, &(Attr){ dtype }, x);
}

const QnOp qn_op_cast = {
    .name = "cast",
    .version = 1,
    .doc = "x in another dtype",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, cast_fields),
    .infer = cast_infer,
    .grad = cast_grad,
    .map = &(const QnMapInfo){ .ref = cast_ref, .ref_int = cast_ref_int, .flops = 1 },
    .device = QN_TEXT(cast),
    QN_SAMPLES(cast_samples),
};
#endif

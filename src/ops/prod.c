/* y = product of x over axes. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR float prod_take(float s, float x)
{
    return s * x;
}

QN_SCALAR float prod_join(float a, float b)
{
    return a * b;
}

QN_SCALAR float prod_end(float s, qn_long n)
{
    return s;
}

QN_FOLD(prod, QN_T, qn_load, qn_store, float, 1.0f)
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"
#include "ops/whole.h"

static const QnAttrField prod_fields[] = { QN_REDUCE_FIELDS };

static QnStatus prod_infer(QnInfer *c)
{
    if (c->in[0]->dtype == QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE, "prod: a bool operand; use reduce_all, or cast it to a number");
    return qn_util_reduce_infer(c, "prod");
}

static QnCost prod_cost(const QnNode *n)
{
    return qn_fold_cost(n, 1);
}

static double prod_of(const double *x, int64_t n, double param)
{
    (void)param;
    double s = 1;
    for (int64_t i = 0; i < n; i++)
        s *= x[i];
    return s;
}

static int64_t prod_whole(QnDtype dtype, int64_t s, int64_t x)
{
    (void)dtype;
    return qn_whole_mul(s, x);
}

static QnStatus prod_ref(const QnRefArgs *a)
{
    if (qn_whole_is(a))
        return qn_fold_whole_ref(a, "prod", prod_whole, 1);
    return qn_fold_ref(a, "prod", prod_of, 0);
}

/* dx_i = dy * product of the others, as the product before times the product after: zeros in x are
 * no special case. The folded axes go last and become one for it. */
static void prod_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnReduceAttr *attr = n->attr;
    const QnShape *s = &n->in[0]->type.shape;
    unsigned mask = 0;
    qn_util_axes_mask("prod", s, &attr->axes, &mask); /* emission has checked it */
    QnInts order = { .n = s->rank }, back = { .n = s->rank };
    QnShape moved = { .rank = s->rank };
    int at = 0, kept = 0;
    for (int fold = 0; fold < 2; fold++) {
        for (int i = 0; i < s->rank; i++) {
            if ((mask >> i & 1) != (unsigned)fold)
                continue;
            moved.dim[at] = s->dim[i];
            back.v[i] = at;
            order.v[at++] = i;
            kept += !fold;
        }
    }
    QnValue *x = qn_flatten(g, qn_transpose(g, n->in[0], order), kept);
    QnValue *others =
        qn_mul(g, qn_cumprod(g, x, -1, true, false), qn_cumprod(g, x, -1, true, true));
    others = qn_transpose(g, qn_reshape(g, others, &moved), back);
    dx[0] = qn_mul(g, qn_fold_spread(g, n, dy[0]), others);
}

static QnStatus prod_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "prod_fold", "prod_last", c);
}

static const QnSample prod_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -2, .hi = 2 },
    { .in = { { 3, { 3, 130, 2 } } },
      .n_in = 1,
      .lo = 0.9,
      .hi = 1.1,
      .attr = &(QnReduceAttr){ { 1, { 1 } }, false } },
    { .in = { { 4, { 2, 3, 4, 2 } } },
      .n_in = 1,
      .lo = 0.5,
      .hi = 2,
      .attr = &(QnReduceAttr){ { 2, { -1, 1 } }, true } },
};

QN_API QnValue *qn_prod(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_prod, &(QnReduceAttr){ axes, keepdims }, x);
}

static QnStatus prod_import(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, qn_prod, false, 1);
}

static const QnOnnxMap prod_onnx[] = {
    { .name = "ReduceProd", .since = 1, .import = prod_import },
};

const QnOp qn_op_prod = {
    .name = "prod",
    .version = 1,
    .doc = "product over axes",
    .n_in = 1,
    .traits = QN_REDUCE | QN_WHOLE,
    QN_ATTRS(QnReduceAttr, prod_fields),
    .infer = prod_infer,
    .cost = prod_cost,
    .ref = prod_ref,
    .grad = prod_grad,
    .device = QN_TEXT(prod),
    .call = prod_call,
    QN_ONNX(prod_onnx),
    QN_SAMPLES(prod_samples),
};
#endif

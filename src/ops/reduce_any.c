/* y = whether any element of x along axes is true. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR int reduce_any_take(int s, qn_long x)
{
    return s || x != 0;
}

QN_SCALAR int reduce_any_join(int a, int b)
{
    return a || b;
}

QN_SCALAR qn_long reduce_any_end(int s, qn_long n)
{
    return s;
}

QN_FOLD(reduce_any, qn_bool, qn_load_bool, qn_store_bool, int, 0)
#endif

#ifdef QN_HOST
#include "ops/fold.h"

static const QnAttrField reduce_any_fields[] = { QN_REDUCE_FIELDS };

static QnStatus reduce_any_infer(QnInfer *c)
{
    if (c->in[0]->dtype != QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE, "reduce_any: needs a bool operand, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_util_reduce_infer(c, "reduce_any");
}

static QnCost reduce_any_cost(const QnNode *n)
{
    return qn_fold_cost(n, 1);
}

static double reduce_any_of(const double *x, int64_t n, double param)
{
    (void)param;
    bool y = 0;
    for (int64_t i = 0; i < n; i++)
        y = y || x[i] != 0;
    return y;
}

static QnStatus reduce_any_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "reduce_any", reduce_any_of, 0);
}

static QnStatus reduce_any_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "reduce_any_fold", "reduce_any_last", c);
}

static const QnSample reduce_any_samples[] = {
    { .in = { { 2, { 4, 7 }, QN_DTYPE_BOOL, 0, 1 } }, .n_in = 1, .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 3, { 5, 3, 2 }, QN_DTYPE_BOOL, 0, 1 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { -2 } }, true },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 2, { 2, 130 }, QN_DTYPE_BOOL, 0, 1 } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { 0 } }, false },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_reduce_any(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_reduce_any, &(QnReduceAttr){ axes, keepdims }, x);
}

const QnOp qn_op_reduce_any = {
    .name = "reduce_any",
    .version = 1,
    .doc = "whether any element along axes is true",
    .n_in = 1,
    .traits = QN_REDUCE | QN_NO_GRAD,
    QN_ATTRS(QnReduceAttr, reduce_any_fields),
    .infer = reduce_any_infer,
    .cost = reduce_any_cost,
    .ref = reduce_any_ref,
    .device = QN_TEXT(reduce_any),
    .call = reduce_any_call,
    QN_SAMPLES(reduce_any_samples),
};
#endif

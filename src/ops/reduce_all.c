/* y = whether every element of x along axes is true. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_SCALAR int reduce_all_take(int s, qn_long x)
{
    return s && x != 0;
}

QN_SCALAR int reduce_all_join(int a, int b)
{
    return a && b;
}

QN_SCALAR qn_long reduce_all_end(int s, qn_long n)
{
    return s;
}

QN_FOLD(reduce_all, qn_bool, qn_load_bool, qn_store_bool, int, 1)
#endif

#ifdef QN_HOST
#include "ops/fold.h"

static const QnAttrField reduce_all_fields[] = { QN_REDUCE_FIELDS };

static QnStatus reduce_all_infer(QnInfer *c)
{
    if (c->in[0]->dtype != QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE, "reduce_all: needs a bool operand, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    return qn_util_reduce_infer(c, "reduce_all");
}

static QnCost reduce_all_cost(const QnNode *n)
{
    return qn_fold_cost(n, 1);
}

static double reduce_all_of(const double *x, int64_t n, double param)
{
    (void)param;
    bool y = 1;
    for (int64_t i = 0; i < n; i++)
        y = y && x[i] != 0;
    return y;
}

static QnStatus reduce_all_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "reduce_all", reduce_all_of, 0);
}

static QnStatus reduce_all_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_call(n, "reduce_all_fold", "reduce_all_last", c);
}

static const QnSample reduce_all_samples[] = {
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

QN_API QnValue *qn_reduce_all(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_reduce_all, &(QnReduceAttr){ axes, keepdims }, x);
}

const QnOp qn_op_reduce_all = {
    .name = "reduce_all",
    .version = 1,
    .doc = "whether every element along axes is true",
    .n_in = 1,
    .traits = QN_REDUCE | QN_NO_GRAD,
    QN_ATTRS(QnReduceAttr, reduce_all_fields),
    .infer = reduce_all_infer,
    .cost = reduce_all_cost,
    .ref = reduce_all_ref,
    .device = QN_TEXT(reduce_all),
    .call = reduce_all_call,
    QN_SAMPLES(reduce_all_samples),
};
#endif

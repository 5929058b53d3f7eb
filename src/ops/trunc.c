/* y = x rounded toward zero */
#include "ops/dialect.h"

QN_SCALAR float trunc_f(float x)
{
    return qn_truncf(x);
}
QN_MAP1(trunc)

#ifdef QN_HOST

static double trunc_ref(const double *x, const double *param)
{
    (void)param;
    return trunc(x[0]);
}

static const QnSample trunc_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -5, .hi = 5 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 1 } }, .n_in = 1, .lo = -100, .hi = 100 },
};

QN_API QnValue *qn_trunc(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_trunc, NULL, x);
}

const QnOp qn_op_trunc = {
    .name = "trunc",
    .version = 1,
    .doc = "x without its fraction",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    .map = &(const QnMapInfo){ .ref = trunc_ref, .flops = 1 },
    .device = QN_TEXT(trunc),
    QN_SAMPLES(trunc_samples),
};
#endif

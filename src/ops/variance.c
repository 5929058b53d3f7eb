/* y = sum (x - mean x)^2 / (n - correction) over axes, in two passes, f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x is (outer, n, inner), one work group an output element. */
QN_KERNEL variance_mid(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long n, qn_long inner,
                       float divisor)
{
    QN_SHARED float part[256];
    qn_long row = qn_group(), base = row / inner * n * inner + row % inner;
    int lid = qn_lid(), size = qn_group_size();
    float mean = 0.0f;
    for (int pass = 0; pass < 2; pass++) {
        float s = 0.0f;
        for (qn_long i = lid; i < n; i += size) {
            float d = qn_load(x, base + i * inner) - mean;
            s += pass ? d * d : d;
        }
        part[lid] = s;
        QN_SYNC();
        for (int h = size / 2; h > 0; h /= 2) {
            if (lid < h)
                part[lid] += part[lid + h];
            QN_SYNC();
        }
        mean = part[0] / (float)n;
        if (pass && lid == 0)
            qn_store(y, row, part[0] / divisor);
        QN_SYNC();
    }
}
#endif

#ifdef QN_HOST
#include "ops/fold.h"

typedef struct Attr {
    QnReduceAttr reduce;
    double correction;
} Attr;

static const QnAttrField variance_fields[] = {
    QN_REDUCE_FIELDS,
    { .name = "correction",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, correction),
      .max = 1e9,
      .doc = "taken off the number of elements; 1: the unbiased estimate" },
};

static QnStatus variance_infer(QnInfer *c)
{
    return qn_fold_infer(c, "variance", false);
}

static QnCost variance_cost(const QnNode *n)
{
    return qn_fold_cost(n, 4);
}

static double variance_of(const double *x, int64_t n, double correction)
{
    double mean = 0, s = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        s += (x[i] - mean) * (x[i] - mean);
    return s / fmax((double)n - correction, 0);
}

static QnStatus variance_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "variance", variance_of, ((const Attr *)a->attr)->correction);
}

/* dx = dy * 2 (x - mean x) / (n - correction); the mean's own slope sums to nothing. */
static void variance_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    QnDims folded = qn_fold_dims(n);
    QnValue *x = n->in[0], *scale = qn_count(g, x->type.dtype, &folded, a->correction, -1);
    QnValue *off = qn_sub(g, x, qn_mean(g, x, a->reduce.axes, true));
    QnValue *slope = qn_mul(g, dy[0], qn_mul(g, scale, qn_scalar_like(g, x, 2)));
    dx[0] = qn_mul(g, off, qn_fold_spread(g, n, slope));
}

static QnStatus variance_call(const QnNode *n, QnDeviceCall *c)
{
    QnDims d = qn_fold_dims(n);
    double count = 1;
    for (int i = 0; i < d.n; i++)
        count *= (double)d.d[i];
    QN_TRY(qn_fold_rows_call(n, "variance_mid", c));
    qn_device_float(c, fmax(count - ((const Attr *)n->attr)->correction, 0));
    return QN_OK;
}

static const QnSample variance_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 3, 130, 2 } } }, .n_in = 1, .attr = &(Attr){ { { 1, { 1 } }, false }, 1 } },
    { .in = { { 4, { 2, 3, 4, 5 } } },
      .n_in = 1,
      .attr = &(Attr){ { { 2, { -1, 2 } }, true }, 0 } },
    { .in = { { 3, { 4, 3, 5 } } }, .n_in = 1, .attr = &(Attr){ { { 2, { 0, 2 } }, false }, 1 } },
};

QN_API QnValue *qn_variance(QnGraph *g, QnValue *x, QnInts axes, bool keepdims, double correction)
{
    return qn_emit1(g, &qn_op_variance, &(Attr){ { axes, keepdims }, correction }, x);
}

const QnOp qn_op_variance = {
    .name = "variance",
    .version = 1,
    .doc = "mean squared distance from the mean over axes",
    .n_in = 1,
    .traits = QN_REDUCE,
    QN_ATTRS(Attr, variance_fields),
    .infer = variance_infer,
    .cost = variance_cost,
    .ref = variance_ref,
    .grad = variance_grad,
    .device = QN_TEXT(variance),
    .call = variance_call,
    QN_SAMPLES(variance_samples),
};
#endif

/* y = log sum exp(x - m) + m over axes, m = max x; sums in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x is (outer, n, inner), one work group an output element, then a tree in shared memory. */
QN_KERNEL logsumexp_mid(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long n, qn_long inner)
{
    QN_SHARED float part[256];
    qn_long row = qn_group(), base = row / inner * n * inner + row % inner;
    int lid = qn_lid(), size = qn_group_size();
    float m = -QN_INF;
    for (qn_long i = lid; i < n; i += size)
        m = qn_maxf(m, qn_load(x, base + i * inner));
    part[lid] = m;
    QN_SYNC();
    for (int h = size / 2; h > 0; h /= 2) {
        if (lid < h)
            part[lid] = qn_maxf(part[lid], part[lid + h]);
        QN_SYNC();
    }
    m = part[0];
    m = m == -QN_INF || m == QN_INF ? 0.0f : m; /* inf - inf would be NaN */
    QN_SYNC();
    float s = 0.0f;
    for (qn_long i = lid; i < n; i += size)
        s += qn_expf(qn_load(x, base + i * inner) - m);
    part[lid] = s;
    QN_SYNC();
    for (int h = size / 2; h > 0; h /= 2) {
        if (lid < h)
            part[lid] += part[lid + h];
        QN_SYNC();
    }
    if (lid == 0)
        qn_store(y, row, qn_logf(part[0]) + m);
}
#endif

#ifdef QN_HOST
#include "ops/fold.h"
#include "ops/onnx.h"

static const QnAttrField logsumexp_fields[] = { QN_REDUCE_FIELDS };

static QnStatus logsumexp_infer(QnInfer *c)
{
    return qn_fold_infer(c, "logsumexp", false);
}

static QnCost logsumexp_cost(const QnNode *n)
{
    return qn_fold_cost(n, 12);
}

static double logsumexp_of(const double *x, int64_t n, double param)
{
    (void)param;
    double m = -INFINITY, s = 0;
    for (int64_t i = 0; i < n; i++)
        m = fmax(m, x[i]);
    if (isinf(m))
        m = 0;
    for (int64_t i = 0; i < n; i++)
        s += exp(x[i] - m);
    return log(s) + m;
}

static QnStatus logsumexp_ref(const QnRefArgs *a)
{
    return qn_fold_ref(a, "logsumexp", logsumexp_of, 0);
}

/* dx = dy * exp(x - y) */
static void logsumexp_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnValue *p = qn_exp(g, qn_sub(g, n->in[0], qn_fold_spread(g, n, &n->out[0])));
    dx[0] = qn_mul(g, p, qn_fold_spread(g, n, dy[0]));
}

static QnStatus logsumexp_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_fold_rows_call(n, "logsumexp_mid", c);
}

static const QnSample logsumexp_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 3, { 3, 130, 2 } } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 1, { 1 } }, false },
      .lo = -50,
      .hi = 50 },
    { .in = { { 4, { 2, 3, 4, 5 } } },
      .n_in = 1,
      .attr = &(QnReduceAttr){ { 2, { -1, 0 } }, true },
      .lo = -3,
      .hi = 3 },
};

QN_API QnValue *qn_logsumexp(QnGraph *g, QnValue *x, QnInts axes, bool keepdims)
{
    return qn_emit1(g, &qn_op_logsumexp, &(QnReduceAttr){ axes, keepdims }, x);
}

static QnStatus logsumexp_import(QnOnnxNode *n)
{
    return qn_onnx_reduce(n, qn_logsumexp, true, -INFINITY);
}

static const QnOnnxMap logsumexp_onnx[] = {
    { .name = "ReduceLogSumExp", .since = 1, .import = logsumexp_import },
};

const QnOp qn_op_logsumexp = {
    .name = "logsumexp",
    .version = 1,
    .doc = "log of the sum of exponentials over axes",
    .n_in = 1,
    .traits = QN_REDUCE,
    QN_ATTRS(QnReduceAttr, logsumexp_fields),
    .infer = logsumexp_infer,
    .cost = logsumexp_cost,
    .ref = logsumexp_ref,
    .grad = logsumexp_grad,
    .device = QN_TEXT(logsumexp),
    .call = logsumexp_call,
    QN_ONNX(logsumexp_onnx),
    QN_SAMPLES(logsumexp_samples),
};
#endif

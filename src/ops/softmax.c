/* y = exp(x - max x) / sum exp(x - max x) along an axis; sums in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x, y: (outer, n, inner); one work group a row. */
QN_KERNEL softmax_row(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long n, qn_long inner)
{
    QN_SHARED float part[256];
    qn_long base = qn_group() / inner * n * inner + qn_group() % inner;
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
    float r = 1.0f / part[0];
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i * inner, qn_expf(qn_load(x, base + i * inner) - m) * r);
}
#endif

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t axis;
} Attr;

static const QnAttrField softmax_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "normalised axis" },
};

static QnStatus softmax_infer(QnInfer *c)
{
    return qn_util_axis_infer(c, "softmax", ((const Attr *)c->attr)->axis);
}

static QnCost softmax_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->in[0]->type.shape);
    double bytes = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .flops = 14 * count, .bytes_read = bytes, .bytes_written = bytes };
}

static QnStatus softmax_ref(const QnRefArgs *a)
{
    int axis = 0;
    qn_shape_axis(&a->in_type[0]->shape, ((const Attr *)a->attr)->axis, &axis);
    QnRows r = qn_util_rows(&a->in_type[0]->shape, axis);
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t base = row / r.inner * r.n * r.inner + row % r.inner;
        const double *x = a->in[0] + base;
        double *y = a->out[0] + base, m = -INFINITY, s = 0;
        for (int64_t i = 0; i < r.n; i++)
            m = fmax(m, x[i * r.inner]);
        for (int64_t i = 0; i < r.n; i++)
            s += exp(x[i * r.inner] - m);
        for (int64_t i = 0; i < r.n; i++)
            y[i * r.inner] = exp(x[i * r.inner] - m) / s;
    }
    return QN_OK;
}

/* dx = y * (dy - sum(y * dy)) */
/* 16-bit numbers are widened first: what is left of p - y s would be their roundings. */
static void softmax_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnDtype t = n->out[0].type.dtype, wide = qn_norm_stat(t);
    QnValue *y = qn_cast(g, &n->out[0], wide), *p = qn_mul(g, y, qn_cast(g, dy[0], wide));
    QnValue *s = qn_sum(g, p, QN_AXES(((const Attr *)n->attr)->axis), true);
    dx[0] = qn_cast(g, qn_sub(g, p, qn_mul(g, y, s)), t);
}

static QnStatus softmax_call(const QnNode *n, QnDeviceCall *c)
{
    return qn_util_rows_call("softmax_row", &n->in[0]->type.shape, ((const Attr *)n->attr)->axis,
                             c);
}

static const QnSample softmax_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 3, { 2, 130, 3 } } }, .n_in = 1, .attr = &(Attr){ 1 }, .lo = -50, .hi = 50 },
};

QN_API QnValue *qn_softmax(QnGraph *g, QnValue *x, int64_t axis)
{
    return qn_emit1(g, &qn_op_softmax, &(Attr){ axis }, x);
}

static QnStatus softmax_import(QnOnnxNode *n)
{
    return qn_onnx_rowwise(n, qn_softmax);
}

static const QnOnnxMap softmax_onnx[] = {
    { .name = "Softmax", .since = 1, .import = softmax_import },
};

static QnStatus softmax_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_attr_int(p, qn_put_same(p, n, "Softmax"), "axis", ((const Attr *)n->attr)->axis);
    return qn_put_status(p);
}

const QnOp qn_op_softmax = {
    .name = "softmax",
    .version = 1,
    .doc = "exponentials normalised to sum 1 along an axis",
    .n_in = 1,
    .traits = QN_ROWWISE,
    QN_ATTRS(Attr, softmax_fields),
    .infer = softmax_infer,
    .cost = softmax_cost,
    .ref = softmax_ref,
    .grad = softmax_grad,
    .inplace = 1,
    .device = QN_TEXT(softmax),
    .call = softmax_call,
    QN_ONNX(softmax_onnx),
    .onnx_put = softmax_put,
    .onnx_writes = "Softmax",
    QN_SAMPLES(softmax_samples),
};
#endif

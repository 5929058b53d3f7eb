/* Layer normalisation over the last axes, from attr.axis on (Ba, Kiros and Hinton 2016):
 *   y = (x - mean) * rstd * scale + bias, rstd = 1 / sqrt(biased variance + eps)
 * scale and bias (optional) have the shape of those axes, mean and rstd that of the axes before.
 * Sums in f32 or wider, the variance by a second pass. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Leaves the total of s over the group in every item's s. */
#define LAYER_NORM_TOTAL(s)                                                                        \
    part[lid] = s;                                                                                 \
    QN_SYNC();                                                                                     \
    for (int h = size / 2; h > 0; h /= 2) {                                                        \
        if (lid < h)                                                                               \
            part[lid] += part[lid + h];                                                            \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    s = part[0];                                                                                   \
    QN_SYNC();

/* Mean m and rstd r of the group's row, which are also stored. */
#define LAYER_NORM_STATS                                                                           \
    QN_SHARED float part[256];                                                                     \
    qn_long base = qn_group() * n;                                                                 \
    int lid = qn_lid(), size = qn_group_size();                                                    \
    float m = 0.0f, r = 0.0f;                                                                      \
    for (qn_long i = lid; i < n; i += size)                                                        \
        m += qn_load(x, base + i);                                                                 \
    LAYER_NORM_TOTAL(m)                                                                            \
    m /= n > 0 ? (float)n : 1.0f;                                                                  \
    for (qn_long i = lid; i < n; i += size)                                                        \
        r += (qn_load(x, base + i) - m) * (qn_load(x, base + i) - m);                              \
    LAYER_NORM_TOTAL(r)                                                                            \
    r = 1.0f / qn_sqrtf(r / (n > 0 ? (float)n : 1.0f) + eps);                                      \
    if (lid == 0) {                                                                                \
        mean[qn_group()] = m;                                                                      \
        rstd[qn_group()] = r;                                                                      \
    }

QN_KERNEL layer_norm_row(QN_GLOBAL QN_T *y, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                         QN_GLOBAL const QN_T *x, qn_long n, float eps)
{
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i, (qn_load(x, base + i) - m) * r);
}

QN_KERNEL layer_norm_row_scale(QN_GLOBAL QN_T *y, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                               QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *scale, qn_long n,
                               float eps)
{
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i, (qn_load(x, base + i) - m) * r * qn_load(scale, i));
}

QN_KERNEL layer_norm_row_affine(QN_GLOBAL QN_T *y, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                                QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *scale,
                                QN_GLOBAL const QN_T *bias, qn_long n, float eps)
{
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i,
                 (qn_load(x, base + i) - m) * r * qn_load(scale, i) + qn_load(bias, i));
}

/* Of x = a + b (add_layer_norm.c), by the items that then read it. x may be a, b or y. */
#define LAYER_NORM_SUM                                                                             \
    for (qn_long i = qn_group() * n + qn_lid(); i < (qn_group() + 1) * n; i += qn_group_size())    \
        qn_store(x, i, qn_load(a, i) + qn_load(b, i));

QN_KERNEL layer_norm_kept_sum_scale(QN_GLOBAL QN_T *x, QN_GLOBAL QN_T *y, QN_GLOBAL float *mean,
                                    QN_GLOBAL float *rstd, QN_GLOBAL const QN_T *a,
                                    QN_GLOBAL const QN_T *b, QN_GLOBAL const QN_T *scale, qn_long n,
                                    float eps)
{
    LAYER_NORM_SUM
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i, (qn_load(x, base + i) - m) * r * qn_load(scale, i));
}

QN_KERNEL layer_norm_kept_sum_affine(QN_GLOBAL QN_T *x, QN_GLOBAL QN_T *y, QN_GLOBAL float *mean,
                                     QN_GLOBAL float *rstd, QN_GLOBAL const QN_T *a,
                                     QN_GLOBAL const QN_T *b, QN_GLOBAL const QN_T *scale,
                                     QN_GLOBAL const QN_T *bias, qn_long n, float eps)
{
    LAYER_NORM_SUM
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i,
                 (qn_load(x, base + i) - m) * r * qn_load(scale, i) + qn_load(bias, i));
}

QN_KERNEL layer_norm_sum_scale(QN_GLOBAL QN_T *x, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                               QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                               QN_GLOBAL const QN_T *scale, qn_long n, float eps)
{
    LAYER_NORM_SUM
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(x, base + i, (qn_load(x, base + i) - m) * r * qn_load(scale, i));
}

QN_KERNEL layer_norm_sum_affine(QN_GLOBAL QN_T *x, QN_GLOBAL float *mean, QN_GLOBAL float *rstd,
                                QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                                QN_GLOBAL const QN_T *scale, QN_GLOBAL const QN_T *bias, qn_long n,
                                float eps)
{
    LAYER_NORM_SUM
    LAYER_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(x, base + i,
                 (qn_load(x, base + i) - m) * r * qn_load(scale, i) + qn_load(bias, i));
}
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/norm.h"
#include "ops/util.h"

static const QnAttrField layer_norm_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(QnLayerNormAttr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "first normalised axis" },
    QN_NORM_EPS(QnLayerNormAttr, 1e-5, "added to the variance"),
};

static QnStatus layer_norm_infer(QnInfer *c)
{
    const QnShape *x = &c->in[0]->shape;
    int axis;
    QN_TRY(qn_norm_dtypes(c, "layer_norm", ~0u));
    if (!qn_shape_axis(x, ((const QnLayerNormAttr *)c->attr)->axis, &axis))
        return qn_fail(QN_EARG, "layer_norm: axis %lld is out of range for rank %d",
                       (long long)((const QnLayerNormAttr *)c->attr)->axis, x->rank);
    if (qn_norm_has(c, 2) && !qn_norm_has(c, 1))
        return qn_fail(QN_EARG, "layer_norm: a bias needs a scale");
    QnShape last = qn_shape_make(x->rank - axis, x->dim + axis);
    for (int i = 1; i < c->n_in; i++) {
        if (qn_norm_has(c, i))
            QN_TRY(qn_norm_shape(c, "layer_norm", i, &last));
    }
    c->out[0] = *c->in[0];
    c->out[1] =
        (QnType){ .dtype = qn_norm_stat(c->in[0]->dtype), .shape = qn_shape_make(axis, x->dim) };
    c->out[2] = c->out[1];
    return QN_OK;
}

static bool layer_norm_has(const QnNode *n, int i)
{
    return i < n->n_in && n->in[i];
}

static QnCost layer_norm_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->in[0]->type.shape), flops = 5;
    QnCost c = { .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    for (int i = 1; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    for (int i = 1; i < n->n_in; i++)
        flops += n->in[i] ? 1 : 0;
    c.flops = flops * count;
    return c;
}

static QnStatus layer_norm_ref(const QnRefArgs *a)
{
    const QnLayerNormAttr *attr = a->attr;
    int64_t rows = qn_shape_count(&a->out_type[1]->shape), n = 1;
    for (int i = a->out_type[1]->shape.rank; i < a->in_type[0]->shape.rank; i++)
        n *= a->in_type[0]->shape.dim[i];
    const double *scale = a->n_in > 1 ? a->in[1] : NULL, *bias = a->n_in > 2 ? a->in[2] : NULL;
    for (int64_t row = 0; row < rows; row++) {
        const double *x = a->in[0] + row * n;
        double *y = a->out[0] + row * n;
        double m = 0, v = 0;
        for (int64_t i = 0; i < n; i++)
            m += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            v += (x[i] - m) * (x[i] - m) / (double)n;
        double r = 1 / sqrt(v + attr->eps);
        a->out[1][row] = m;
        a->out[2][row] = r;
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - m) * r * (scale ? scale[i] : 1) + (bias ? bias[i] : 0);
    }
    return QN_OK;
}

static void layer_norm_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_last(&n->in[0]->type.shape, n->out[1].type.shape.rank);
    if (dy[0]) {
        bool scaled = layer_norm_has(n, 1);
        QnNode *b = qn_emit(
            g, &qn_op_layer_norm_grad, NULL,
            (QnValue *[]){ dy[0], n->in[0], &n->out[1], &n->out[2], scaled ? n->in[1] : NULL },
            scaled ? 5 : 4);
        for (int i = 0; i < n->n_in; i++)
            dx[i] = n->in[i] ? qn_node_out(g, b, i) : NULL;
    }
    dx[0] = qn_norm_add(g, dx[0],
                        qn_norm_stat_grad(g, &v, n->in[0], &n->out[1], &n->out[2], dy[1], dy[2]));
}

static QnStatus layer_norm_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t rows = qn_shape_count(&n->out[1].type.shape);
    *c = (QnDeviceCall){ .kernel = layer_norm_has(n, 2)   ? "layer_norm_row_affine"
                                   : layer_norm_has(n, 1) ? "layer_norm_row_scale"
                                                          : "layer_norm_row",
                         .n_groups = rows,
                         .group_size = QN_GROUP };
    qn_device_int(c, rows ? qn_shape_count(&n->in[0]->type.shape) / rows : 0);
    qn_device_float(c, ((const QnLayerNormAttr *)n->attr)->eps);
    return QN_OK;
}

static const QnSample layer_norm_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 1, { 7 } }, { 1, { 7 } } }, .n_in = 3 },
    { .in = { { 3, { 2, 3, 130 } }, { 1, { 130 } } },
      .n_in = 2,
      .attr = &(QnLayerNormAttr){ -1, 1e-3 },
      .lo = -3,
      .hi = 5 },
    { .in = { { 4, { 2, 2, 3, 2 } }, { 2, { 3, 2 } }, { 2, { 3, 2 } } },
      .n_in = 3,
      .attr = &(QnLayerNormAttr){ 2, 1e-6 } },
    { .in = { { 3, { 3, 2, 5 } } }, .n_in = 1, .attr = &(QnLayerNormAttr){ 1, 1e-5 } },
};

/* The node: outputs y, mean, rstd. scale and bias may be NULL. */
QN_API QnNode *qn_layer_norm_node(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias,
                                  int64_t axis, double eps)
{
    return qn_emit(g, &qn_op_layer_norm, &(QnLayerNormAttr){ axis, eps },
                   (QnValue *[]){ x, scale, bias },
                   bias    ? 3
                   : scale ? 2
                           : 1);
}

/* y; scale and bias may be NULL. */
QN_API QnValue *qn_layer_norm(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias, int64_t axis,
                              double eps)
{
    return qn_node_out(g, qn_layer_norm_node(g, x, scale, bias, axis, eps), 0);
}

static QnStatus layer_norm_put(QnOnnxPut *p, const QnNode *n)
{
    const QnLayerNormAttr *a = n->attr;
    const char *in[3] = { 0 }, *y = qn_put_value(p, &n->out[0]);
    for (int i = 0; i < n->n_in && i < 3; i++)
        in[i] = n->in[i] ? qn_put_value(p, n->in[i]) : NULL;
    QnOnnxDef *d = qn_put_node(p, "LayerNormalization", in, n->n_in, &y, 1);
    qn_put_attr_int(p, d, "axis", a->axis);
    qn_put_attr_float(p, d, "epsilon", a->eps);
    return qn_put_status(p);
}

const QnOp qn_op_layer_norm = {
    .name = "layer_norm",
    .version = 1,
    .doc = "normalises by mean and variance over the last axes",
    .n_in = 1,
    .n_in_max = 3,
    .n_out = 3,
    .traits = QN_ROWWISE,
    QN_ATTRS(QnLayerNormAttr, layer_norm_fields),
    .infer = layer_norm_infer,
    .cost = layer_norm_cost,
    .ref = layer_norm_ref,
    .grad = layer_norm_grad,
    .inplace = 1,
    .device = QN_TEXT(layer_norm),
    .call = layer_norm_call,
    .onnx_put = layer_norm_put,
    .onnx_writes = "LayerNormalization",
    QN_SAMPLES(layer_norm_samples),
};
#endif

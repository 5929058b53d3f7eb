/* RMS normalisation over the last axes, from attr.axis on (Zhang and Sennrich 2019):
 *   y = x * rstd * scale, rstd = 1 / sqrt(mean of x^2 + eps)
 * scale (optional) has the shape of those axes, rstd that of the axes before. Sums in f32 or wider.
 */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Leaves the total of s over the group in every item's s. */
#define RMS_NORM_TOTAL(s)                                                                          \
    part[lid] = s;                                                                                 \
    QN_SYNC();                                                                                     \
    for (int h = size / 2; h > 0; h /= 2) {                                                        \
        if (lid < h)                                                                               \
            part[lid] += part[lid + h];                                                            \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    s = part[0];                                                                                   \
    QN_SYNC();

/* The row's rstd r, which is also stored. */
#define RMS_NORM_STATS                                                                             \
    QN_SHARED float part[256];                                                                     \
    qn_long base = qn_group() * n;                                                                 \
    int lid = qn_lid(), size = qn_group_size();                                                    \
    float r = 0.0f;                                                                                \
    for (qn_long i = lid; i < n; i += size)                                                        \
        r += qn_load(x, base + i) * qn_load(x, base + i);                                          \
    RMS_NORM_TOTAL(r)                                                                              \
    r = 1.0f / qn_sqrtf(r / (n > 0 ? (float)n : 1.0f) + eps);                                      \
    if (lid == 0)                                                                                  \
        rstd[qn_group()] = r;

QN_KERNEL rms_norm_row(QN_GLOBAL QN_T *y, QN_GLOBAL float *rstd, QN_GLOBAL const QN_T *x, qn_long n,
                       float eps)
{
    RMS_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i, qn_load(x, base + i) * r);
}

QN_KERNEL rms_norm_row_scale(QN_GLOBAL QN_T *y, QN_GLOBAL float *rstd, QN_GLOBAL const QN_T *x,
                             QN_GLOBAL const QN_T *scale, qn_long n, float eps)
{
    RMS_NORM_STATS
    for (qn_long i = lid; i < n; i += size)
        qn_store(y, base + i, qn_load(x, base + i) * r * qn_load(scale, i));
}
#endif

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t axis;
    double eps;
} Attr;

static const QnAttrField rms_norm_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "first normalised axis" },
    QN_NORM_EPS(Attr, 1e-5, "added to the mean square"),
};

static QnStatus rms_norm_infer(QnInfer *c)
{
    const QnShape *x = &c->in[0]->shape;
    int axis;
    QN_TRY(qn_norm_dtypes(c, "rms_norm", ~0u));
    if (!qn_shape_axis(x, ((const Attr *)c->attr)->axis, &axis))
        return qn_fail(QN_EARG, "rms_norm: axis %lld is out of range for rank %d",
                       (long long)((const Attr *)c->attr)->axis, x->rank);
    QnShape last = qn_shape_make(x->rank - axis, x->dim + axis);
    for (int i = 1; i < c->n_in; i++) {
        if (qn_norm_has(c, i))
            QN_TRY(qn_norm_shape(c, "rms_norm", i, &last));
    }
    c->out[0] = *c->in[0];
    c->out[1] =
        (QnType){ .dtype = qn_norm_stat(c->in[0]->dtype), .shape = qn_shape_make(axis, x->dim) };
    return QN_OK;
}

static bool rms_norm_has(const QnNode *n, int i)
{
    return i < n->n_in && n->in[i];
}

static QnCost rms_norm_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->in[0]->type.shape), flops = 3;
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

static QnStatus rms_norm_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    int64_t rows = qn_shape_count(&a->out_type[1]->shape), n = 1;
    for (int i = a->out_type[1]->shape.rank; i < a->in_type[0]->shape.rank; i++)
        n *= a->in_type[0]->shape.dim[i];
    const double *scale = a->n_in > 1 ? a->in[1] : NULL;
    for (int64_t row = 0; row < rows; row++) {
        const double *x = a->in[0] + row * n;
        double *y = a->out[0] + row * n;
        double v = 0;
        for (int64_t i = 0; i < n; i++)
            v += x[i] * x[i] / (double)n;
        double r = 1 / sqrt(v + attr->eps);
        a->out[1][row] = r;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * r * (scale ? scale[i] : 1);
    }
    return QN_OK;
}

static void rms_norm_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_last(&n->in[0]->type.shape, n->out[1].type.shape.rank);
    if (dy[0]) {
        bool scaled = rms_norm_has(n, 1);
        QnNode *b = qn_emit(g, &qn_op_rms_norm_grad, NULL,
                            (QnValue *[]){ dy[0], n->in[0], &n->out[1], scaled ? n->in[1] : NULL },
                            scaled ? 4 : 3);
        for (int i = 0; i < n->n_in; i++)
            dx[i] = n->in[i] ? qn_node_out(g, b, i) : NULL;
    }
    dx[0] =
        qn_norm_add(g, dx[0], qn_norm_stat_grad(g, &v, n->in[0], NULL, &n->out[1], NULL, dy[1]));
}

static QnStatus rms_norm_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t rows = qn_shape_count(&n->out[1].type.shape);
    *c = (QnDeviceCall){ .kernel = rms_norm_has(n, 1) ? "rms_norm_row_scale" : "rms_norm_row",
                         .n_groups = rows,
                         .group_size = QN_GROUP };
    qn_device_int(c, rows ? qn_shape_count(&n->in[0]->type.shape) / rows : 0);
    qn_device_float(c, ((const Attr *)n->attr)->eps);
    return QN_OK;
}

static const QnSample rms_norm_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 1, { 7 } } }, .n_in = 2 },
    { .in = { { 3, { 2, 3, 130 } }, { 1, { 130 } } },
      .n_in = 2,
      .attr = &(Attr){ -1, 1e-3 },
      .lo = -3,
      .hi = 5 },
    { .in = { { 4, { 2, 2, 3, 2 } }, { 2, { 3, 2 } } }, .n_in = 2, .attr = &(Attr){ 2, 1e-6 } },
    { .in = { { 3, { 3, 2, 5 } } }, .n_in = 1, .attr = &(Attr){ 1, 1e-5 } },
};

/* The node: outputs y, rstd. scale may be NULL. */
QN_API QnNode *qn_rms_norm_node(QnGraph *g, QnValue *x, QnValue *scale, int64_t axis, double eps)
{
    return qn_emit(g, &qn_op_rms_norm, &(Attr){ axis, eps }, (QnValue *[]){ x, scale },
                   scale ? 2 : 1);
}

/* y; scale may be NULL. */
QN_API QnValue *qn_rms_norm(QnGraph *g, QnValue *x, QnValue *scale, int64_t axis, double eps)
{
    return qn_node_out(g, qn_rms_norm_node(g, x, scale, axis, eps), 0);
}

const QnOp qn_op_rms_norm = {
    .name = "rms_norm",
    .version = 1,
    .doc = "normalises by the mean square over the last axes",
    .n_in = 1,
    .n_in_max = 2,
    .n_out = 2,
    .traits = QN_ROWWISE,
    QN_ATTRS(Attr, rms_norm_fields),
    .infer = rms_norm_infer,
    .cost = rms_norm_cost,
    .ref = rms_norm_ref,
    .grad = rms_norm_grad,
    .inplace = 1,
    .device = QN_TEXT(rms_norm),
    .call = rms_norm_call,
    QN_SAMPLES(rms_norm_samples),
};
#endif

/* Gradient of layer_norm, with xh = (x - mean) * rstd, h = dy * scale, M the mean over the row:
 *   dx = rstd * (h - M(h) - xh * M(h * xh)), dscale = sum over rows of dy * xh, dbias of dy
 * Inputs dy, x, mean, rstd, and scale if there is one; outputs dx, and with a scale dscale and
 * dbias. A last input of x's shape, which passes put there, is added to dx: what x's other readers
 * give it. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#define LAYER_NORM_GRAD_SHARED                                                                     \
    QN_SHARED float pa[256], pb[256];                                                              \
    int lid = qn_lid(), size = qn_group_size();

/* dx of the group's row. H is h at element i of it, MORE what is added. */
#define LAYER_NORM_GRAD_ROW(H, MORE)                                                               \
    {                                                                                              \
        qn_long base = qn_group() * n;                                                             \
        float m = mean[qn_group()];                                                                \
        float r = rstd[qn_group()], a = 0.0f, b = 0.0f;                                            \
        for (qn_long i = lid; i < n; i += size) {                                                  \
            float d = H;                                                                           \
            a += d;                                                                                \
            b += d * (qn_load(x, base + i) - m) * r;                                               \
        }                                                                                          \
        pa[lid] = a;                                                                               \
        pb[lid] = b;                                                                               \
        QN_SYNC();                                                                                 \
        for (int h = size / 2; h > 0; h /= 2) {                                                    \
            if (lid < h) {                                                                         \
                pa[lid] += pa[lid + h];                                                            \
                pb[lid] += pb[lid + h];                                                            \
            }                                                                                      \
            QN_SYNC();                                                                             \
        }                                                                                          \
        a = pa[0] / (float)n;                                                                      \
        b = pb[0] / (float)n;                                                                      \
        for (qn_long i = lid; i < n; i += size)                                                    \
            qn_store(dx, base + i, MORE r * (H - a - (qn_load(x, base + i) - m) * r * b));         \
    }

/* dscale and dbias of 16 columns in 16 strided shares, by the groups behind those of the rows. */
#define LAYER_NORM_GRAD_COLUMNS                                                                    \
    {                                                                                              \
        int column = lid % 16, lane = lid / 16;                                                    \
        qn_long i = (qn_group() - rows) * 16 + column;                                             \
        float a = 0.0f, b = 0.0f;                                                                  \
        for (qn_long row = lane; row < rows && i < n; row += 16) {                                 \
            qn_long at = row * n + i;                                                              \
            a += qn_load(dy, at);                                                                  \
            b += qn_load(dy, at) * (qn_load(x, at) - mean[row]) * rstd[row];                       \
        }                                                                                          \
        pa[lid] = a;                                                                               \
        pb[lid] = b;                                                                               \
        QN_SYNC();                                                                                 \
        for (int h = 8; h > 0; h /= 2) {                                                           \
            if (lane < h) {                                                                        \
                pa[lid] += pa[lid + h * 16];                                                       \
                pb[lid] += pb[lid + h * 16];                                                       \
            }                                                                                      \
            QN_SYNC();                                                                             \
        }                                                                                          \
        if (lane == 0 && i < n) {                                                                  \
            qn_store(dscale, i, pb[lid]);                                                          \
            qn_store(dbias, i, pa[lid]);                                                           \
        }                                                                                          \
    }

QN_KERNEL layer_norm_grad_row(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                              QN_GLOBAL const float *mean, QN_GLOBAL const float *rstd,
                              qn_long rows, qn_long n){
    LAYER_NORM_GRAD_SHARED LAYER_NORM_GRAD_ROW(qn_load(dy, base + i), )
}

QN_KERNEL layer_norm_grad_scale(QN_GLOBAL QN_T *dx, QN_GLOBAL QN_T *dscale, QN_GLOBAL QN_T *dbias,
                                QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                                QN_GLOBAL const float *mean, QN_GLOBAL const float *rstd,
                                QN_GLOBAL const QN_T *scale, qn_long rows, qn_long n)
{
    LAYER_NORM_GRAD_SHARED
    if (qn_group() < rows)
        LAYER_NORM_GRAD_ROW(qn_load(dy, base + i) * qn_load(scale, i), )
    else
        LAYER_NORM_GRAD_COLUMNS
}

QN_KERNEL layer_norm_grad_more(QN_GLOBAL QN_T *dx, QN_GLOBAL QN_T *dscale, QN_GLOBAL QN_T *dbias,
                               QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                               QN_GLOBAL const float *mean, QN_GLOBAL const float *rstd,
                               QN_GLOBAL const QN_T *scale, QN_GLOBAL const QN_T *more,
                               qn_long rows, qn_long n)
{
    LAYER_NORM_GRAD_SHARED
    if (qn_group() < rows)
        LAYER_NORM_GRAD_ROW(qn_load(dy, base + i) * qn_load(scale, i), qn_load(more, base + i) +)
    else
        LAYER_NORM_GRAD_COLUMNS
}
#endif

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

enum { SCALE = 4, MORE = 5 };

static QnStatus layer_norm_grad_infer(QnInfer *c)
{
    const QnShape *x = &c->in[1]->shape;
    int axis = c->in[SCALE - 1]->shape.rank;
    QN_TRY(qn_norm_dtypes(c, "layer_norm_grad", 1u << 1 | 1u << SCALE | 1u << MORE));
    if (axis > x->rank)
        return qn_fail(QN_ESHAPE, "layer_norm_grad: rstd of rank %d for x of rank %d", axis,
                       x->rank);
    QnShape outer = qn_shape_make(axis, x->dim);
    QnShape last = qn_shape_make(x->rank - axis, x->dim + axis);
    QN_TRY(qn_norm_shape(c, "layer_norm_grad", 0, x));
    for (int i = 2; i < SCALE; i++)
        QN_TRY(qn_norm_shape(c, "layer_norm_grad", i, &outer));
    c->out[0] = *c->in[1];
    c->n_out = 1;
    if (qn_norm_has(c, MORE) && !qn_norm_has(c, SCALE))
        return qn_fail(QN_EARG, "layer_norm_grad: what is added to dx needs a scale");
    if (qn_norm_has(c, MORE))
        QN_TRY(qn_norm_shape(c, "layer_norm_grad", MORE, x));
    if (!qn_norm_has(c, SCALE))
        return QN_OK;
    QN_TRY(qn_norm_shape(c, "layer_norm_grad", SCALE, &last));
    c->n_out = 3;
    for (int i = 1; i < c->n_out; i++)
        c->out[i] = *c->in[SCALE];
    return QN_OK;
}

static bool layer_norm_grad_has_more(const QnNode *n)
{
    return n->n_in > MORE && n->in[MORE];
}

static QnCost layer_norm_grad_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->in[1]->type.shape);
    QnCost c = { .flops = ((n->n_out > 1 ? 14 : 9) + layer_norm_grad_has_more(n)) * count };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

static QnStatus layer_norm_grad_ref(const QnRefArgs *r)
{
    int64_t rows = qn_shape_count(&r->in_type[SCALE - 1]->shape), n = 1;
    for (int i = r->in_type[SCALE - 1]->shape.rank; i < r->in_type[1]->shape.rank; i++)
        n *= r->in_type[1]->shape.dim[i];
    bool scaled = r->n_out > 1;
    const double *more = r->n_in > MORE ? r->in[MORE] : NULL;
    for (int k = 1; k < r->n_out; k++)
        memset(r->out[k], 0, (size_t)n * sizeof(double));
    for (int64_t row = 0; row < rows; row++) {
        const double *dy = r->in[0] + row * n, *x = r->in[1] + row * n;
        double m = r->in[2][row], rstd = r->in[SCALE - 1][row], mh = 0, mhx = 0;
        for (int64_t i = 0; i < n; i++) {
            double xh = (x[i] - m) * rstd, h = dy[i] * (scaled ? r->in[SCALE][i] : 1);
            mh += h / (double)n;
            mhx += h * xh / (double)n;
            if (scaled)
                r->out[1][i] += dy[i] * xh;
            if (scaled)
                r->out[2][i] += dy[i];
        }
        for (int64_t i = 0; i < n; i++) {
            double xh = (x[i] - m) * rstd, h = dy[i] * (scaled ? r->in[SCALE][i] : 1);
            r->out[0][row * n + i] = rstd * (h - mh - xh * mhx) + (more ? more[row * n + i] : 0);
        }
    }
    return QN_OK;
}

static void layer_norm_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_last(&n->in[1]->type.shape, n->in[SCALE - 1]->type.shape.rank);
    bool scaled = n->n_out > 1;
    QnNormTerms in = { n->in[0], n->in[1], n->in[2], n->in[SCALE - 1],
                       scaled ? n->in[SCALE] : NULL };
    QnNormTerms d =
        qn_norm_grad_grad(g, &v, &in, dy[0], scaled ? dy[1] : NULL, scaled ? dy[2] : NULL);
    dx[0] = d.dy;
    dx[1] = d.x;
    dx[2] = d.mean;
    dx[SCALE - 1] = d.rstd;
    if (scaled)
        dx[SCALE] = d.scale;
    if (layer_norm_grad_has_more(n))
        dx[MORE] = dy[0];
}

static QnStatus layer_norm_grad_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t rows = qn_shape_count(&n->in[SCALE - 1]->type.shape);
    int64_t size = qn_norm_row_size(&n->in[1]->type.shape, n->in[SCALE - 1]->type.shape.rank);
    bool scaled = n->n_out > 1;
    if (n->in[SCALE - 1]->type.dtype != QN_DTYPE_F32)
        return qn_fail(QN_EUNSUPPORTED, "layer_norm_grad: device text takes f32 statistics");
    *c = (QnDeviceCall){ .kernel = layer_norm_grad_has_more(n) ? "layer_norm_grad_more"
                                   : scaled                    ? "layer_norm_grad_scale"
                                                               : "layer_norm_grad_row",
                         .n_groups = rows + (scaled ? (size + 15) / 16 : 0),
                         .group_size = QN_GROUP };
    qn_device_int(c, rows);
    qn_device_int(c, size);
    return QN_OK;
}

static const QnSample layer_norm_grad_samples[] = {
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 } },
              { 1, { 4 } },
              { 1, { 4 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 7 } } },
      .n_in = 5 },
    { .in = { { 3, { 2, 3, 130 } },
              { 3, { 2, 3, 130 } },
              { 2, { 2, 3 } },
              { 2, { 2, 3 }, .lo = 0.5, .hi = 1.5 } },
      .n_in = 4 },
    { .in = { { 4, { 2, 2, 3, 2 } },
              { 4, { 2, 2, 3, 2 } },
              { 2, { 2, 2 } },
              { 2, { 2, 2 }, .lo = 0.5, .hi = 1.5 },
              { 2, { 3, 2 } } },
      .n_in = 5 },
    { .in = { { 2, { 5, 33 } },
              { 2, { 5, 33 } },
              { 1, { 5 } },
              { 1, { 5 }, .lo = 0.5, .hi = 1.5 },
              { 1, { 33 } },
              { 2, { 5, 33 } } },
      .n_in = 6,
      .lo = -0.3,
      .hi = 0.3 },
};

/* The layer_norm_grad n with `more` added to its dx; NULL: it has no scale, or something is added
 * already. */
QN_API QnNode *qn_layer_norm_grad_and(QnGraph *g, const QnNode *n, QnValue *more)
{
    if (n->n_out == 1 || layer_norm_grad_has_more(n))
        return NULL;
    QnValue *in[MORE + 1];
    memcpy(in, n->in, MORE * sizeof *in);
    in[MORE] = more;
    return qn_emit(g, &qn_op_layer_norm_grad, NULL, in, MORE + 1);
}

const QnOp qn_op_layer_norm_grad = {
    .name = "layer_norm_grad",
    .version = 1,
    .doc = "gradient of layer_norm",
    .n_in = 4,
    .n_in_max = 6,
    .n_out = -1,
    .infer = layer_norm_grad_infer,
    .cost = layer_norm_grad_cost,
    .ref = layer_norm_grad_ref,
    .grad = layer_norm_grad_grad,
    .inplace = 1u << MORE,
    .device = QN_TEXT(layer_norm_grad),
    .call = layer_norm_grad_call,
    QN_SAMPLES(layer_norm_grad_samples),
};
#endif

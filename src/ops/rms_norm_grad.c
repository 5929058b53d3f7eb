/* Gradient of rms_norm, with xh = x * rstd, h = dy * scale, M the mean over the row:
 *   dx = rstd * (h - xh * M(h * xh)), dscale = sum over rows of dy * xh
 * Inputs dy, x, rstd, and scale if there is one; outputs dx, and with a scale dscale. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One work group a row. */
QN_KERNEL rms_norm_grad_row(QN_GLOBAL QN_T *dx, QN_GLOBAL const QN_T *dy, QN_GLOBAL const QN_T *x,
                            QN_GLOBAL const float *rstd, qn_long rows, qn_long n)
{
    QN_SHARED float pb[256];
    qn_long base = qn_group() * n;
    int lid = qn_lid(), size = qn_group_size();
    {
        float r = rstd[qn_group()], b = 0.0f;
        for (qn_long i = lid; i < n; i += size) {
            float d = qn_load(dy, base + i);
            b += d * qn_load(x, base + i) * r;
        }
        pb[lid] = b;
        QN_SYNC();
        for (int h = size / 2; h > 0; h /= 2) {
            if (lid < h) {
                pb[lid] += pb[lid + h];
            }
            QN_SYNC();
        }
        b = pb[0] / (float)n;
        for (qn_long i = lid; i < n; i += size)
            qn_store(dx, base + i, r * (qn_load(dy, base + i) - qn_load(x, base + i) * r * b));
    }
}

/* The first `rows` groups do a row each, the others 16 columns each in 16 strided shares. */
QN_KERNEL rms_norm_grad_scale(QN_GLOBAL QN_T *dx, QN_GLOBAL QN_T *dscale, QN_GLOBAL const QN_T *dy,
                              QN_GLOBAL const QN_T *x, QN_GLOBAL const float *rstd,
                              QN_GLOBAL const QN_T *scale, qn_long rows, qn_long n)
{
    QN_SHARED float pb[256];
    qn_long base = qn_group() * n;
    int lid = qn_lid(), size = qn_group_size();
    if (qn_group() < rows) {
        float r = rstd[qn_group()], b = 0.0f;
        for (qn_long i = lid; i < n; i += size) {
            float d = qn_load(dy, base + i) * qn_load(scale, i);
            b += d * qn_load(x, base + i) * r;
        }
        pb[lid] = b;
        QN_SYNC();
        for (int h = size / 2; h > 0; h /= 2) {
            if (lid < h) {
                pb[lid] += pb[lid + h];
            }
            QN_SYNC();
        }
        b = pb[0] / (float)n;
        for (qn_long i = lid; i < n; i += size)
            qn_store(
                dx, base + i,
                r * (qn_load(dy, base + i) * qn_load(scale, i) - qn_load(x, base + i) * r * b));
    } else {
        int column = lid % 16, lane = lid / 16;
        qn_long i = (qn_group() - rows) * 16 + column;
        float b = 0.0f;
        for (qn_long row = lane; row < rows && i < n; row += 16) {
            qn_long at = row * n + i;
            b += qn_load(dy, at) * qn_load(x, at) * rstd[row];
        }
        pb[lid] = b;
        QN_SYNC();
        for (int h = 8; h > 0; h /= 2) {
            if (lane < h) {
                pb[lid] += pb[lid + h * 16];
            }
            QN_SYNC();
        }
        if (lane == 0 && i < n) {
            qn_store(dscale, i, pb[lid]);
        }
    }
}
#endif

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

enum { SCALE = 3 };

static QnStatus rms_norm_grad_infer(QnInfer *c)
{
    const QnShape *x = &c->in[1]->shape;
    int axis = c->in[SCALE - 1]->shape.rank;
    QN_TRY(qn_norm_dtypes(c, "rms_norm_grad", 1u << 1 | 1u << SCALE));
    if (axis > x->rank)
        return qn_fail(QN_ESHAPE, "rms_norm_grad: rstd of rank %d for x of rank %d", axis, x->rank);
    QnShape outer = qn_shape_make(axis, x->dim);
    QnShape last = qn_shape_make(x->rank - axis, x->dim + axis);
    QN_TRY(qn_norm_shape(c, "rms_norm_grad", 0, x));
    for (int i = 2; i < SCALE; i++)
        QN_TRY(qn_norm_shape(c, "rms_norm_grad", i, &outer));
    c->out[0] = *c->in[1];
    c->n_out = 1;
    if (!qn_norm_has(c, SCALE))
        return QN_OK;
    QN_TRY(qn_norm_shape(c, "rms_norm_grad", SCALE, &last));
    c->n_out = 2;
    for (int i = 1; i < c->n_out; i++)
        c->out[i] = *c->in[SCALE];
    return QN_OK;
}

static QnCost rms_norm_grad_cost(const QnNode *n)
{
    double count = (double)qn_shape_count(&n->in[1]->type.shape);
    QnCost c = { .flops = (n->n_out > 1 ? 11 : 7) * count };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

static QnStatus rms_norm_grad_ref(const QnRefArgs *r)
{
    int64_t rows = qn_shape_count(&r->in_type[SCALE - 1]->shape), n = 1;
    for (int i = r->in_type[SCALE - 1]->shape.rank; i < r->in_type[1]->shape.rank; i++)
        n *= r->in_type[1]->shape.dim[i];
    bool scaled = r->n_out > 1;
    for (int k = 1; k < r->n_out; k++)
        memset(r->out[k], 0, (size_t)n * sizeof(double));
    for (int64_t row = 0; row < rows; row++) {
        const double *dy = r->in[0] + row * n, *x = r->in[1] + row * n;
        double rstd = r->in[SCALE - 1][row], mhx = 0;
        for (int64_t i = 0; i < n; i++) {
            double xh = x[i] * rstd, h = dy[i] * (scaled ? r->in[SCALE][i] : 1);
            mhx += h * xh / (double)n;
            if (scaled)
                r->out[1][i] += dy[i] * xh;
        }
        for (int64_t i = 0; i < n; i++) {
            double xh = x[i] * rstd, h = dy[i] * (scaled ? r->in[SCALE][i] : 1);
            r->out[0][row * n + i] = rstd * (h - xh * mhx);
        }
    }
    return QN_OK;
}

static void rms_norm_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnNormView v = qn_norm_view_last(&n->in[1]->type.shape, n->in[SCALE - 1]->type.shape.rank);
    bool scaled = n->n_out > 1;
    QnNormTerms in = { n->in[0], n->in[1], NULL, n->in[SCALE - 1], scaled ? n->in[SCALE] : NULL };
    QnNormTerms d = qn_norm_grad_grad(g, &v, &in, dy[0], scaled ? dy[1] : NULL, NULL);
    dx[0] = d.dy;
    dx[1] = d.x;
    dx[SCALE - 1] = d.rstd;
    if (scaled)
        dx[SCALE] = d.scale;
}

static QnStatus rms_norm_grad_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t rows = qn_shape_count(&n->in[SCALE - 1]->type.shape);
    int64_t size = qn_norm_row_size(&n->in[1]->type.shape, n->in[SCALE - 1]->type.shape.rank);
    bool scaled = n->n_out > 1;
    if (n->in[SCALE - 1]->type.dtype != QN_DTYPE_F32)
        return qn_fail(QN_EUNSUPPORTED, "rms_norm_grad: device text takes f32 statistics");
    *c = (QnDeviceCall){ .kernel = scaled ? "rms_norm_grad_scale" : "rms_norm_grad_row",
                         .n_groups = rows + (scaled ? (size + 15) / 16 : 0),
                         .group_size = QN_GROUP };
    qn_device_int(c, rows);
    qn_device_int(c, size);
    return QN_OK;
}

static const QnSample rms_norm_grad_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } }, { 1, { 4 }, .lo = 0.5, .hi = 1.5 }, { 1, { 7 } } },
      .n_in = 4 },
    { .in = { { 3, { 2, 3, 130 } }, { 3, { 2, 3, 130 } }, { 2, { 2, 3 }, .lo = 0.5, .hi = 1.5 } },
      .n_in = 3 },
    { .in = { { 4, { 2, 2, 3, 2 } },
              { 4, { 2, 2, 3, 2 } },
              { 2, { 2, 2 }, .lo = 0.5, .hi = 1.5 },
              { 2, { 3, 2 } } },
      .n_in = 4 },
};

const QnOp qn_op_rms_norm_grad = {
    .name = "rms_norm_grad",
    .version = 1,
    .doc = "gradient of rms_norm",
    .n_in = 3,
    .n_in_max = 4,
    .n_out = -1,
    .infer = rms_norm_grad_infer,
    .cost = rms_norm_grad_cost,
    .ref = rms_norm_grad_ref,
    .grad = rms_norm_grad_grad,
    .device = QN_TEXT(rms_norm_grad),
    .call = rms_norm_grad_call,
    QN_SAMPLES(rms_norm_grad_samples),
};
#endif

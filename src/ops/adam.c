/* Adam (Kingma and Ba 2015), as torch.optim.Adam:
 *   g += weight_decay * p;  m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * g^2
 *   p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 * Inputs p, m, v, g, lr, step t (from 1); m and v start as 0. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* An item does four elements. 1 - b^t by expm1, since b^t is near 1 at first. */
QN_SCALAR void adam_item_at(qn_long item, QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *m1, QN_GLOBAL QN_T *v1,
                            QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *m,
                            QN_GLOBAL const QN_T *v, QN_GLOBAL const QN_T *g,
                            QN_GLOBAL const float *lr, QN_GLOBAL const qn_long *step, qn_long n,
                            float beta1, float beta2, float log_beta1, float log_beta2, float eps,
                            float decay)
{
    qn_long i = item * 4;
    if (i >= n)
        return;
    float p4[4], m4[4], v4[4], g4[4];
    float t = (float)step[0], c1 = -qn_expm1f(t * log_beta1), c2 = -qn_expm1f(t * log_beta2);
    qn_get4(p, i, n, p4);
    qn_get4(m, i, n, m4);
    qn_get4(v, i, n, v4);
    qn_get4(g, i, n, g4);
    if (!(lr[0] < 0.0f))
        for (int u = 0; u < 4; u++) {
            float old = p4[u], d = g4[u] + decay * old;
            m4[u] = beta1 * m4[u] + (1.0f - beta1) * d;
            v4[u] = beta2 * v4[u] + (1.0f - beta2) * d * d;
            p4[u] = old - lr[0] / c1 * m4[u] / (qn_sqrtf(v4[u]) / qn_sqrtf(c2) + eps);
        }
    qn_put4(q, i, n, p4);
    qn_put4(m1, i, n, m4);
    qn_put4(v1, i, n, v4);
}

QN_KERNEL adam_item(QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *m1, QN_GLOBAL QN_T *v1,
                    QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *m, QN_GLOBAL const QN_T *v,
                    QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr,
                    QN_GLOBAL const qn_long *step, qn_long n, float beta1, float beta2,
                    float log_beta1, float log_beta2, float eps, float decay)
{
    adam_item_at(qn_item(), q, m1, v1, p, m, v, g, lr, step, n, beta1, beta2, log_beta1, log_beta2,
                 eps, decay);
}
#endif

#ifdef QN_HOST
#include "ops/update.h"

typedef struct Attr {
    double beta1, beta2, eps, decay;
} Attr;

static const QnAttrField adam_fields[] = {
    QN_UPDATE_FIELD(Attr, beta1, "beta1", 0.9, "share of the first moment that is kept"),
    QN_UPDATE_FIELD(Attr, beta2, "beta2", 0.999, "share of the second moment that is kept"),
    QN_UPDATE_FIELD(Attr, eps, "eps", 1e-8, "added to the denominator"),
    QN_UPDATE_FIELD(Attr, decay, "weight_decay", 0, "of p, added to its gradient"),
};

static QnStatus adam_infer(QnInfer *c)
{
    return qn_update_infer(c, "adam", 2, true);
}

static QnCost adam_cost(const QnNode *n)
{
    return qn_update_cost(n, 14);
}

static QnStatus adam_ref(const QnRefArgs *r)
{
    const Attr *a = r->attr;
    if (qn_update_is_left_out(r, 4))
        return QN_OK;
    double lr = r->in[4][0], t = r->in[5][0];
    double c1 = 1 - pow(a->beta1, t), c2 = 1 - pow(a->beta2, t);
    for (int64_t i = 0, n = qn_shape_count(&r->in_type[0]->shape); i < n; i++) {
        double p = r->in[0][i], g = r->in[3][i];
        g += a->decay * p;
        double m = a->beta1 * r->in[1][i] + (1 - a->beta1) * g;
        double v = a->beta2 * r->in[2][i] + (1 - a->beta2) * g * g;
        r->out[0][i] = p - lr / c1 * m / (sqrt(v) / sqrt(c2) + a->eps);
        r->out[1][i] = m;
        r->out[2][i] = v;
    }
    return QN_OK;
}

static QnStatus adam_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_update_call(n, "adam_item", "adam_item_at", c);
    qn_device_float(c, a->beta1);
    qn_device_float(c, a->beta2);
    qn_device_float(c, qn_update_log(a->beta1));
    qn_device_float(c, qn_update_log(a->beta2));
    qn_device_float(c, a->eps);
    qn_device_float(c, a->decay);
    return QN_OK;
}

/* Updates have no gradient; lr is f32 whatever p is. Second moments are not negative. */
static const QnSample adam_samples[] = {
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 } },
              { 2, { 4, 7 }, .lo = 0.01, .hi = 1 },
              { 2, { 4, 7 } },
              { 0, .lo = 0.001, .hi = 0.1 },
              { 0, .dtype = QN_DTYPE_I64, .lo = 1, .hi = 3 } },
      .n_in = 6,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 1, { 130 } },
              { 1, { 130 } },
              { 1, { 130 }, .lo = 0.01, .hi = 1 },
              { 1, { 130 } },
              { 0, .lo = 0.001, .hi = 0.1 },
              { 0, .dtype = QN_DTYPE_I64, .lo = 100, .hi = 5000 } },
      .n_in = 6,
      .attr = &(Attr){ 0.8, 0.95, 1e-6, 0.1 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    /* left out */
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 } },
              { 2, { 4, 7 }, .lo = 0.01, .hi = 1 },
              { 2, { 4, 7 } },
              { 0, .lo = -0.1, .hi = -0.001 },
              { 0, .dtype = QN_DTYPE_I64, .lo = 1, .hi = 3 } },
      .n_in = 6,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* Outputs: the new p, m, v. */
QN_API QnNode *qn_adam(QnGraph *g, QnValue *p, QnValue *m, QnValue *v, QnValue *grad, QnValue *lr,
                       QnValue *step, double beta1, double beta2, double eps, double weight_decay)
{
    return qn_update_emit(g, &qn_op_adam, &(Attr){ beta1, beta2, eps, weight_decay }, p,
                          (QnValue *[]){ m, v }, 2, grad, lr, step);
}

const QnOp qn_op_adam = {
    .name = "adam",
    .version = 1,
    .doc = "Adam step",
    .n_in = 6,
    .n_out = 3,
    .traits = QN_NO_GRAD | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, adam_fields),
    .infer = adam_infer,
    .cost = adam_cost,
    .ref = adam_ref,
    .inplace = 7,
    .inplace_pairs = true,
    .device = QN_TEXT(adam),
    .call = adam_call,
    QN_SAMPLES(adam_samples),
};
#endif

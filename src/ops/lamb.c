/* LAMB (You et al. 2020, algorithm 2, with bias correction): Adam's direction, scaled for each
 * tensor by its own size. m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * g^2 r = m / (1 -
 * b1^t) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay * p p -= lr * |p| / |r| * r   (the ratio is 1
 * where either norm is 0) Inputs p, m, v, g, lr, step t (from 1); m and v start as 0. Norms in f32
 * or wider. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* One work group does the whole tensor: the norms come first. */
QN_KERNEL lamb_group(QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *m1, QN_GLOBAL QN_T *v1,
                     QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *m, QN_GLOBAL const QN_T *v,
                     QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr,
                     QN_GLOBAL const qn_long *step, qn_long n, float beta1, float beta2,
                     float log_beta1, float log_beta2, float eps, float decay)
{
    QN_SHARED float pa[256], pb[256];
    int lid = qn_lid(), size = qn_group_size();
    float t = (float)step[0], c1 = -qn_expm1f(t * log_beta1), c2 = -qn_expm1f(t * log_beta2);
    float sp = 0.0f, sr = 0.0f, ratio = 1.0f;
    for (int pass = 0; pass < 2; pass++) {
        for (qn_long i = lid; i < n; i += size) {
            float old = qn_load(p, i), d = qn_load(g, i);
            float a = beta1 * qn_load(m, i) + (1.0f - beta1) * d;
            float b = beta2 * qn_load(v, i) + (1.0f - beta2) * d * d;
            float r = a / c1 / (qn_sqrtf(b / c2) + eps) + decay * old;
            sp += old * old;
            sr += r * r;
            if (pass == 1) {
                qn_store(m1, i, a);
                qn_store(v1, i, b);
                qn_store(q, i, old - lr[0] * ratio * r);
            }
        }
        pa[lid] = sp;
        pb[lid] = sr;
        QN_SYNC();
        for (int h = size / 2; h > 0; h /= 2) {
            if (lid < h) {
                pa[lid] += pa[lid + h];
                pb[lid] += pb[lid + h];
            }
            QN_SYNC();
        }
        ratio = pa[0] > 0.0f && pb[0] > 0.0f ? qn_sqrtf(pa[0]) / qn_sqrtf(pb[0]) : 1.0f;
        QN_SYNC();
    }
}
#endif

#ifdef QN_HOST
#include "ops/update.h"
#include "ops/util.h"

typedef struct Attr {
    double beta1;
    double beta2;
    double eps;
    double decay;
} Attr;

static const QnAttrField lamb_fields[] = {
    QN_UPDATE_FIELD(Attr, beta1, "beta1", 0.9, "share of the first moment that is kept"),
    QN_UPDATE_FIELD(Attr, beta2, "beta2", 0.999, "share of the second moment that is kept"),
    QN_UPDATE_FIELD(Attr, eps, "eps", 1e-6, "added to the denominator"),
    QN_UPDATE_FIELD(Attr, decay, "weight_decay", 0.01, "of p, part of the direction"),
};

static QnStatus lamb_infer(QnInfer *c)
{
    return qn_update_infer(c, "lamb", 2, true);
}

static QnCost lamb_cost(const QnNode *n)
{
    return qn_update_cost(n, 21);
}

static QnStatus lamb_ref(const QnRefArgs *r)
{
    const Attr *a = r->attr;
    double c1 = 1 - pow(a->beta1, r->in[5][0]), c2 = 1 - pow(a->beta2, r->in[5][0]);
    double sp = 0, sr = 0;
    int64_t n = qn_shape_count(&r->in_type[0]->shape);
    for (int pass = 0; pass < 2; pass++) {
        double ratio = sp > 0 && sr > 0 ? sqrt(sp) / sqrt(sr) : 1;
        for (int64_t i = 0; i < n; i++) {
            double p = r->in[0][i], g = r->in[3][i];
            double m = a->beta1 * r->in[1][i] + (1 - a->beta1) * g;
            double v = a->beta2 * r->in[2][i] + (1 - a->beta2) * g * g;
            double d = m / c1 / (sqrt(v / c2) + a->eps) + a->decay * p;
            r->out[0][i] = p - r->in[4][0] * ratio * d;
            r->out[1][i] = m;
            r->out[2][i] = v;
            sp += pass ? 0 : p * p;
            sr += pass ? 0 : d * d;
        }
    }
    return QN_OK;
}

static QnStatus lamb_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_update_call(n, "lamb_group", NULL, c);
    c->n_groups = 1;
    c->group_size = QN_GROUP;
    qn_device_float(c, a->beta1);
    qn_device_float(c, a->beta2);
    qn_device_float(c, qn_update_log(a->beta1));
    qn_device_float(c, qn_update_log(a->beta2));
    qn_device_float(c, a->eps);
    qn_device_float(c, a->decay);
    return QN_OK;
}

/* Updates have no gradient; lr is f32 whatever p is. Second moments are not negative. */
static const QnSample lamb_samples[] = {
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
};

/* Outputs: the new p, m, v. */
QN_API QnNode *qn_lamb(QnGraph *g, QnValue *p, QnValue *m, QnValue *v, QnValue *grad, QnValue *lr,
                       QnValue *step, double beta1, double beta2, double eps, double weight_decay)
{
    return qn_update_emit(g, &qn_op_lamb, &(Attr){ beta1, beta2, eps, weight_decay }, p,
                          (QnValue *[]){ m, v }, 2, grad, lr, step);
}

const QnOp qn_op_lamb = {
    .name = "lamb",
    .version = 1,
    .doc = "Adam step scaled to the size of the tensor",
    .n_in = 6,
    .n_out = 3,
    .traits = QN_NO_GRAD,
    QN_ATTRS(Attr, lamb_fields),
    .infer = lamb_infer,
    .cost = lamb_cost,
    .ref = lamb_ref,
    .inplace = 7,
    .inplace_pairs = true,
    .device = QN_TEXT(lamb),
    .call = lamb_call,
    QN_SAMPLES(lamb_samples),
};
#endif

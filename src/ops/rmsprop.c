/* RMSprop (Tieleman and Hinton 2012), as torch.optim.RMSprop (not centered):
 *   g += weight_decay * p;  v = alpha * v + (1 - alpha) * g^2;  d = g / (sqrt(v) + eps)
 *   without a moment: p -= lr * d;  else b = momentum * b + d; p -= lr * b
 * Inputs p, v, g, lr or p, v, b, g, lr; v and b start as 0. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* An item does four elements. */
QN_SCALAR void rmsprop_plain_at(qn_long item, QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *w,
                                QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *v,
                                QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr, qn_long n,
                                float alpha, float momentum, float decay, float eps)
{
    qn_long i = item * 4;
    if (i >= n)
        return;
    float p4[4], v4[4], g4[4];
    qn_get4(p, i, n, p4);
    qn_get4(v, i, n, v4);
    qn_get4(g, i, n, g4);
    if (!(lr[0] < 0.0f))
        for (int u = 0; u < 4; u++) {
            float old = p4[u], d = g4[u] + decay * old;
            v4[u] = alpha * v4[u] + (1.0f - alpha) * d * d;
            p4[u] = old - lr[0] * d / (qn_sqrtf(v4[u]) + eps);
        }
    qn_put4(q, i, n, p4);
    qn_put4(w, i, n, v4);
}

QN_KERNEL rmsprop_plain(QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *w, QN_GLOBAL const QN_T *p,
                        QN_GLOBAL const QN_T *v, QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr,
                        qn_long n, float alpha, float momentum, float decay, float eps)
{
    rmsprop_plain_at(qn_item(), q, w, p, v, g, lr, n, alpha, momentum, decay, eps);
}

QN_SCALAR void rmsprop_momentum_at(qn_long item, QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *w,
                                   QN_GLOBAL QN_T *c, QN_GLOBAL const QN_T *p,
                                   QN_GLOBAL const QN_T *v, QN_GLOBAL const QN_T *b,
                                   QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr, qn_long n,
                                   float alpha, float momentum, float decay, float eps)
{
    qn_long i = item * 4;
    if (i >= n)
        return;
    float p4[4], v4[4], b4[4], g4[4];
    qn_get4(p, i, n, p4);
    qn_get4(v, i, n, v4);
    qn_get4(b, i, n, b4);
    qn_get4(g, i, n, g4);
    if (!(lr[0] < 0.0f))
        for (int u = 0; u < 4; u++) {
            float old = p4[u], d = g4[u] + decay * old;
            v4[u] = alpha * v4[u] + (1.0f - alpha) * d * d;
            b4[u] = momentum * b4[u] + d / (qn_sqrtf(v4[u]) + eps);
            p4[u] = old - lr[0] * b4[u];
        }
    qn_put4(q, i, n, p4);
    qn_put4(w, i, n, v4);
    qn_put4(c, i, n, b4);
}

QN_KERNEL rmsprop_momentum(QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *w, QN_GLOBAL QN_T *c,
                           QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *v,
                           QN_GLOBAL const QN_T *b, QN_GLOBAL const QN_T *g,
                           QN_GLOBAL const float *lr, qn_long n, float alpha, float momentum,
                           float decay, float eps)
{
    rmsprop_momentum_at(qn_item(), q, w, c, p, v, b, g, lr, n, alpha, momentum, decay, eps);
}
#endif

#ifdef QN_HOST
#include "ops/update.h"

typedef struct Attr {
    double alpha;
    double momentum;
    double decay;
    double eps;
} Attr;

static const QnAttrField rmsprop_fields[] = {
    QN_UPDATE_FIELD(Attr, alpha, "alpha", 0.99, "share of the second moment that is kept"),
    QN_UPDATE_FIELD(Attr, momentum, "momentum", 0, "share of the moment that is kept"),
    QN_UPDATE_FIELD(Attr, decay, "weight_decay", 0, "of p, added to its gradient"),
    QN_UPDATE_FIELD(Attr, eps, "eps", 1e-8, "added to the denominator"),
};

static QnStatus rmsprop_infer(QnInfer *c)
{
    return qn_update_infer(c, "rmsprop", c->n_in - 3, false);
}

static QnCost rmsprop_cost(const QnNode *n)
{
    return qn_update_cost(n, n->n_in == 5 ? 13 : 11);
}

static QnStatus rmsprop_ref(const QnRefArgs *r)
{
    const Attr *a = r->attr;
    if (qn_update_is_left_out(r, r->n_in - 1))
        return QN_OK;
    bool moment = r->n_in == 5;
    double lr = r->in[r->n_in - 1][0];
    for (int64_t i = 0, n = qn_shape_count(&r->in_type[0]->shape); i < n; i++) {
        double p = r->in[0][i], g = r->in[r->n_in - 2][i] + a->decay * p;
        double v = a->alpha * r->in[1][i] + (1 - a->alpha) * g * g, d = g / (sqrt(v) + a->eps);
        if (moment)
            d = r->out[2][i] = a->momentum * r->in[2][i] + d;
        r->out[0][i] = p - lr * d;
        r->out[1][i] = v;
    }
    return QN_OK;
}

static QnStatus rmsprop_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    if (n->n_in == 5)
        qn_update_call(n, "rmsprop_momentum", "rmsprop_momentum_at", c);
    else
        qn_update_call(n, "rmsprop_plain", "rmsprop_plain_at", c);
    qn_device_float(c, a->alpha);
    qn_device_float(c, a->momentum);
    qn_device_float(c, a->decay);
    qn_device_float(c, a->eps);
    return QN_OK;
}

/* Updates have no gradient; lr is f32 whatever p is. Second moments are not negative. */
static const QnSample rmsprop_samples[] = {
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 }, .lo = 0.01, .hi = 1 },
              { 2, { 4, 7 } },
              { 0, .lo = 0.001, .hi = 0.1 } },
      .n_in = 4,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 1, { 130 } },
              { 1, { 130 }, .lo = 0.01, .hi = 1 },
              { 1, { 130 } },
              { 1, { 130 } },
              { 0, .lo = 0.001, .hi = 0.1 } },
      .n_in = 5,
      .attr = &(Attr){ 0.9, 0.8, 0.1, 1e-6 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    /* left out */
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 }, .lo = 0.01, .hi = 1 },
              { 2, { 4, 7 } },
              { 0, .lo = -0.1, .hi = -0.001 } },
      .n_in = 4,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* Outputs: the new p, v, and the new moment if one is given (NULL: none). */
QN_API QnNode *qn_rmsprop(QnGraph *g, QnValue *p, QnValue *v, QnValue *moment, QnValue *grad,
                          QnValue *lr, double alpha, double momentum, double weight_decay,
                          double eps)
{
    return qn_update_emit(g, &qn_op_rmsprop, &(Attr){ alpha, momentum, weight_decay, eps }, p,
                          (QnValue *[]){ v, moment }, moment ? 2 : 1, grad, lr, NULL);
}

const QnOp qn_op_rmsprop = {
    .name = "rmsprop",
    .version = 1,
    .doc = "RMSprop step, with or without momentum",
    .n_in = 4,
    .n_in_max = 5,
    .n_out = -1,
    .traits = QN_NO_GRAD | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, rmsprop_fields),
    .infer = rmsprop_infer,
    .cost = rmsprop_cost,
    .ref = rmsprop_ref,
    .inplace = 7,
    .inplace_pairs = true,
    .device = QN_TEXT(rmsprop),
    .call = rmsprop_call,
    QN_SAMPLES(rmsprop_samples),
};
#endif

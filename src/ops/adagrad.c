/* AdaGrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad:
 *   g += weight_decay * p;  v += g^2;  p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(v) + eps)
 * Inputs p, v, g, lr, step t (from 1). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* An item does four elements. */
QN_SCALAR void adagrad_item_at(qn_long item, QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *w,
                               QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *v,
                               QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr,
                               QN_GLOBAL const qn_long *step, qn_long n, float lr_decay,
                               float decay, float eps)
{
    qn_long i = item * 4;
    if (i >= n)
        return;
    float p4[4], v4[4], g4[4];
    float rate = lr[0] / (1.0f + (float)(step[0] - 1) * lr_decay);
    qn_get4(p, i, n, p4);
    qn_get4(v, i, n, v4);
    qn_get4(g, i, n, g4);
    if (!(lr[0] < 0.0f))
        for (int u = 0; u < 4; u++) {
            float old = p4[u], d = g4[u] + decay * old;
            v4[u] += d * d;
            p4[u] = old - rate * d / (qn_sqrtf(v4[u]) + eps);
        }
    qn_put4(q, i, n, p4);
    qn_put4(w, i, n, v4);
}

QN_KERNEL adagrad_item(QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *w, QN_GLOBAL const QN_T *p,
                       QN_GLOBAL const QN_T *v, QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr,
                       QN_GLOBAL const qn_long *step, qn_long n, float lr_decay, float decay,
                       float eps)
{
    adagrad_item_at(qn_item(), q, w, p, v, g, lr, step, n, lr_decay, decay, eps);
}
#endif

#ifdef QN_HOST
#include "ops/update.h"

typedef struct Attr {
    double lr_decay;
    double decay;
    double eps;
} Attr;

static const QnAttrField adagrad_fields[] = {
    QN_UPDATE_FIELD(Attr, lr_decay, "lr_decay", 0, "lr falls as 1 / (1 + (t - 1) * lr_decay)"),
    QN_UPDATE_FIELD(Attr, decay, "weight_decay", 0, "of p, added to its gradient"),
    QN_UPDATE_FIELD(Attr, eps, "eps", 1e-10, "added to the denominator"),
};

static QnStatus adagrad_infer(QnInfer *c)
{
    return qn_update_infer(c, "adagrad", 1, true);
}

static QnCost adagrad_cost(const QnNode *n)
{
    return qn_update_cost(n, 9);
}

static QnStatus adagrad_ref(const QnRefArgs *r)
{
    const Attr *a = r->attr;
    if (qn_update_is_left_out(r, 3))
        return QN_OK;
    double rate = r->in[3][0] / (1 + (r->in[4][0] - 1) * a->lr_decay);
    for (int64_t i = 0, n = qn_shape_count(&r->in_type[0]->shape); i < n; i++) {
        double p = r->in[0][i], g = r->in[2][i] + a->decay * p, v = r->in[1][i] + g * g;
        r->out[0][i] = p - rate * g / (sqrt(v) + a->eps);
        r->out[1][i] = v;
    }
    return QN_OK;
}

static QnStatus adagrad_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_update_call(n, "adagrad_item", "adagrad_item_at", c);
    qn_device_float(c, a->lr_decay);
    qn_device_float(c, a->decay);
    qn_device_float(c, a->eps);
    return QN_OK;
}

/* Updates have no gradient; lr is f32 whatever p is. Second moments are not negative. */
static const QnSample adagrad_samples[] = {
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 }, .lo = 0.01, .hi = 1 },
              { 2, { 4, 7 } },
              { 0, .lo = 0.001, .hi = 0.1 },
              { 0, .dtype = QN_DTYPE_I64, .lo = 1, .hi = 3 } },
      .n_in = 5,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 1, { 130 } },
              { 1, { 130 }, .lo = 0.01, .hi = 1 },
              { 1, { 130 } },
              { 0, .lo = 0.001, .hi = 0.1 },
              { 0, .dtype = QN_DTYPE_I64, .lo = 9, .hi = 99 } },
      .n_in = 5,
      .attr = &(Attr){ 0.01, 0.1, 1e-6 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    /* left out */
    { .in = { { 2, { 4, 7 } },
              { 2, { 4, 7 }, .lo = 0.01, .hi = 1 },
              { 2, { 4, 7 } },
              { 0, .lo = -0.1, .hi = -0.001 },
              { 0, .dtype = QN_DTYPE_I64, .lo = 1, .hi = 3 } },
      .n_in = 5,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* Outputs: the new p and v. */
QN_API QnNode *qn_adagrad(QnGraph *g, QnValue *p, QnValue *v, QnValue *grad, QnValue *lr,
                          QnValue *step, double lr_decay, double weight_decay, double eps)
{
    return qn_update_emit(g, &qn_op_adagrad, &(Attr){ lr_decay, weight_decay, eps }, p, &v, 1, grad,
                          lr, step);
}

const QnOp qn_op_adagrad = {
    .name = "adagrad",
    .version = 1,
    .doc = "AdaGrad step",
    .n_in = 5,
    .n_out = 2,
    .traits = QN_NO_GRAD | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, adagrad_fields),
    .infer = adagrad_infer,
    .cost = adagrad_cost,
    .ref = adagrad_ref,
    .inplace = 3,
    .inplace_pairs = true,
    .device = QN_TEXT(adagrad),
    .call = adagrad_call,
    QN_SAMPLES(adagrad_samples),
};
#endif

/* Stochastic gradient descent, with PyTorch's conventions (torch.optim.SGD, dampening 0):
 *   g += weight_decay * p;  without a moment: p -= lr * g
 *   b = momentum * b + g;  p -= lr * (nesterov ? g + momentum * b : b)
 * Inputs p, g, lr or p, b, g, lr; b starts as 0. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* An item does four elements. */
QN_SCALAR void sgd_plain_at(qn_long item, QN_GLOBAL QN_T *q, QN_GLOBAL const QN_T *p,
                            QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr, qn_long n,
                            float momentum, float decay, qn_long nesterov)
{
    qn_long i = item * 4;
    if (i >= n)
        return;
    float p4[4], g4[4];
    qn_get4(p, i, n, p4);
    qn_get4(g, i, n, g4);
    if (!(lr[0] < 0.0f))
        for (int u = 0; u < 4; u++)
            p4[u] -= lr[0] * (g4[u] + decay * p4[u]);
    qn_put4(q, i, n, p4);
}

QN_KERNEL sgd_plain(QN_GLOBAL QN_T *q, QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *g,
                    QN_GLOBAL const float *lr, qn_long n, float momentum, float decay,
                    qn_long nesterov)
{
    sgd_plain_at(qn_item(), q, p, g, lr, n, momentum, decay, nesterov);
}

QN_SCALAR void sgd_momentum_at(qn_long item, QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *c,
                               QN_GLOBAL const QN_T *p, QN_GLOBAL const QN_T *b,
                               QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr, qn_long n,
                               float momentum, float decay, qn_long nesterov)
{
    qn_long i = item * 4;
    if (i >= n)
        return;
    float p4[4], b4[4], g4[4];
    qn_get4(p, i, n, p4);
    qn_get4(b, i, n, b4);
    qn_get4(g, i, n, g4);
    if (!(lr[0] < 0.0f))
        for (int u = 0; u < 4; u++) {
            float old = p4[u], d = g4[u] + decay * old;
            b4[u] = momentum * b4[u] + d;
            p4[u] = old - lr[0] * (nesterov != 0 ? d + momentum * b4[u] : b4[u]);
        }
    qn_put4(q, i, n, p4);
    qn_put4(c, i, n, b4);
}

QN_KERNEL sgd_momentum(QN_GLOBAL QN_T *q, QN_GLOBAL QN_T *c, QN_GLOBAL const QN_T *p,
                       QN_GLOBAL const QN_T *b, QN_GLOBAL const QN_T *g, QN_GLOBAL const float *lr,
                       qn_long n, float momentum, float decay, qn_long nesterov)
{
    sgd_momentum_at(qn_item(), q, c, p, b, g, lr, n, momentum, decay, nesterov);
}
#endif

#ifdef QN_HOST
#include "ops/update.h"

typedef struct Attr {
    double momentum, decay;
    bool nesterov;
} Attr;

static const QnAttrField sgd_fields[] = {
    QN_UPDATE_FIELD(Attr, momentum, "momentum", 0, "share of the moment that is kept"),
    QN_UPDATE_FIELD(Attr, decay, "weight_decay", 0, "of p, added to its gradient"),
    { .name = "nesterov",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, nesterov),
      .doc = "look ahead by the moment" },
};

static QnStatus sgd_infer(QnInfer *c)
{
    return qn_update_infer(c, "sgd", c->n_in - 3, false);
}

static QnCost sgd_cost(const QnNode *n)
{
    return qn_update_cost(n, n->n_in == 4 ? (((const Attr *)n->attr)->nesterov ? 8 : 6) : 4);
}

static QnStatus sgd_ref(const QnRefArgs *r)
{
    const Attr *a = r->attr;
    if (qn_update_is_left_out(r, r->n_in - 1))
        return QN_OK;
    bool moment = r->n_in == 4;
    double lr = r->in[r->n_in - 1][0];
    for (int64_t i = 0, n = qn_shape_count(&r->in_type[0]->shape); i < n; i++) {
        double p = r->in[0][i], g = r->in[r->n_in - 2][i] + a->decay * p;
        if (moment) {
            double b = a->momentum * r->in[1][i] + g;
            r->out[1][i] = b;
            g = a->nesterov ? g + a->momentum * b : b;
        }
        r->out[0][i] = p - lr * g;
    }
    return QN_OK;
}

static QnStatus sgd_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    if (n->n_in == 4)
        qn_update_call(n, "sgd_momentum", "sgd_momentum_at", c);
    else
        qn_update_call(n, "sgd_plain", "sgd_plain_at", c);
    qn_device_float(c, a->momentum);
    qn_device_float(c, a->decay);
    qn_device_int(c, a->nesterov);
    return QN_OK;
}

/* Updates have no gradient; lr is f32 whatever p is. */
static const QnSample sgd_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } }, { 0, .lo = 0.001, .hi = 0.1 } },
      .n_in = 3,
      .attr = &(Attr){ 0, 0.1, false },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 1, { 130 } }, { 1, { 130 } }, { 1, { 130 } }, { 0, .lo = 0.001, .hi = 0.1 } },
      .n_in = 4,
      .attr = &(Attr){ 0.9, 0.1, true },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 1, { 130 } }, { 1, { 130 } }, { 1, { 130 } }, { 0, .lo = 0.001, .hi = 0.1 } },
      .n_in = 4,
      .attr = &(Attr){ 0.9, 0, false },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    /* left out */
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } }, { 0, .lo = -0.1, .hi = -0.001 } },
      .n_in = 3,
      .attr = &(Attr){ 0, 0.1, false },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* Outputs: the new p, and the new moment if one is given (NULL: none). */
QN_API QnNode *qn_sgd(QnGraph *g, QnValue *p, QnValue *moment, QnValue *grad, QnValue *lr,
                      double momentum, double weight_decay, bool nesterov)
{
    return qn_update_emit(g, &qn_op_sgd, &(Attr){ momentum, weight_decay, nesterov }, p, &moment,
                          moment ? 1 : 0, grad, lr, NULL);
}

const QnOp qn_op_sgd = {
    .name = "sgd",
    .version = 1,
    .doc = "gradient descent step, with or without momentum",
    .n_in = 3,
    .n_in_max = 4,
    .n_out = -1,
    .traits = QN_NO_GRAD | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, sgd_fields),
    .infer = sgd_infer,
    .cost = sgd_cost,
    .ref = sgd_ref,
    .inplace = 3,
    .inplace_pairs = true,
    .device = QN_TEXT(sgd),
    .call = sgd_call,
    QN_SAMPLES(sgd_samples),
};
#endif

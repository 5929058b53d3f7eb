#include "nn/scaler.h"

static QnValue *scalar_state(QnGraph *g, const char *name, double first)
{
    return qn_state(g, &(QnStateAttr){ .name = name, .init = QN_INIT_CONSTANT, .a = first });
}

QnValue *qn_scaler_scale(QnScaler *s, QnNet *net, QnValue *loss)
{
    s->scale = scalar_state(net->g, "optim.loss_scale", QN_SCALER_FIRST);
    s->clean = scalar_state(net->g, "optim.loss_scale_clean", 0);
    return qn_mul(net->g, loss, s->scale);
}

/* Finite if the sum of all squares, in f32, is: x - x is 0 then, and NaN otherwise. */
static QnValue *all_finite(QnGraph *g, QnValue *const *grads, int n)
{
    QnValue *norm = qn_global_norm(g, grads, n);
    QnValue *none = qn_sub(g, norm, norm);
    return qn_equal(g, none, qn_scalar_like(g, none, 0));
}

QnStatus qn_scaler_unscale(QnScaler *s, QnNet *net, QnValue **grads, int n, QnValue **finite)
{
    QnGraph *g = net->g;
    QnValue *inverse = qn_reciprocal(g, s->scale);
    for (int i = 0; i < n; i++)
        grads[i] = qn_mul(g, grads[i], inverse);
    *finite = all_finite(g, grads, n);
    QnValue *one = qn_scalar_like(g, s->scale, 1), *zero = qn_scalar_like(g, s->scale, 0);
    QnValue *clean = qn_where(g, *finite, qn_add(g, s->clean, one), zero);
    QnValue *due = qn_greater_equal(g, clean, qn_scalar_like(g, clean, QN_SCALER_PERIOD));
    QnValue *halved = qn_maximum(g, qn_mul(g, s->scale, qn_scalar_like(g, s->scale, 0.5)), one);
    QnValue *grown = qn_where(g, due, qn_add(g, s->scale, s->scale), s->scale);
    QnValue *next = qn_where(g, *finite, grown, halved);
    qn_assign(g, s->scale, qn_minimum(g, next, qn_scalar_like(g, next, QN_SCALER_MOST)));
    qn_assign(g, s->clean, qn_where(g, due, zero, clean));
    return qn_graph_check(g);
}

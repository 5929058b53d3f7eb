#include "nn/init.h"

#include <math.h>

static void uniform(QnStateAttr *a, double bound)
{
    a->init = QN_INIT_UNIFORM;
    a->a = -bound;
    a->b = bound;
}

static void normal(QnStateAttr *a, double deviation)
{
    a->init = QN_INIT_NORMAL;
    a->a = 0;
    a->b = deviation;
}

static double root(double numerator, double fan)
{
    return fan > 0 ? sqrt(numerator / fan) : 0;
}

void qn_init_apply(const QnInitSpec *s, QnStateAttr *a)
{
    a->a = a->b = 0;
    switch (s->kind) {
    case QN_INIT_KIND_ZEROS: a->init = QN_INIT_ZEROS; break;
    case QN_INIT_KIND_ONES:
        a->init = QN_INIT_CONSTANT;
        a->a = 1;
        break;
    case QN_INIT_KIND_KAIMING_UNIFORM: uniform(a, root(1, s->fan_in)); break;
    case QN_INIT_KIND_KAIMING_NORMAL: normal(a, root(2, s->fan_out)); break;
    case QN_INIT_KIND_HE_UNIFORM: uniform(a, root(6, s->fan_in)); break;
    case QN_INIT_KIND_XAVIER_UNIFORM: uniform(a, root(6, s->fan_in + s->fan_out)); break;
    case QN_INIT_KIND_XAVIER_NORMAL: normal(a, root(2, s->fan_in + s->fan_out)); break;
    case QN_INIT_KIND_LECUN_UNIFORM: uniform(a, root(3, s->fan_in)); break;
    case QN_INIT_KIND_LECUN_NORMAL: normal(a, root(1, s->fan_in)); break;
    case QN_INIT_KIND_NORMAL: normal(a, s->scale); break;
    case QN_INIT_KIND_TRUNC_NORMAL:
        normal(a, s->scale);
        a->init = QN_INIT_TRUNC_NORMAL;
        break;
    case QN_INIT_KIND_UNIFORM: uniform(a, s->scale); break;
    }
}

void qn_init_fans(const QnShape *w, double *fan_in, double *fan_out)
{
    double window = 1;
    for (int i = 2; i < w->rank; i++)
        window *= (double)w->dim[i];
    *fan_in = w->rank > 1 ? window * (double)w->dim[1] : 0;
    *fan_out = w->rank > 0 ? window * (double)w->dim[0] : 0;
}

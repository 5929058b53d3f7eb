#include "plan/scaling.h"

#include <math.h>

/* Steps of equal devices differ: their standard deviation, as a share of the step. The slowest of n
 * draws from a normal distribution lies sqrt(2 ln n) deviations above the mean. */
static const double deviation = 0.02;

QnStatus qn_scaling_step(const QnCount *c, const QnCostRequest *r, const QnCoefs *k,
                         const QnLinks *l, double compression, QnScaling *out)
{
    QnCostRequest alone = *r;
    QnCostResult one;
    int n = r->n_cards;
    alone.n_cards = 1;
    *out = (QnScaling){ 0 };
    QN_TRY(qn_cost_step(c, &alone, k, &one));
    out->one_s = out->step_s = one.step_s;
    out->efficiency = 1;
    if (n < 2)
        return QN_OK;
    double bytes = 4 * c->trained, bucket = QN_MIN(bytes, 25e6),
           rate = 1e9 * r->card->bandwidth_gbs;
    double all = qn_comm_compressed_s(l, &k->fleet, n, l->per_node, bytes, compression, rate);
    double last = qn_comm_compressed_s(l, &k->fleet, n, l->per_node, bucket, compression, rate);
    /* behind the backward pass, two thirds of the step */
    out->exposed_s = QN_MAX(last, all - k->all[QN_COEF_OVERLAP] * one.step_s * 2 / 3);
    out->waiting_s = one.step_s * deviation * sqrt(2 * log(n));
    out->step_s += out->exposed_s + out->waiting_s;
    out->efficiency = out->one_s / out->step_s;
    return QN_OK;
}

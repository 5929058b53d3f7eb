/* What the devices of an offer share: weights and state in training; in serving each step (tensor
 * parallel), or the layers in order. */
#include "plan/offer_impl.h"
#include "plan/comm.h"

#include <math.h>

enum {
    HANDED_BYTES = 16384, /* what a layer hands to the next for an example, as a guess */
    MOST_WAYS = 8,        /* as many groups of keys and values as most models have */
    SOME_LAYERS = 8,      /* pieces in which weights are gathered where layers are not equal */
};

/* ---- training ---- */

static double layers_of(const QnModel *m)
{
    int at = m->family->layers;
    return at ? (double)QN_MAX(m->size[at - 1], 1) : SOME_LAYERS;
}

double qn_offer_spread(const QnJob *job, const QnFleet *f, const QnOffer *o, QnCount *c)
{
    if (!o->shard || o->n_cards < 2 || !job->train)
        return 0;
    QnLinks links = qn_links_of(o->card, 0);
    int local = QN_MIN(o->n_cards, links.per_node);
    double width = o->numbers == QN_NUMBERS_FP32 || o->numbers == QN_NUMBERS_TF32 ? 4 : 2;
    double bytes = width * c->params, n = o->n_cards;
    double copies = o->numbers == QN_NUMBERS_FP16_AMP || o->numbers == QN_NUMBERS_BF16_AMP
                        ? QN_MIN(c->activations, 2 * c->params)
                        : 0;
    c->activations -= copies * (1 - 1 / n);
    c->activations += 2 * bytes / layers_of(job->model); /* this layer's and the next one's */
    c->weights /= n;
    c->gradients /= n;
    c->optimizer /= n;
    c->trained /= n;
    return qn_comm_s(&links, f, QN_COMM_ALL_GATHER, o->n_cards, local, bytes);
}

double qn_offer_exposed(const QnJob *job, const QnCoefs *k, const QnCostResult *c, double gather)
{
    double hidden = k->all[QN_COEF_OVERLAP] * (c->step_s - c->by_limit[QN_LIMIT_LINK]);
    return QN_MAX(gather / layers_of(job->model), gather - hidden);
}

/* ---- serving ---- */

/* llama.cpp gives each device a part of the layers, and other stacks what is no sequence. */
static bool can_divide(const QnJob *job, const QnOffer *alone)
{
    if (job->train || job->model->family->image || job->tier == QN_TIER_LLAMA_CPP || !alone->count)
        return false;
    for (int64_t i = 0; i < alone->count->n_work; i++)
        if (alone->count->work[i].kind == QN_WORK_ATTENTION)
            return true;
    return false;
}

bool qn_offer_can_share(const QnJob *job, const QnOffer *alone, int ways)
{
    QnLinks links = qn_links_of(alone->card, 0);
    return ways <= MOST_WAYS && ways <= links.per_node && alone->n_cards % ways == 0 &&
           can_divide(job, alone);
}

int qn_offer_stages(const QnJob *job, const QnOffer *o)
{
    return o->shard && !job->train ? o->n_cards / QN_MAX(o->ways, 1) : 1;
}

void qn_offer_line_up(const QnJob *job, const QnFleet *f, double steps, QnOffer *o)
{
    double stages = qn_offer_stages(job, o), bytes = HANDED_BYTES * (double)o->batch;
    if (stages < 2)
        return;
    QnLinks links = qn_links_of(o->card, 0);
    double send =
        qn_comm_s(&links, f, QN_COMM_SEND, o->n_cards, QN_MIN(o->n_cards, links.per_node), bytes);
    qn_offer_add_s(&o->cost, QN_LIMIT_LINK, (stages - 1) * send * steps);
    o->cost.mfu /= stages;
    qn_offer_find_limit(&o->cost);
}

/* Cross-entropy and its gradient become one node, which visits each row of scores once, where the
 * incoming gradient does not depend on the losses: that of their mean or sum, also times a loss
 * scale, does not. Of the number of rows that count it may depend: the weights are then made from
 * the labels alone. Before maps are fused, since a group may hold both a loss and such a gradient.
 */
#include "ops/loss.h"
#include "ops/ops.h"
#include "pass/live.h"
#include "pass/pipeline.h"

enum { WEIGHTS = 1 }; /* cross_entropy's output */

/* Whether v can be had before the losses of `loss`, its weights given. */
static bool is_known_before(QnGraph *g, const QnValue *v, const QnNode *loss)
{
    qn_live_mark_after(g, loss, WEIGHTS);
    return !v->node->mark || (v->node == loss && v->index == WEIGHTS);
}

/* The cross_entropy that `grad` is the gradient of, or an equal one, before it; NULL: none. */
static QnNode *find_loss(QnGraph *g, const QnNode *grad)
{
    for (QnNode *n = g->first; n != grad; n = n->next) {
        if (n->op == &qn_op_cross_entropy && n->in[0] == grad->in[1] && n->in[1] == grad->in[2] &&
            is_known_before(g, grad->in[0], n))
            return n;
    }
    return NULL;
}

/* 1 where a row counts: what cross_entropy has as its second output. */
static QnValue *weights(QnGraph *g, const QnNode *loss)
{
    int64_t ignore = ((const QnCrossEntropyAttr *)loss->attr)->ignore;
    QnValue *none = qn_constant(g, QN_DTYPE_I64, &(QnShape){ 0 }, &ignore);
    return qn_cast(g, qn_not_equal(g, loss->in[1], none), loss->out[WEIGHTS].type.dtype);
}

static QnStatus join(QnGraph *g, QnNode *loss, QnNode *grad, const QnPipelineOptions *o)
{
    qn_graph_set_cursor(g, loss);
    QnNode *both = qn_cross_entropy_both(g, loss, grad);
    QN_TRY(qn_graph_check(g));
    if (!both || !o->prefers(o->keep_ctx, both, loss)) {
        if (both)
            qn_graph_remove(g, both);
        qn_graph_set_cursor(g, NULL);
        return QN_OK;
    }
    both->name = loss->name;
    qn_value_replace(&loss->out[0], &both->out[1]);
    qn_value_replace(&loss->out[WEIGHTS], weights(g, loss));
    qn_value_replace(&grad->out[0], &both->out[0]);
    qn_graph_set_cursor(g, NULL);
    if (o->report) {
        o->report->fused_groups++;
        o->report->fused_bytes_saved += (double)qn_type_bytes(&grad->in[1]->type);
    }
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    qn_graph_remove(g, grad);
    qn_graph_remove(g, loss);
    return qn_live_restore_order(g); /* the incoming gradient has to come first */
}

QnStatus qn_pass_fuse_loss(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->prefers)
        return QN_OK;
    for (QnNode *n = g->first, *next; n; n = next) {
        next = n->next;
        QnNode *loss = n->op == &qn_op_cross_entropy_grad ? find_loss(g, n) : NULL;
        if (loss)
            QN_TRY(join(g, loss, n, o));
    }
    return qn_pass_dce(g, o);
}

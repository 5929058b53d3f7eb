/* Dead code: a node stays if an output of the graph or a node with an effect needs it. Inputs and
 * states that nothing uses stay only if asked. */
#include "pass/pipeline.h"

static bool is_root(const QnNode *n, const QnPipelineOptions *o)
{
    return (n->op->traits & QN_EFFECT) || (o->keep_inputs && (n->op->traits & QN_INPUT)) ||
           (o->keep_states && (n->op->traits & QN_STATE));
}

QnStatus qn_pass_dce(QnGraph *g, const QnPipelineOptions *o)
{
    QN_GRAPH_EACH(g, n)
    n->mark = is_root(n, o);
    for (int64_t i = 0; i < g->n_outputs; i++)
        g->outputs[i].value->node->mark = 1;
    for (QnNode *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        for (int i = 0; n->mark && i < n->n_in; i++) {
            if (n->in[i])
                n->in[i]->node->mark = 1;
        }
        if (!n->mark)
            qn_graph_remove(g, n);
    }
    qn_graph_number(g);
    return QN_OK;
}

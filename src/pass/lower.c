/* Composites become what they are made of, until none is left that the device does not want. */
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/pipeline.h"

enum { MAX_ROUNDS = 16 };

static bool stays(const QnNode *n, const QnPipelineOptions *o)
{
    if (!n->op->lower)
        return true;
    return o->keep ? o->keep(o->keep_ctx, n) : n->op->ref || n->op == &qn_op_fused;
}

QnStatus qn_pass_lower(QnGraph *g, const QnPipelineOptions *o)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        bool again = false;
        for (QnNode *n = g->first, *next; n; n = next) {
            next = n->next;
            for (int i = 0; i < n->n_in; i++)
                n->in[i] = qn_value_resolve(n->in[i]);
            if (stays(n, o))
                continue;
            QnStatus st = qn_lower_node(g, n);
            if (st != QN_OK)
                return qn_fail_prefix("node %s", n->name ? n->name : n->op->name);
            again = true;
        }
        qn_graph_sweep(g);
        if (!again)
            return QN_OK;
    }
    return qn_fail(QN_EINTERNAL, "composites lower to composites without end");
}

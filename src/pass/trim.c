/* Results that nobody reads are not made, where an operator lets them go: of a matrix in 8 bits
 * either the straight or the transposed one, in evaluation and in a first layer. */
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "pass/rewrite.h"

static QnStatus trim(QnGraph *g, QnNode *n, const int32_t *uses)
{
    bool straight = qn_rewrite_bool(n, "straight"), turned = qn_rewrite_bool(n, "turned");
    bool first = uses[n->out[0].id] > 0, second = uses[n->out[1].id] > 0;
    if (!straight || !turned || first == second)
        return QN_OK;
    QnDtype dtype = n->out[0].type.dtype;
    QnValue *history = n->n_in > 2 ? n->in[2] : NULL;
    qn_graph_set_cursor(g, n);
    QnNode *q = qn_quantize_f8(g, n->in[0], n->in[1], history, dtype, first, second);
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    q->name = n->name;
    qn_value_replace(&n->out[!first], &q->out[0]);
    if (history)
        qn_value_replace(&n->out[2], &q->out[1]);
    return QN_OK;
}

QnStatus qn_pass_trim(QnGraph *g, const QnPipelineOptions *o)
{
    qn_graph_number(g);
    const int32_t *uses = qn_graph_uses(g);
    if (!uses)
        return QN_ENOMEM;
    for (QnNode *n = g->first; n; n = n->next) {
        if (n->op == &qn_op_quantize_f8)
            QN_TRY(trim(g, n, uses));
    }
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

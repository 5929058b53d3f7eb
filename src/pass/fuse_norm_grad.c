/* Where x is normalised and read by others too, as in a residual net, its gradient is a sum:
 * layer_norm_grad takes in what the others give, and writes the sum at once. Before maps are fused:
 * the sum is then made where the norm's share was, and the maps behind it read it as they would.
 */
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "pass/rewrite.h"

/* The layer_norm_grad whose dx v is, if nobody else reads that; NULL: there is none. */
static QnNode *grad_of(const QnValue *v, const int32_t *uses)
{
    QnNode *n = v->node;
    return n->op == &qn_op_layer_norm_grad && v->index == 0 && uses[v->id] == 1 ? n : NULL;
}

/* n = v + more with v a norm's dx; more is there before the norm's gradient is computed. */
static bool takes_sum(QnGraph *g, QnNode *n, QnNode *norm, QnValue *more,
                      const QnPipelineOptions *o)
{
    if (more->node->id >= norm->id || !qn_type_is_equal(&more->type, &n->out[0].type))
        return false;
    qn_graph_set_cursor(g, norm);
    QnNode *with = qn_layer_norm_grad_and(g, norm, more);
    qn_graph_set_cursor(g, NULL);
    if (!with)
        return false;
    if (!o->prefers(o->keep_ctx, with, norm)) {
        qn_graph_remove(g, with);
        return false;
    }
    with->name = norm->name;
    with->id = norm->id; /* it stands where that did */
    for (int i = 1; i < norm->n_out; i++)
        qn_value_replace(&norm->out[i], &with->out[i]);
    return qn_rewrite_to(g, n, &with->out[0]);
}

QnStatus qn_pass_fuse_norm_grad(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->prefers)
        return QN_OK;
    qn_graph_number(g);
    const int32_t *uses = qn_graph_uses(g);
    int64_t known = g->n_values;
    if (!uses)
        return QN_ENOMEM;
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        if (n->op != &qn_op_add)
            continue;
        for (int i = 0; i < 2; i++) {
            QnValue *v = qn_value_resolve(n->in[i]), *more = qn_value_resolve(n->in[1 - i]);
            QnNode *norm = v->id < known ? grad_of(v, uses) : NULL;
            if (!norm || !takes_sum(g, n, norm, more, o))
                continue;
            if (o->report) {
                o->report->fused_groups++;
                o->report->fused_bytes_saved += 2 * (double)qn_type_bytes(&v->type);
            }
            break;
        }
    }
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

/* Sums of maps: a sum or mean whose operand is a map, or a group of them, that nobody else reads
 * takes it in, where the device has a kernel for that; the operand is then never stored. */
#include "ops/body.h"
#include "ops/ops.h"
#include "ops/util.h"
#include "pass/pipeline.h"
#include "pass/rewrite.h"

/* Fused groups compute with their inputs; a cast of what is for storage stays by itself. */
static bool reads_storage(const QnNode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        if (qn_dtype_is_storage(n->in[i]->type.dtype))
            return true;
    }
    return false;
}

static bool takes_in(const QnNode *n, const int32_t *uses)
{
    if (n->op != &qn_op_sum && n->op != &qn_op_mean)
        return false;
    const QnValue *x = n->in[0];
    const QnNode *p = x->node;
    bool maps = (p->op->map || p->op == &qn_op_fused) && !reads_storage(p);
    return maps && uses[x->id] == 1 && p->n_out == 1 && qn_dtype_is_float(x->type.dtype) &&
           qn_type_bytes(&x->type) > 0 && x->type.layout == QN_LAYOUT_PLAIN;
}

/* What n sums of the maps p; NULL: the device has no kernel for it. It stands where the maps did,
 * since its result is smaller than what they read. */
static QnNode *emit(QnGraph *g, const QnNode *n, QnNode *p, const QnPipelineOptions *o)
{
    QnBodyOne one;
    const QnReduceAttr *a = n->attr;
    qn_graph_set_cursor(g, p);
    QnValue *y = qn_fused_sum(g, qn_body_of_maps(p, &one), p->in, a->axes, a->keepdims,
                              n->op == &qn_op_mean);
    qn_graph_set_cursor(g, NULL);
    if (qn_value_is_poison(y))
        return NULL;
    if (o->keep(o->keep_ctx, y->node))
        return y->node;
    qn_graph_remove(g, y->node);
    return NULL;
}

static void report(const QnNode *p, QnPipelineReport *r)
{
    if (!r)
        return;
    r->fused_groups += p->op != &qn_op_fused;
    r->fused_maps += p->op != &qn_op_fused;
    r->fused_bytes_saved += 2 * (double)qn_type_bytes(&p->out[0].type);
}

QnStatus qn_pass_fuse_sum(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->keep)
        return QN_OK;
    qn_graph_number(g);
    const int32_t *uses = qn_graph_uses(g);
    if (!uses)
        return QN_ENOMEM;
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        if (!takes_in(n, uses))
            continue;
        QnNode *p = n->in[0]->node;
        QnNode *y = emit(g, n, p, o);
        if (!y)
            continue;
        report(p, o->report);
        y->name = n->name ? n->name : p->name;
        qn_rewrite_to(g, n, &y->out[0]);
    }
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

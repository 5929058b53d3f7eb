/* A sum that a layer norm is the first to read goes into it: both are written in one pass over
 * memory, the sum only where others read it as well. What products take in (fuse_matmul) and groups
 * of maps (fuse) has found its place before. */
#include "ops/ops.h"
#include "pass/live.h"
#include "pass/pipeline.h"

static bool is_sum(const QnNode *n)
{
    const QnType *y = &n->out[0].type;
    return n->op == &qn_op_add && qn_dtype_is_float(y->dtype) && y->layout == QN_LAYOUT_PLAIN &&
           qn_type_is_equal(&n->in[0]->type, y) && qn_type_is_equal(&n->in[1]->type, y);
}

/* The first node that reads the sum, views left out, if it is a layer norm; NULL: another is. */
static QnNode *norm_of(const QnNode *sum)
{
    const QnValue *v = &sum->out[0];
    for (QnNode *n = sum->next; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i] == v && !(n->op->traits & QN_VIEW))
                return n->op == &qn_op_layer_norm && i == 0 ? n : NULL;
        }
    }
    return NULL;
}

/* Whether the norm's parameters can be had before the sum. */
static bool has_parameters(QnGraph *g, const QnNode *norm, const QnNode *sum)
{
    qn_live_mark_after(g, sum, -1);
    for (int i = 1; i < norm->n_in; i++) {
        if (norm->in[i] && norm->in[i]->node->mark)
            return false;
    }
    return true;
}

static bool is_read_once(const QnGraph *g, const QnValue *v)
{
    int reads = 0;
    QN_GRAPH_EACH(g, n)
    for (int i = 0; i < n->n_in; i++)
        reads += n->in[i] == v;
    for (int64_t i = 0; i < g->n_outputs; i++)
        reads += g->outputs[i].value == v;
    return reads == 1;
}

/* The graph is whole again, and in order, after each: a kept sum needs the norm's parameters too.
 */
static QnStatus take_sum(QnGraph *g, QnNode *sum, QnNode *norm, const QnPipelineOptions *o)
{
    bool keep = !is_read_once(g, &sum->out[0]);
    qn_graph_set_cursor(g, sum);
    QnNode *both = qn_add_layer_norm(g, sum->in[0], sum->in[1], norm, keep);
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    if (!both || !o->prefers(o->keep_ctx, both, norm)) {
        if (both)
            qn_graph_remove(g, both);
        return QN_OK;
    }
    both->name = norm->name;
    for (int i = 0; i < norm->n_out; i++)
        qn_value_replace(&norm->out[i], &both->out[keep + i]);
    if (keep)
        qn_value_replace(&sum->out[0], &both->out[0]);
    if (o->report) {
        o->report->fused_groups++;
        o->report->fused_maps++;
        o->report->fused_bytes_saved += (2.0 - keep) * (double)qn_type_bytes(&sum->out[0].type);
    }
    qn_graph_sweep(g);
    qn_graph_remove(g, norm);
    qn_graph_remove(g, sum);
    return qn_live_restore_order(g);
}

QnStatus qn_pass_fuse_norm(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->prefers)
        return QN_OK;
    for (QnNode *n = g->first, *next; n; n = next) {
        next = n->next;
        QnNode *norm = is_sum(n) ? norm_of(n) : NULL;
        if (next == norm && norm)
            next = norm->next;
        if (norm && has_parameters(g, norm, n))
            QN_TRY(take_sum(g, n, norm, o));
    }
    return qn_pass_dce(g, o);
}

/* A batch norm whose result goes into maps becomes its statistics and maps of its own: `fuse` then
 * joins both, so that the normalised images are neither written nor read; and what the backward
 * pass needs of them, `recompute` can make anew. */
#include "ops/norm.h"
#include "ops/ops.h"
#include "pass/norms.h"

/* Whether a map of x's shape reads the normalised images. */
static bool meets_a_map(const QnNode *norm)
{
    for (const QnNode *n = norm->next; n; n = n->next) {
        for (int i = 0; n->op->map && i < n->n_in; i++) {
            if (n->in[i] == &norm->out[0] &&
                qn_shape_is_equal(&n->out[0].type.shape, &norm->out[0].type.shape))
                return true;
        }
    }
    return false;
}

QnStatus qn_norm_split(QnGraph *g, QnNode *norm, QnNode *stats)
{
    qn_graph_set_cursor(g, stats->next);
    QnValue *y = qn_norm_affine(g, norm->in[0], qn_node_out(g, stats, 1), qn_node_out(g, stats, 0),
                                norm->in[2]);
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    stats->name = norm->name;
    qn_value_replace(&norm->out[0], y);
    for (int i = 1; i < norm->n_out; i++)
        qn_value_replace(&norm->out[i], &stats->out[i]);
    qn_graph_sweep(g); /* the next norm may read this one's result */
    qn_graph_remove(g, norm);
    return QN_OK;
}

static QnStatus split(QnGraph *g, QnNode *norm, const QnPipelineOptions *o)
{
    qn_graph_set_cursor(g, norm);
    QnNode *stats = qn_batch_norm_stats(g, norm);
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    if (o->prefers(o->keep_ctx, stats, norm))
        return qn_norm_split(g, norm, stats);
    qn_graph_remove(g, stats);
    return QN_OK;
}

QnStatus qn_pass_split_norm(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->prefers)
        return QN_OK;
    for (QnNode *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == &qn_op_batch_norm && meets_a_map(n))
            QN_TRY(split(g, n, o));
    }
    return QN_OK;
}

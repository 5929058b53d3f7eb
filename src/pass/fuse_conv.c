/* Maps after a convolution whose result nobody else reads go into it, where the device has a kernel
 * for that, or runs the two in one by as good a kernel as the convolution alone: the result is then
 * written once, as the maps leave it. It runs after the layouts are decided, since kernels may take
 * maps in one of them only. */
#include "ops/body.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "pass/rewrite.h"

static bool is_conv_for(const QnNode *n, int i, const int32_t *uses, int64_t known)
{
    const QnValue *v = n->in[i];
    return v && v->id < known && v->node->op == &qn_op_conv && uses[v->id] == 1 &&
           v->type.layout == n->out[0].type.layout &&
           qn_shape_is_equal(&v->type.shape, &n->out[0].type.shape);
}

/* The input that is a convolution to take the maps in: of several the last to run, as it has to
 * wait least. -1: none. */
static int find_conv(const QnNode *n, const int32_t *uses, int64_t known)
{
    int best = -1;
    for (int i = 0; i < n->n_in; i++)
        if (is_conv_for(n, i, uses, known) &&
            (best < 0 || n->in[i]->node->id > n->in[best]->node->id))
            best = i;
    return best;
}

static bool device_takes(const QnPipelineOptions *o, const QnNode *one, const QnNode *conv)
{
    return (o->keep && o->keep(o->keep_ctx, one)) ||
           (o->prefers && o->prefers(o->keep_ctx, one, conv));
}

/* NULL: the device does not take the two in one. */
static QnNode *emit(QnGraph *g, QnNode *n, int at, const QnPipelineOptions *o)
{
    QnBodyOne one;
    QnValue *more[QN_MAX_IN];
    int n_more = 0;
    const QnBody *b = qn_body_with_first(g->arena, qn_body_of_maps(n, &one), at);
    if (!b) {
        qn_graph_poison(g);
        return NULL;
    }
    for (int i = 0; i < n->n_in; i++)
        if (i != at)
            more[n_more++] = n->in[i];
    qn_graph_set_cursor(g, n);
    QnValue *y = qn_conv_map(g, n->in[at]->node, b, more, n_more);
    qn_graph_set_cursor(g, NULL);
    if (qn_value_is_poison(y))
        return NULL;
    y->type.layout = n->out[0].type.layout;
    if (device_takes(o, y->node, n->in[at]->node))
        return y->node;
    qn_graph_remove(g, y->node);
    return NULL;
}

QnStatus qn_pass_fuse_conv(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->keep && !o->prefers)
        return QN_OK;
    qn_graph_number(g);
    const int32_t *uses = qn_graph_uses(g);
    int64_t known = g->n_values;
    if (!uses)
        return QN_ENOMEM;
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        bool maps = (n->op->map || n->op == &qn_op_fused) && n->n_out == 1;
        int at = maps ? find_conv(n, uses, known) : -1;
        QnNode *y = at >= 0 ? emit(g, n, at, o) : NULL;
        if (!y)
            continue;
        if (o->report) {
            o->report->fused_groups += n->op != &qn_op_fused;
            o->report->fused_maps += n->op != &qn_op_fused;
            o->report->fused_bytes_saved += 2 * (double)qn_type_bytes(&n->out[0].type);
        }
        y->name = n->in[at]->node->name ? n->in[at]->node->name : n->name;
        qn_rewrite_to(g, n, &y->out[0]);
    }
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

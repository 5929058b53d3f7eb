/* The way back through a ReLU behind a batch norm, and through a max pool behind that, goes into
 * the batch norm's gradient, which makes what it needs of them again from its own operand: two
 * passes over that operand then, where each of the three read and wrote images of its size. Between
 * norm and pool nothing is stored any more. Before split_norm, while each is a node of its own. */
#include "ops/ops.h"
#include "pass/norms.h"
#include "pass/rewrite.h"

#include <string.h>

typedef struct Match {
    QnNode *norm, *grad;      /* batch_norm and batch_norm_grad */
    QnValue *y;               /* the ReLU's result */
    QnNode *mask, *let;       /* y > 0, and what it lets pass */
    QnNode *pool, *pool_grad; /* of y; NULL: its readers need it */
} Match;

/* Nodes that read v, outputs of the graph counted too. */
static int reads_of(const QnGraph *g, const QnValue *v)
{
    int reads = 0;
    QN_GRAPH_EACH(g, n)
    for (int i = 0; i < n->n_in; i++)
        reads += n->in[i] == v;
    for (int64_t i = 0; i < g->n_outputs; i++)
        reads += g->outputs[i].value == v;
    return reads;
}

static bool is_norm_of(const QnNode *norm, const QnNode *grad)
{
    return norm->op == &qn_op_batch_norm && norm->in[0] == grad->in[1] &&
           norm->in[1] == grad->in[4] && &norm->out[1] == grad->in[2] &&
           &norm->out[2] == grad->in[3] && norm->in[1]->type.dtype == norm->in[2]->type.dtype;
}

/* The one max_pool of y, if nobody but that, its gradient and the ReLU's reads y. */
static void find_pool(const QnGraph *g, Match *m)
{
    QnNode *pool_grad = m->let->in[1]->node, *pool = NULL;
    if (pool_grad->op != &qn_op_max_pool_grad || pool_grad->in[1] != m->y ||
        reads_of(g, m->y) != 3 || reads_of(g, m->let->in[1]) != 1)
        return;
    for (QnNode *n = m->y->node->next; n && !pool; n = n->next)
        pool = n->op == &qn_op_max_pool && n->in[0] == m->y ? n : NULL;
    if (!pool || memcmp(pool->attr, pool_grad->attr, sizeof(QnPoolAttr)))
        return;
    m->pool = pool;
    m->pool_grad = pool_grad;
}

/* Whether `grad` gets its dy from a ReLU that reads the norm. */
static bool match(const QnGraph *g, QnNode *grad, Match *m)
{
    QnNode *let = grad->in[0]->node, *mask = let->op == &qn_op_where ? let->in[0]->node : NULL;
    if (!mask || mask->op != &qn_op_greater || !qn_rewrite_is_full(mask->in[1], 0) ||
        !qn_rewrite_is_full(let->in[2], 0) || mask->in[0]->node->op != &qn_op_relu)
        return false;
    *m = (Match){ .grad = grad, .y = mask->in[0], .mask = mask, .let = let };
    const QnValue *before = m->y->node->in[0];
    m->norm = before->node;
    if (before->index != 0 || !is_norm_of(m->norm, grad) || reads_of(g, &let->out[0]) != 1 ||
        !qn_type_is_equal(&let->in[1]->type, &m->y->type))
        return false;
    find_pool(g, m);
    return true;
}

/* The nodes that take the place of the match's; the pool's two with `pooled`. */
typedef struct Joined {
    QnNode *stats, *grad, *pool;
} Joined;

static QnStatus emit(QnGraph *g, const Match *m, bool pooled, Joined *to)
{
    QnValue *bias = m->norm->in[2];
    *to = (Joined){ 0 };
    qn_graph_set_cursor(g, m->norm);
    to->stats = qn_batch_norm_stats(g, m->norm);
    QnValue *factor = qn_node_out(g, to->stats, 0);
    if (pooled) {
        qn_graph_set_cursor(g, m->pool);
        to->pool = qn_batch_norm_relu_pool(g, to->stats, bias, m->pool->attr)->node;
    }
    qn_graph_set_cursor(g, m->grad);
    to->grad = pooled ? qn_batch_norm_relu_pool_grad(g, m->pool_grad->in[0], m->grad, factor, bias,
                                                     m->pool->attr)
                      : qn_batch_norm_relu_grad(g, m->let->in[1], m->grad, factor, bias);
    qn_graph_set_cursor(g, NULL);
    return qn_graph_check(g);
}

static bool are_preferred(const Match *m, const Joined *j, const QnPipelineOptions *o)
{
    return o->prefers(o->keep_ctx, j->stats, m->norm) &&
           o->prefers(o->keep_ctx, j->grad, m->grad) &&
           (!j->pool || o->prefers(o->keep_ctx, j->pool, m->pool));
}

static void report(const Match *m, const Joined *j, const QnPipelineOptions *o)
{
    double bytes = (double)qn_type_bytes(&m->y->type);
    if (!o->report)
        return;
    o->report->fused_groups += j->pool ? 2 : 1;
    o->report->fused_maps += 2; /* of the ReLU's gradient */
    o->report->fused_bytes_saved += (j->pool ? 8 : 3) * bytes;
}

/* *done: the device takes it. */
static QnStatus join(QnGraph *g, const Match *m, bool pooled, const QnPipelineOptions *o,
                     bool *done)
{
    Joined j;
    QN_TRY(emit(g, m, pooled, &j));
    *done = are_preferred(m, &j, o);
    if (!*done) {
        qn_graph_remove(g, j.grad);
        if (j.pool)
            qn_graph_remove(g, j.pool);
        qn_graph_remove(g, j.stats);
        return QN_OK;
    }
    report(m, &j, o);
    j.grad->name = m->grad->name;
    for (int i = 0; i < m->grad->n_out; i++)
        qn_value_replace(&m->grad->out[i], &j.grad->out[i]);
    if (j.pool) {
        j.pool->name = m->pool->name;
        qn_value_replace(&m->pool->out[0], &j.pool->out[0]);
    }
    return qn_norm_split(g, m->norm, j.stats);
}

QnStatus qn_pass_fuse_norm_relu(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->prefers)
        return QN_OK;
    for (QnNode *n = g->first, *next; n; n = next) {
        Match m;
        bool done = false;
        next = n->next;
        if (n->op != &qn_op_batch_norm_grad || !match(g, n, &m))
            continue;
        if (m.pool)
            QN_TRY(join(g, &m, true, o, &done));
        if (!done)
            QN_TRY(join(g, &m, false, o, &done));
    }
    return qn_pass_dce(g, o);
}

#include "plan/reorder.h"

#include "ops/ops.h"

static bool is_attention(const QnNode *n)
{
    return n->op == &qn_op_attention || n->op == &qn_op_attention_grad;
}

static bool is_view(const QnNode *n)
{
    return (n->op->traits & QN_VIEW) != 0;
}

/* Whether all that reads a value is attention, by value id: from the last node to the first. */
static bool *only_read(QnGraph *g, QnNode *const *nodes)
{
    bool *only = qn_arena_array(g->arena, (size_t)g->n_values + 1, sizeof *only);
    for (int64_t i = 0; only && i < g->n_values; i++)
        only[i] = true;
    for (int64_t i = 0; only && i < g->n_outputs; i++)
        only[qn_value_resolve(g->outputs[i].value)->id] = false;
    for (int64_t i = g->n_nodes - 1; only && i >= 0; i--) {
        const QnNode *n = nodes[i];
        bool passes = is_view(n) || n->op == &qn_op_transpose || n->op == &qn_op_split;
        for (int k = 0; k < n->n_out && passes; k++)
            passes = only[n->out[k].id];
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] && !passes && !is_attention(n))
                only[qn_value_resolve(n->in[k])->id] = false;
    }
    return only;
}

/* Whether a value is what attention gave, in any order, by value id. */
static bool *from_attention(QnGraph *g, QnNode *const *nodes)
{
    bool *from = qn_arena_array(g->arena, (size_t)g->n_values + 1, sizeof *from);
    for (int64_t i = 0; from && i < g->n_nodes; i++) {
        const QnNode *n = nodes[i];
        bool passes = is_view(n) || n->op == &qn_op_transpose || n->op == &qn_op_concat;
        for (int k = 0; k < n->n_in && passes; k++)
            passes = n->in[k] && from[qn_value_resolve(n->in[k])->id];
        for (int k = 0; k < n->n_out; k++)
            from[n->out[k].id] = is_attention(n) || (passes && n->n_in > 0);
    }
    return from;
}

const bool *qn_reorder_moved(QnGraph *g)
{
    QnNode **nodes = qn_arena_array(g->arena, (size_t)g->n_nodes + 1, sizeof(QnNode *));
    bool *moved = qn_arena_array(g->arena, (size_t)g->n_nodes + 1, sizeof *moved);
    int64_t n = 0;
    if (!nodes || !moved)
        return NULL;
    QN_GRAPH_EACH(g, node)
    nodes[n++] = node;
    const bool *only = only_read(g, nodes), *from = from_attention(g, nodes);
    if (!only || !from)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        const QnOp *op = nodes[i]->op;
        bool before = op == &qn_op_transpose || op == &qn_op_split;
        for (int k = 0; k < nodes[i]->n_out && before; k++)
            before = only[nodes[i]->out[k].id];
        bool after = op == &qn_op_transpose || op == &qn_op_concat;
        moved[i] = before || (after && from[nodes[i]->out[0].id]);
    }
    return moved;
}

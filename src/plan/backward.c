#include "plan/backward.h"

#include "ops/ops.h"

#include <string.h>

static bool is_gradient(const QnOp *op)
{
    size_t n = strlen(op->name);
    return op == &qn_op_conv_dx || op == &qn_op_conv_dw ||
           (n > 5 && !strcmp(op->name + n - 5, "_grad"));
}

/* Marks by node ids what comes after a gradient. */
static void mark_backward(const QnGraph *g, bool *after)
{
    QN_GRAPH_EACH(g, n)
    {
        after[n->id] = is_gradient(n->op);
        for (int i = 0; i < n->n_in && !after[n->id]; i++)
            after[n->id] = n->in[i] && after[n->in[i]->node->id];
    }
}

static bool is_map(const QnNode *n)
{
    return (n->op->traits & QN_MAP) && n->n_out == 1;
}

static bool same_place(const QnNode *a, const QnNode *b)
{
    return a->name == b->name || (a->name && b->name && !strcmp(a->name, b->name));
}

/* Whether n can be a part of the kernel `by`, which alone reads it. A sum that leaves a kernel is
 * one of gradients. */
static bool joins(const QnNode *n, const QnNode *by)
{
    return is_map(n) && is_map(by) && by->op != &qn_op_add && same_place(n, by) &&
           qn_shape_is_equal(&n->out[0].type.shape, &by->out[0].type.shape);
}

/* From the last node to the first, as who reads a value must be known. */
static QnStatus find_kernels(const QnGraph *g, const QnNode **kernel)
{
    size_t values = (size_t)g->n_values + 1;
    const QnNode **first = qn_arena_array(g->arena, values, sizeof *first);
    bool *several = qn_arena_array(g->arena, values, sizeof *several);
    bool *after = qn_arena_array(g->arena, (size_t)g->n_nodes + 1, sizeof *after);
    if (!first || !several || !after)
        return QN_ENOMEM;
    mark_backward(g, after);
    for (int64_t i = 0; i < g->n_outputs; i++)
        several[g->outputs[i].value->id] = true;
    for (const QnNode *n = g->last; n; n = n->prev) {
        int64_t out = n->n_out ? n->out[0].id : 0;
        const QnNode *by = n->n_out && !several[out] ? first[out] : NULL;
        kernel[n->id] = by && after[by->id] && joins(n, by) ? by : n;
        for (int i = 0; i < n->n_in; i++) {
            if (!n->in[i])
                continue;
            const QnNode **f = &first[n->in[i]->id];
            several[n->in[i]->id] |= *f && *f != kernel[n->id];
            *f = kernel[n->id];
        }
    }
    return QN_OK;
}

static QnStatus add_reads(const QnGraph *g, QnBackward *b)
{
    const QnNode **reader = qn_arena_array(g->arena, (size_t)g->n_values + 1, sizeof *reader);
    int *parts = qn_arena_array(g->arena, (size_t)g->n_nodes + 1, sizeof *parts);
    if (!reader || !parts)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        const QnNode *root = b->kernel[n->id];
        parts[root->id]++;
        for (int i = 0; i < n->n_in; i++) {
            const QnValue *v = n->in[i];
            if (!v || reader[v->id] == root || b->kernel[v->node->id] == root)
                continue;
            reader[v->id] = root;
            b->read[root->id] += (double)qn_type_bytes(&v->type);
        }
    }
    QN_GRAPH_EACH(g, n)
    {
        double *read = &b->read[n->id],
               most = n->n_out ? 2.0 * (double)qn_type_bytes(&n->out[0].type) : 0;
        *read = parts[n->id] < 2 ? 0 : *read < most ? *read : most;
    }
    return QN_OK;
}

QnStatus qn_backward_find(QnGraph *g, QnBackward *out)
{
    qn_graph_number(g);
    size_t nodes = (size_t)g->n_nodes + 1;
    out->kernel = qn_arena_array(g->arena, nodes, sizeof *out->kernel);
    out->read = qn_arena_array(g->arena, nodes, sizeof *out->read);
    if (!out->kernel || !out->read)
        return QN_ENOMEM;
    QN_TRY(find_kernels(g, out->kernel));
    return add_reads(g, out);
}

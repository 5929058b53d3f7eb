/* Nodes, values, and the edits that passes make. Emission stands in ir/build.c. */
#include "ir/graph.h"

#include <string.h>

QnGraph *qn_graph_new(void)
{
    QnArena *arena = qn_arena_new();
    QnGraph *g = arena ? qn_arena_alloc(arena, sizeof *g) : NULL;
    QnValue *poison = g ? qn_arena_alloc(arena, sizeof *poison) : NULL;
    if (!poison) {
        qn_arena_free(arena);
        return NULL;
    }
    g->arena = arena;
    g->poison = poison;
    return g;
}

void qn_graph_free(QnGraph *g)
{
    if (!g)
        return;
    qn_free(g->outputs);
    qn_arena_free(g->arena);
}

QnStatus qn_graph_check(QnGraph *g)
{
    return g->error.code ? qn_error_adopt(&g->error) : QN_OK;
}

QnValue *qn_graph_poison(QnGraph *g)
{
    if (!g->error.code) {
        g->error = *qn_error_last();
        if (!g->error.code)
            g->error.code = QN_EINTERNAL;
    }
    return g->poison;
}

bool qn_value_is_poison(const QnValue *v)
{
    return !v || !v->node;
}

QnStatus qn_graph_output(QnGraph *g, const char *name, QnValue *v)
{
    QN_TRY(qn_graph_check(g));
    if (!name)
        return qn_fail(QN_EARG, "an output needs a name, not NULL");
    if (qn_value_is_poison(v))
        return qn_fail(QN_EGRAPH, "output '%s' has no value", name);
    for (int64_t i = 0; i < g->n_outputs; i++) {
        if (!strcmp(g->outputs[i].name, name)) {
            g->outputs[i].value = v;
            return QN_OK;
        }
    }
    QN_TRY(QN_GROW(g->outputs, g->cap_outputs, g->n_outputs));
    const char *copy = qn_arena_strdup(g->arena, name);
    if (!copy)
        return QN_ENOMEM;
    g->outputs[g->n_outputs++] = (QnOutput){ copy, v };
    return QN_OK;
}

QnValue *qn_graph_output_find(const QnGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_outputs; i++) {
        if (!strcmp(g->outputs[i].name, name))
            return g->outputs[i].value;
    }
    return NULL;
}

const QnType *qn_value_type(const QnValue *v)
{
    static const QnType none;
    return v ? &v->type : &none;
}

const QnOp *qn_value_op(const QnValue *v)
{
    return v && v->node ? v->node->op : NULL;
}

QnValue *qn_value_resolve(QnValue *v)
{
    while (v && v->forward)
        v = v->forward;
    return v;
}

void qn_value_replace(QnValue *old, QnValue *replacement)
{
    replacement = qn_value_resolve(replacement);
    if (old != replacement)
        old->forward = replacement;
}

void qn_graph_number(QnGraph *g)
{
    g->n_nodes = g->n_values = 0;
    QN_GRAPH_EACH(g, n)
    {
        n->id = g->n_nodes++;
        for (int i = 0; i < n->n_out; i++)
            n->out[i].id = g->n_values++;
    }
}

void qn_graph_sweep(QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = qn_value_resolve(n->in[i]);
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        g->outputs[i].value = qn_value_resolve(g->outputs[i].value);
    qn_graph_number(g);
}

static void unlink_node(QnGraph *g, QnNode *n)
{
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
}

static void link_before(QnGraph *g, QnNode *n, QnNode *before)
{
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(before ? &before->prev : &g->last) = n;
}

void qn_graph_remove(QnGraph *g, QnNode *n)
{
    if (g->cursor == n)
        g->cursor = n->next;
    unlink_node(g, n);
}

void qn_graph_move(QnGraph *g, QnNode *n, QnNode *before)
{
    if (n == before || n->next == before)
        return;
    unlink_node(g, n);
    link_before(g, n, before);
}

void qn_graph_set_cursor(QnGraph *g, QnNode *before)
{
    g->cursor = before;
}

void qn_graph_link(QnGraph *g, QnNode *n)
{
    link_before(g, n, g->cursor);
    n->id = g->n_nodes++;
    for (int i = 0; i < n->n_out; i++)
        n->out[i].id = g->n_values++;
}

int32_t *qn_graph_uses(QnGraph *g)
{
    int32_t *uses = qn_arena_array(g->arena, (size_t)g->n_values + 1, sizeof *uses);
    if (!uses)
        return NULL;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i])
                uses[n->in[i]->id]++;
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        uses[g->outputs[i].value->id]++;
    return uses;
}

void qn_scope_push(QnGraph *g, const char *name)
{
    name = name ? name : "";
    size_t used = strlen(g->scope), n = strlen(name);
    /* A scope too deep for the buffer keeps its depth as a lone dot, so that pops still match. */
    bool fits = used + n + 2 < sizeof g->scope;
    if (used && used + 1 < sizeof g->scope)
        g->scope[used++] = '.';
    if (fits)
        memcpy(g->scope + used, name, n + 1);
    else
        g->scope[used] = '\0';
}

void qn_scope_pop(QnGraph *g)
{
    char *dot = strrchr(g->scope, '.');
    *(dot ? dot : g->scope) = '\0';
}

void qn_node_name(QnGraph *g, QnNode *n, const char *name)
{
    if (!n || n->op == NULL)
        return;
    const char *full = g->scope[0] ? qn_arena_printf(g->arena, "%s.%s", g->scope, name)
                                   : qn_arena_strdup(g->arena, name);
    if (full)
        n->name = full;
    else
        qn_graph_poison(g);
}

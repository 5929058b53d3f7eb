/* The verifier, run after every pass in debug builds and in tests; and deep copies. */
#include "ir/graph.h"

#include <string.h>

static QnStatus verify_node(QnGraph *g, const QnNode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const QnValue *v = n->in[i];
        if (!v)
            continue;
        if (v->forward)
            return qn_fail(QN_EGRAPH, "input %d was replaced but not swept", i);
        if (!v->node || !v->node->mark)
            return qn_fail(QN_EGRAPH, "input %d is not computed before its use", i);
        if (v->index < 0 || v->index >= v->node->n_out || &v->node->out[v->index] != v)
            return qn_fail(QN_EGRAPH, "input %d is no output of its node", i);
    }
    if (n->op->attr_bytes)
        QN_TRY(qn_attr_check(n->op, n->attr));
    QnInfer c;
    QN_TRY(qn_graph_infer(g, n->op, n->attr, n->in, n->n_in, &c));
    if (c.n_out != n->n_out)
        return qn_fail(QN_EGRAPH, "has %d outputs, should have %d", n->n_out, c.n_out);
    for (int i = 0; i < n->n_out; i++) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        c.out[i].layout = n->out[i].type.layout;
        if (!qn_type_is_equal(&c.out[i], &n->out[i].type))
            return qn_fail(QN_EGRAPH, "output %d is %s, should be %s", i,
                           qn_type_text(&n->out[i].type, a), qn_type_text(&c.out[i], b));
        if (n->out[i].node != n || n->out[i].index != i)
            return qn_fail(QN_EGRAPH, "output %d does not point back", i);
    }
    return QN_OK;
}

QnStatus qn_graph_verify(QnGraph *g)
{
    QN_TRY(qn_graph_check(g));
    QN_GRAPH_EACH(g, n)
    n->mark = 0;
    const QnNode *prev = NULL;
    QN_GRAPH_EACH(g, n)
    {
        QnStatus st = n->prev == prev ? verify_node(g, n) : qn_fail(QN_EGRAPH, "broken list");
        if (st != QN_OK)
            return qn_fail_prefix("node %lld, %s%s%s", (long long)n->id, n->op->name,
                                  n->name ? " " : "", n->name ? n->name : "");
        n->mark = 1;
        prev = n;
    }
    if (g->last != prev)
        return qn_fail(QN_EGRAPH, "the list's end is wrong");
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnValue *v = g->outputs[i].value;
        if (!v || !v->node || !v->node->mark)
            return qn_fail(QN_EGRAPH, "output '%s' is not computed", g->outputs[i].name);
    }
    return QN_OK;
}

QnGraph *qn_graph_clone(QnGraph *g, QnValue ***map_out)
{
    if (qn_graph_check(g) != QN_OK)
        return NULL;
    qn_graph_number(g);
    QnGraph *to = qn_graph_new();
    QnValue **map = to ? qn_arena_array(to->arena, (size_t)g->n_values + 1, sizeof *map) : NULL;
    QnValue **in = map ? qn_arena_array(to->arena, QN_MAX_IN, sizeof *in) : NULL;
    bool ok = in && qn_dims_copy(g, to) == QN_OK;
    for (QnNode *n = g->first; ok && n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            in[i] = n->in[i] ? map[n->in[i]->id] : NULL;
        QnNode *copy = qn_graph_copy_node(to, n, in);
        ok = copy != NULL;
        for (int i = 0; ok && i < n->n_out; i++)
            map[n->out[i].id] = &copy->out[i];
    }
    for (int64_t i = 0; ok && i < g->n_outputs; i++)
        ok = qn_graph_output(to, g->outputs[i].name, map[g->outputs[i].value->id]) == QN_OK;
    if (!ok) {
        if (to)
            qn_graph_check(to);
        qn_graph_free(to);
        return NULL;
    }
    to->next_stream = g->next_stream;
    if (map_out)
        *map_out = map;
    return to;
}

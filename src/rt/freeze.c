/* Weights that nobody changes any more, as constants of the graph: passes then compute with them
 * (batch norms go into convolutions), and kernels pack them once. */
#include "ir/graph.h"
#include "quern/ops.h"
#include "rt/store.h"

enum { WRITTEN = 1, REPLACED = 2 }; /* marks of states */

/* States that the graph itself writes: they stay. */
static void mark_written(QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    n->mark = 0;
    QN_GRAPH_EACH(g, n)
    {
        if ((n->op->traits & QN_EFFECT) && n->n_in > 0 && n->in[0])
            n->in[0]->node->mark = WRITTEN;
    }
}

static QnStatus find(const QnStore *s, const QnNode *n, const void **data)
{
    const char *name = qn_node_label(n);
    const QnSlot *slot = s ? qn_store_find(s, name) : NULL;
    if (!slot)
        return qn_fail(QN_ENOTFOUND, "the weight '%s' has no value", name);
    if (!qn_type_is_equal(&slot->type, &n->out[0].type)) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "state '%s' is %s in the graph and %s in the store", name,
                       qn_type_text(&n->out[0].type, a), qn_type_text(&slot->type, b));
    }
    return qn_store_borrow(s, slot, data);
}

static QnValue *constant(QnGraph *g, const QnNode *n, const void *data)
{
    const QnType *t = &n->out[0].type;
    QnValue *v = qn_constant_lasting(g, t->dtype, &t->shape, data);
    if (qn_value_is_poison(v))
        return v;
    v->node->name = n->name;
    return t->layout == QN_LAYOUT_PLAIN ? v : qn_relayout(g, v, t->layout);
}

/* Everything that can fail for want of content comes before the graph is touched. */
QnStatus qn_graph_freeze(QnGraph *g, const QnStore *store)
{
    const void *data;
    QN_TRY(qn_graph_check(g));
    mark_written(g);
    QN_GRAPH_EACH(g, n)
    {
        if ((n->op->traits & QN_STATE) && !n->mark)
            QN_TRY(find(store, n, &data));
    }
    for (QnNode *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!(n->op->traits & QN_STATE) || n->mark)
            continue;
        QN_TRY(find(store, n, &data));
        qn_graph_set_cursor(g, n);
        QnValue *v = constant(g, n, data);
        if (qn_value_is_poison(v))
            break;
        qn_value_replace(&n->out[0], v);
        n->mark = REPLACED;
    }
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    for (QnNode *n = g->first, *next; n; n = next) {
        next = n->next;
        if ((n->op->traits & QN_STATE) && n->mark == REPLACED)
            qn_graph_remove(g, n);
    }
    qn_graph_number(g);
    return QN_OK;
}

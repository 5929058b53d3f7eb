#include "ir/reads.h"

/* Whether elements lie in memory in the row-major order of the shape; images do so in any layout if
 * they have one channel or one pixel. */
static bool is_row_major(const QnType *t)
{
    bool one_pixel = true;
    for (int i = 2; i < t->shape.rank; i++)
        one_pixel &= t->shape.dim[i] == 1;
    return t->layout == QN_LAYOUT_PLAIN || t->shape.dim[1] == 1 || one_pixel;
}

bool qn_reads_is_view(const QnNode *n)
{
    return (n->op->traits & (QN_VIEW | QN_RELAYOUT)) && is_row_major(&n->out[0].type) &&
           is_row_major(&n->in[0]->type);
}

/* One step towards the root; NULL: v is one. */
static const QnValue *under(const QnValue *v)
{
    if (qn_reads_is_view(v->node))
        return v->node->in[0];
    return v->node->op->traits & QN_EFFECT ? v->node->in[1] : NULL;
}

const QnValue *qn_reads_root(const QnValue *v)
{
    for (const QnValue *next; (next = under(v));)
        v = next;
    return v;
}

/* Whether it counts, and of which root. */
static const QnValue *read_root(const QnReads *r, const QnNode *n, int in)
{
    return n->in[in] && !qn_reads_is_view(n) ? r->root[n->in[in]->id] : NULL;
}

static QnStatus find_roots(const QnGraph *g, QnArena *arena, QnReads *r)
{
    r->root = qn_arena_array(arena, (size_t)g->n_values + 1, sizeof *r->root);
    if (!r->root)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_out; i++) {
            const QnValue *v = &n->out[i], *below = under(v);
            r->root[v->id] = below ? r->root[below->id] : v;
        }
    }
    return QN_OK;
}

QnStatus qn_reads_init(const QnGraph *g, QnArena *arena, QnReads *r)
{
    int64_t reads = 0;
    QN_TRY(find_roots(g, arena, r));
    r->start = qn_arena_array(arena, (size_t)g->n_values + 2, sizeof *r->start);
    if (!r->start)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            const QnValue *root = read_root(r, n, i);
            if (root) {
                r->start[root->id + 2]++;
                reads++;
            }
        }
    }
    for (int64_t i = 2; i < g->n_values + 2; i++)
        r->start[i] += r->start[i - 1];
    r->list = qn_arena_array(arena, (size_t)reads + 1, sizeof *r->list);
    if (!r->list)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            const QnValue *root = read_root(r, n, i);
            if (root)
                r->list[r->start[root->id + 1]++] = (QnRead){ n, i };
        }
    }
    return QN_OK;
}

#include "pass/live.h"

QnStatus qn_live_users(QnGraph *g, QnArena *tmp, QnUsers *u)
{
    qn_graph_number(g);
    int64_t edges = 0;
    u->start = qn_arena_array(tmp, (size_t)g->n_values + 2, sizeof *u->start);
    u->is_output = qn_arena_array(tmp, (size_t)g->n_values + 1, sizeof *u->is_output);
    if (!u->start || !u->is_output)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i]) {
                u->start[n->in[i]->id + 2]++;
                edges++;
            }
        }
    }
    for (int64_t i = 2; i < g->n_values + 2; i++)
        u->start[i] += u->start[i - 1];
    u->users = qn_arena_array(tmp, (size_t)edges + 1, sizeof *u->users);
    if (!u->users)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i])
                u->users[u->start[n->in[i]->id + 1]++] = n;
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        u->is_output[g->outputs[i].value->id] = true;
    return QN_OK;
}

/* ---- the peak ---- */

typedef struct Life {
    QnGraph *graph;
    QnReads reads;
    int64_t *last;  /* by root's id: the last reading node; n_nodes: never dies */
    bool *in_state; /* by value id: computed in a state's memory */
    bool *gone;     /* by value id: its memory went over to a result */
} Life;

static int64_t bytes_of(const QnValue *v)
{
    return (qn_type_bytes(&v->type) + 63) / 64 * 64;
}

static bool is_arena(const QnValue *root)
{
    return !(root->node->op->traits & QN_LEAF) || (root->node->op->traits & QN_INPUT);
}

static bool may_overlap(const QnNode *n, int in, int out)
{
    const QnType *x = &n->in[in]->type, *y = &n->out[out].type;
    if (n->op->traits & QN_MAP)
        return qn_shape_is_equal(&x->shape, &y->shape) && x->layout == y->layout &&
               qn_dtype_bytes(x->dtype) == qn_dtype_bytes(y->dtype);
    return (n->op->inplace >> in & 1) && (n->op->inplace_pairs ? in == out : out == 0) &&
           qn_type_bytes(x) == qn_type_bytes(y);
}

/* Whether the assign's value may be computed where the state lies: all others have read it then. */
static bool is_placed(const Life *l, const QnNode *assign)
{
    const QnValue *s = assign->in[0], *r = l->reads.root[assign->in[1]->id];
    const QnNode *p = r->node;
    if ((p->op->traits & QN_LEAF) || l->in_state[r->id])
        return false;
    for (int64_t k = l->reads.start[s->id]; k < l->reads.start[s->id + 1]; k++) {
        const QnRead *read = &l->reads.list[k];
        if (read->node->id >= p->id && read->node != assign &&
            (read->node != p || !may_overlap(p, read->in, r->index)))
            return false;
    }
    return true;
}

static QnStatus fill(Life *l, QnArena *tmp)
{
    QnGraph *g = l->graph;
    QN_TRY(qn_reads_init(g, tmp, &l->reads));
    l->last = qn_arena_array(tmp, (size_t)g->n_values + 1, sizeof *l->last);
    l->in_state = qn_arena_array(tmp, (size_t)g->n_values + 1, sizeof *l->in_state);
    l->gone = qn_arena_array(tmp, (size_t)g->n_values + 1, sizeof *l->gone);
    if (!l->last || !l->in_state || !l->gone)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        bool effect = n->op->traits & QN_EFFECT;
        if (effect && is_placed(l, n)) {
            l->in_state[l->reads.root[n->in[1]->id]->id] = true;
            continue;
        }
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i] && !qn_reads_is_view(n))
                l->last[l->reads.root[n->in[i]->id]->id] = effect ? g->n_nodes : n->id;
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        l->last[l->reads.root[g->outputs[i].value->id]->id] = g->n_nodes;
    return QN_OK;
}

/* An operand that dies at n and may lie under its output; NULL: none. */
static const QnValue *dying_operand(const Life *l, const QnNode *n, int out)
{
    for (int i = 0; i < n->n_in; i++) {
        const QnValue *root = n->in[i] ? l->reads.root[n->in[i]->id] : NULL;
        if (root && is_arena(root) && !l->gone[root->id] && !l->in_state[root->id] &&
            l->last[root->id] == n->id && may_overlap(n, i, out) &&
            bytes_of(root) == bytes_of(&n->out[out]))
            return root;
    }
    return NULL;
}

/* Bytes alive after n, given those before; *most counts operands and results together. */
static int64_t step(const Life *l, const QnNode *n, int64_t now, int64_t *most)
{
    bool moved = qn_reads_is_view(n) || (n->op->traits & (QN_LEAF | QN_EFFECT));
    for (int i = 0; !moved && i < n->n_out; i++) {
        const QnValue *v = &n->out[i];
        if (l->in_state[v->id])
            continue;
        const QnValue *over = dying_operand(l, n, i);
        if (over)
            l->gone[over->id] = true;
        else
            now += bytes_of(v);
    }
    *most = now;
    for (int i = 0; !moved && i < n->n_in; i++) {
        const QnValue *root = n->in[i] ? l->reads.root[n->in[i]->id] : NULL;
        if (root && is_arena(root) && !l->gone[root->id] && !l->in_state[root->id] &&
            l->last[root->id] == n->id) {
            l->gone[root->id] = true;
            now -= bytes_of(root);
        }
    }
    for (int i = 0; !moved && i < n->n_out; i++) {
        if (!l->in_state[n->out[i].id] && l->last[n->out[i].id] == 0)
            now -= bytes_of(&n->out[i]); /* nobody reads it */
    }
    return now;
}

QnStatus qn_live_peak(QnGraph *g, int64_t *bytes, QnNode **at)
{
    QnArena *tmp = qn_arena_new();
    Life l = { .graph = g };
    qn_graph_number(g);
    QnStatus st = tmp ? fill(&l, tmp) : QN_ENOMEM;
    int64_t now = 0, peak = -1;
    for (QnNode *n = g->first; !st && n; n = n->next) {
        for (int i = 0; i < n->n_out; i++) {
            if (qn_type_bytes(&n->out[i].type) < 0) {
                *bytes = -1;
                goto done;
            }
        }
        if (n->op->traits & QN_INPUT)
            now += bytes_of(&n->out[0]);
    }
    for (QnNode *n = g->first; !st && n; n = n->next) {
        int64_t most;
        now = step(&l, n, now, &most);
        if (most > peak) {
            peak = most;
            if (at)
                *at = n;
        }
    }
    *bytes = QN_MAX(peak, 0);
done:
    qn_arena_free(tmp);
    return st;
}

/* ---- order ---- */

void qn_live_mark_after(QnGraph *g, const QnNode *n, int but)
{
    QN_GRAPH_EACH(g, x)
    {
        x->mark = x == n;
        for (int i = 0; i < x->n_in; i++) {
            const QnValue *v = x->in[i];
            x->mark |= v && v->node->mark && !(v->node == n && v->index == but);
        }
    }
}

typedef struct Frame {
    QnNode *node;
    int next; /* input to look at */
} Frame;

/* Places n after everything that it needs. mark: 0 waits, 1 is being placed, 2 is placed. */
static QnStatus place(QnGraph *g, QnNode *n, Frame *stack)
{
    int64_t depth = 0;
    stack[depth++] = (Frame){ n, 0 };
    n->mark = 1;
    while (depth) {
        Frame *f = &stack[depth - 1];
        if (f->next == f->node->n_in) {
            f->node->mark = 2;
            qn_graph_move(g, f->node, NULL);
            depth--;
            continue;
        }
        const QnValue *v = f->node->in[f->next++];
        if (!v || v->node->mark == 2)
            continue;
        if (v->node->mark == 1)
            return qn_fail(QN_EINTERNAL, "a cycle through %s", v->node->op->name);
        v->node->mark = 1;
        stack[depth++] = (Frame){ v->node, 0 };
    }
    return QN_OK;
}

QnStatus qn_live_restore_order(QnGraph *g)
{
    qn_graph_number(g);
    Frame *stack = qn_alloc_array((size_t)g->n_nodes + 1, sizeof *stack);
    QnNode **list = qn_alloc_array((size_t)g->n_nodes + 1, sizeof *list);
    QnStatus st = stack && list ? QN_OK : QN_ENOMEM;
    int64_t count = 0;
    if (st)
        goto done;
    QN_GRAPH_EACH(g, n)
    {
        n->mark = 0;
        list[count++] = n;
    }
    for (int64_t i = 0; i < count; i++) {
        if (!list[i]->mark)
            QN_TRY_DONE(place(g, list[i], stack));
    }
    qn_graph_number(g);
done:
    qn_free(stack);
    qn_free(list);
    return st;
}

/* Order of nodes: of those that could run, the one that leaves the least memory in use goes next.
 * The new order is taken only if its peak (pass/live.h) is lower. */
#include "pass/live.h"
#include "pass/pipeline.h"

typedef struct Schedule {
    QnGraph *graph;
    QnUsers users;
    int64_t *waiting; /* by node id: operands not computed yet */
    int64_t *readers; /* by root's id: readings still to come, one more for outputs of the graph */
    QnNode **ready;
    int64_t n_ready;
    QnNode **order;
    int64_t n;
} Schedule;

static bool counts(const QnValue *root)
{
    return !(root->node->op->traits & QN_LEAF) || (root->node->op->traits & QN_INPUT);
}

static const QnValue *root_in(const QnNode *n, int i)
{
    return n->in[i] ? qn_reads_root(n->in[i]) : NULL;
}

/* How often n reads the root of its operand i; 0 where an earlier operand has the same. */
static int64_t readings(const QnNode *n, int i)
{
    const QnValue *root = root_in(n, i);
    int64_t count = 0;
    for (int k = 0; k < n->n_in; k++) {
        if (root_in(n, k) == root) {
            if (k < i)
                return 0;
            count++;
        }
    }
    return count;
}

/* Change of the memory in use once n has run. */
static int64_t change(const Schedule *s, const QnNode *n)
{
    int64_t bytes = 0;
    if (qn_reads_is_view(n) || (n->op->traits & QN_EFFECT))
        return INT64_MIN; /* costs nothing */
    for (int i = 0; i < n->n_out; i++)
        bytes += qn_type_bytes(&n->out[i].type);
    for (int i = 0; i < n->n_in; i++) {
        const QnValue *root = root_in(n, i);
        if (root && counts(root) && readings(n, i) == s->readers[root->id])
            bytes -= qn_type_bytes(&root->type);
    }
    return bytes;
}

static void run(Schedule *s, QnNode *n)
{
    s->order[s->n++] = n;
    for (int i = 0; !qn_reads_is_view(n) && i < n->n_in; i++) {
        if (n->in[i])
            s->readers[qn_reads_root(n->in[i])->id]--;
    }
    for (int i = 0; i < n->n_out; i++) {
        int64_t id = n->out[i].id;
        for (int64_t k = s->users.start[id]; k < s->users.start[id + 1]; k++) {
            if (--s->waiting[s->users.users[k]->id] == 0)
                s->ready[s->n_ready++] = s->users.users[k];
        }
    }
}

static QnNode *take_best(Schedule *s)
{
    int64_t best = 0, least = INT64_MAX;
    for (int64_t i = 0; i < s->n_ready; i++) {
        int64_t c = change(s, s->ready[i]);
        if (c < least || (c == least && s->ready[i]->id < s->ready[best]->id)) {
            least = c;
            best = i;
        }
    }
    QnNode *n = s->ready[best];
    s->ready[best] = s->ready[--s->n_ready];
    return n;
}

static QnStatus make_order(Schedule *s, QnArena *tmp)
{
    QnGraph *g = s->graph;
    QN_TRY(qn_live_users(g, tmp, &s->users));
    s->waiting = qn_arena_array(tmp, (size_t)g->n_nodes + 1, sizeof *s->waiting);
    s->readers = qn_arena_array(tmp, (size_t)g->n_values + 1, sizeof *s->readers);
    s->ready = qn_arena_array(tmp, (size_t)g->n_nodes + 1, sizeof *s->ready);
    s->order = qn_arena_array(tmp, (size_t)g->n_nodes + 1, sizeof *s->order);
    if (!s->waiting || !s->readers || !s->ready || !s->order)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            s->waiting[n->id] += n->in[i] != NULL;
            if (n->in[i] && !qn_reads_is_view(n))
                s->readers[qn_reads_root(n->in[i])->id]++;
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        s->readers[qn_reads_root(g->outputs[i].value)->id]++;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_LEAF)
            run(s, n);
        else if (s->waiting[n->id] == 0 && n->n_in == 0)
            s->ready[s->n_ready++] = n;
    }
    while (s->n_ready)
        run(s, take_best(s));
    return s->n == g->n_nodes ? QN_OK : qn_fail(QN_EINTERNAL, "the graph has a cycle");
}

static QnStatus schedule(QnGraph *g, const QnPipelineOptions *o, QnArena *tmp)
{
    Schedule s = { .graph = g };
    int64_t before, after;
    QN_TRY(qn_live_peak(g, &before, NULL));
    if (before < 0)
        return QN_OK; /* symbolic */
    QnNode **old = qn_arena_array(tmp, (size_t)g->n_nodes + 1, sizeof *old);
    if (!old)
        return QN_ENOMEM;
    int64_t n = 0;
    QN_GRAPH_EACH(g, node)
    old[n++] = node;
    QN_TRY(make_order(&s, tmp));
    for (int64_t i = 0; i < n; i++)
        qn_graph_move(g, s.order[i], NULL);
    QN_TRY(qn_live_peak(g, &after, NULL));
    for (int64_t i = 0; after >= before && i < n; i++)
        qn_graph_move(g, old[i], NULL);
    qn_graph_number(g);
    if (o->report) {
        if (!o->report->peak_bytes_before) /* else recompute has said it */
            o->report->peak_bytes_before = before;
        o->report->peak_bytes_after = QN_MIN(before, after);
        o->report->scheduled = after < before;
    }
    return QN_OK;
}

QnStatus qn_pass_schedule(QnGraph *g, const QnPipelineOptions *o)
{
    QnArena *tmp = qn_arena_new();
    QnStatus st = tmp ? schedule(g, o, tmp) : QN_ENOMEM;
    qn_arena_free(tmp);
    return st;
}

/* Recomputation: while the peak of memory exceeds the budget, the largest value that waits across
 * it, is cheap to compute, and whose operands are there anyway when it is needed again, is computed
 * a second time instead of being kept. A value not needed before the peak at all just moves. */
#include "pass/live.h"
#include "pass/pipeline.h"

enum { MAX_STEPS = 4096 };

typedef struct Scan {
    QnGraph *graph;
    QnUsers users;
    int64_t *last; /* by value id: the last node that reads it, through views */
    int64_t peak;  /* id of the node at the peak */
} Scan;

typedef struct Choice {
    QnNode *node, *before; /* to be computed again before this one */
    int64_t bytes;
    bool move; /* nothing uses it earlier */
} Choice;

static bool is_cheap(const QnNode *n)
{
    return n->n_out == 1 && !(n->op->traits & (QN_LEAF | QN_EFFECT | QN_VIEW)) &&
           (n->op->map || (n->op->traits & QN_MOVES_DATA));
}

static QnStatus scan_last(Scan *s, QnArena *tmp)
{
    QnGraph *g = s->graph;
    s->last = qn_arena_array(tmp, (size_t)g->n_values + 1, sizeof *s->last);
    if (!s->last)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_values; i++)
        s->last[i] = s->users.is_output[i] ? g->n_nodes : -1;
    for (QnNode *n = g->last; n; n = n->prev) {
        bool passes_on = n->n_out && (qn_live_is_view(n) || (n->op->traits & QN_EFFECT));
        int64_t end = passes_on ? QN_MAX(s->last[n->out[0].id], n->id) : n->id;
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i])
                s->last[n->in[i]->id] = QN_MAX(s->last[n->in[i]->id], end);
        }
    }
    return QN_OK;
}

/* Whether the value is still there when node `at` runs, whether or not we read it then. */
static bool is_there(const Scan *s, const QnValue *v, int64_t at)
{
    const QnValue *root = qn_live_root(v);
    if (!(root->node->op->traits & QN_LEAF))
        return s->last[root->id] >= at;
    if (root->node->op->traits & QN_INPUT)
        return s->last[root->id] >= at;
    for (int64_t k = s->users.start[root->id]; k < s->users.start[root->id + 1]; k++) {
        if (s->users.users[k]->op->traits & QN_EFFECT)
            return false; /* a later reader would force the update to wait */
    }
    return true;
}

/* The first use after the peak; NULL: the value is no candidate. */
static QnNode *late_use(const Scan *s, const QnValue *v, bool *early)
{
    QnNode *late = NULL;
    *early = false;
    if (s->users.is_output[v->id])
        return NULL;
    for (int64_t k = s->users.start[v->id]; k < s->users.start[v->id + 1]; k++) {
        QnNode *u = s->users.users[k];
        bool passes_on = u->n_out && (qn_live_is_view(u) || (u->op->traits & QN_EFFECT));
        if (u->id == s->peak || (u->id < s->peak && passes_on && s->last[u->out[0].id] >= s->peak))
            return NULL;
        if (u->id < s->peak)
            *early = true;
        else if (!late)
            late = u; /* users stand in order */
    }
    return late;
}

static Choice choose(const Scan *s)
{
    Choice best = { 0 };
    for (QnNode *n = s->graph->first; n && n->id < s->peak; n = n->next) {
        if (!is_cheap(n))
            continue;
        int64_t bytes = qn_type_bytes(&n->out[0].type);
        bool early, there = true;
        if (bytes <= best.bytes)
            continue;
        QnNode *before = late_use(s, &n->out[0], &early);
        for (int i = 0; before && there && i < n->n_in; i++)
            there = !n->in[i] || is_there(s, n->in[i], before->id);
        if (before && there)
            best = (Choice){ n, before, bytes, !early };
    }
    return best;
}

static QnStatus apply(const Scan *s, const Choice *c)
{
    QnGraph *g = s->graph;
    if (c->move) {
        qn_graph_move(g, c->node, c->before);
        return QN_OK;
    }
    qn_graph_set_cursor(g, c->before);
    QnNode *copy = qn_graph_copy_node(g, c->node, c->node->in);
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    const QnValue *v = &c->node->out[0];
    for (int64_t k = s->users.start[v->id]; k < s->users.start[v->id + 1]; k++) {
        QnNode *u = s->users.users[k];
        for (int i = 0; u->id > s->peak && u != copy && i < u->n_in; i++) {
            if (u->in[i] == v)
                u->in[i] = &copy->out[0];
        }
    }
    return QN_OK;
}

/* One step; *done when nothing is left to gain. */
static QnStatus step(QnGraph *g, const QnPipelineOptions *o, QnArena *tmp, bool *done)
{
    Scan s = { .graph = g };
    QnNode *at = NULL;
    int64_t bytes;
    QN_TRY(qn_live_peak(g, &bytes, &at));
    *done = true;
    if (bytes <= o->memory_budget_bytes || !at)
        return QN_OK;
    s.peak = at->id;
    QN_TRY(qn_live_users(g, tmp, &s.users));
    QN_TRY(scan_last(&s, tmp));
    Choice c = choose(&s);
    if (!c.node)
        return QN_OK;
    *done = false;
    if (o->report && !c.move)
        o->report->recomputed_nodes++;
    return apply(&s, &c);
}

QnStatus qn_pass_recompute(QnGraph *g, const QnPipelineOptions *o)
{
    if (o->memory_budget_bytes <= 0)
        return QN_OK;
    bool done = false;
    for (int i = 0; !done && i < MAX_STEPS; i++) {
        QnArena *tmp = qn_arena_new();
        QnStatus st = tmp ? step(g, o, tmp, &done) : QN_ENOMEM;
        qn_arena_free(tmp);
        QN_TRY(st);
    }
    qn_graph_number(g);
    return QN_OK;
}

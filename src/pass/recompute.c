/* Recomputation: while the peak of memory exceeds the budget, the largest value that waits across
 * it, is cheap to compute, and whose operands are there anyway when it is needed again (or are
 * small beside it), is computed a second time instead of being kept. A value not needed before the
 * peak at all just moves. Without a budget, what takes little time is: a share of the step's. */
#include "pass/live.h"
#include "pass/pipeline.h"

#include <math.h>

enum {
    MAX_STEPS = 4096,
    WORTH_BYTES = 256 << 10, /* without a budget, smaller values are not worth a node */
};

/* What may be spent: of a budget's steps HUGE_VAL. In bytes that a device could move meanwhile. */
typedef struct Purse {
    double left, balance;
    int64_t budget, worth;
} Purse;

typedef struct Scan {
    QnGraph *graph;
    QnUsers users;
    int64_t *last; /* by value id: the last node that reads it, through views */
    int64_t peak;  /* id of the node at the peak */
} Scan;

typedef struct Choice {
    QnNode *node, *before; /* to be computed again before this one */
    int64_t bytes;
    bool moves; /* nothing uses it earlier: it is computed there alone */
} Choice;

static bool computes(const QnNode *n)
{
    return n->n_out > 0 && !(n->op->traits & (QN_LEAF | QN_EFFECT | QN_VIEW)) &&
           !qn_reads_is_view(n);
}

/* Output 0 costs about as much as reading it; further outputs, such as a norm's statistics, stay.
 */
static bool is_cheap(const QnNode *n)
{
    return computes(n) && (n->op->traits & (QN_MAP | QN_MOVES_DATA | QN_ROWWISE));
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
        bool passes_on = n->n_out && (qn_reads_is_view(n) || (n->op->traits & QN_EFFECT));
        int64_t end = passes_on ? QN_MAX(s->last[n->out[0].id], n->id) : n->id;
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i])
                s->last[n->in[i]->id] = QN_MAX(s->last[n->in[i]->id], end);
        }
    }
    return QN_OK;
}

/* Bytes that have to be kept so that the value is there when node `at` runs: none where something
 * reads it then or later. A state is there until its new content is computed, and -1 then. */
static int64_t kept_until(const Scan *s, const QnValue *v, int64_t at)
{
    const QnValue *root = qn_reads_root(v);
    if (!(root->node->op->traits & QN_LEAF) || (root->node->op->traits & QN_INPUT))
        return s->last[root->id] >= at ? 0 : qn_type_bytes(&root->type);
    for (int64_t k = s->users.start[root->id]; k < s->users.start[root->id + 1]; k++) {
        const QnNode *n = s->users.users[k];
        if ((n->op->traits & QN_EFFECT) && qn_reads_root(n->in[1])->node->id <= at)
            return -1;
    }
    return 0;
}

/* Bytes of the peak that computing n's result again at `at` saves; the operands that are not there
 * then have to be kept, such as the statistics of a norm. */
static int64_t saved_at(const Scan *s, const QnNode *n, int64_t at)
{
    int64_t bytes = qn_type_bytes(&n->out[0].type);
    for (int i = 0; i < n->n_in; i++) {
        int64_t kept = n->in[i] ? kept_until(s, n->in[i], at) : 0;
        if (kept < 0)
            return 0;
        bytes -= kept;
    }
    return bytes;
}

/* Uses of a value, those of its views with them. */
typedef struct Uses {
    QnNode *late; /* the first after the peak */
    bool early;   /* some before it */
    bool pinned;  /* at the peak, by an output of the graph or by an assign */
} Uses;

static void find_uses(const Scan *s, const QnValue *v, Uses *u)
{
    u->pinned |= s->users.is_output[v->id];
    for (int64_t k = s->users.start[v->id]; !u->pinned && k < s->users.start[v->id + 1]; k++) {
        QnNode *n = s->users.users[k];
        if (n->op->traits & QN_EFFECT || n->id == s->peak) {
            u->pinned = true;
        } else if (n->id > s->peak) {
            u->late = u->late && u->late->id < n->id ? u->late : n;
        } else if (qn_reads_is_view(n)) {
            find_uses(s, &n->out[0], u);
        } else {
            u->early = true;
        }
    }
}

static double time_of(const QnNode *n, double balance)
{
    QnCost c = qn_cost_of(n);
    double bytes = c.bytes_read + c.bytes_written;
    return balance > 0 ? fmax(bytes, c.flops / balance) : bytes;
}

static Choice choose(const Scan *s, const Purse *p)
{
    Choice best = { 0 };
    for (QnNode *n = s->graph->first; n && n->id < s->peak; n = n->next) {
        if (!is_cheap(n))
            continue;
        int64_t bytes = qn_type_bytes(&n->out[0].type);
        Uses u = { 0 };
        if (bytes <= best.bytes || bytes < p->worth)
            continue;
        find_uses(s, &n->out[0], &u);
        if (!u.late || u.pinned || (u.early && time_of(n, p->balance) > p->left))
            continue;
        bytes = saved_at(s, n, u.late->id);
        if (bytes > best.bytes)
            best = (Choice){ n, u.late, bytes, !u.early };
    }
    return best;
}

/* Late users of v read `copy` instead, through views of their own where they read one. */
static QnStatus redirect(const Scan *s, const QnValue *v, QnValue *copy)
{
    for (int64_t k = s->users.start[v->id]; k < s->users.start[v->id + 1]; k++) {
        QnNode *n = s->users.users[k];
        Uses u = { 0 };
        if (n->id < s->peak && qn_reads_is_view(n))
            find_uses(s, &n->out[0], &u);
        if (u.late) {
            QnNode *view = qn_graph_copy_node(s->graph, n, &copy);
            QN_TRY(qn_graph_check(s->graph));
            QN_TRY(redirect(s, &n->out[0], &view->out[0]));
        }
        for (int i = 0; n->id > s->peak && i < n->n_in; i++) {
            if (n->in[i] == v)
                n->in[i] = copy;
        }
    }
    return QN_OK;
}

static QnStatus apply(const Scan *s, const Choice *c)
{
    QnGraph *g = s->graph;
    qn_graph_set_cursor(g, c->before);
    QnNode *copy = qn_graph_copy_node(g, c->node, c->node->in);
    QnStatus st = qn_graph_check(g);
    if (st == QN_OK)
        st = redirect(s, &c->node->out[0], &copy->out[0]);
    qn_graph_set_cursor(g, NULL);
    return st;
}

/* One step; *done when nothing is left to gain. */
static QnStatus step(QnGraph *g, const QnPipelineOptions *o, QnArena *tmp, Purse *p, bool *done)
{
    Scan s = { .graph = g };
    QnNode *at = NULL;
    int64_t bytes;
    QN_TRY(qn_live_peak(g, &bytes, &at));
    *done = true;
    if (bytes <= p->budget || !at)
        return QN_OK;
    s.peak = at->id;
    QN_TRY(qn_live_users(g, tmp, &s.users));
    QN_TRY(scan_last(&s, tmp));
    Choice c = choose(&s, p);
    if (!c.node)
        return QN_OK;
    *done = false;
    p->left -= c.moves ? 0 : time_of(c.node, p->balance);
    if (o->report && !c.moves)
        o->report->recomputed_nodes++;
    QN_TRY(apply(&s, &c));
    return qn_pass_dce(g, o); /* what nothing needs any more before the peak */
}

static Purse purse_of(const QnGraph *g, const QnPipelineOptions *o)
{
    Purse p = { HUGE_VAL, o->balance, o->memory_budget_bytes, 0 };
    if (p.budget > 0)
        return p;
    p.left = 0;
    p.worth = WORTH_BYTES;
    QN_GRAPH_EACH(g, n)
    {
        if (computes(n))
            p.left += o->recompute_share * time_of(n, p.balance);
    }
    return p;
}

QnStatus qn_pass_recompute(QnGraph *g, const QnPipelineOptions *o)
{
    if (o->memory_budget_bytes <= 0 && o->recompute_share <= 0)
        return QN_OK;
    Purse purse = purse_of(g, o);
    int64_t before, after;
    bool done = false;
    QN_TRY(qn_live_peak(g, &before, NULL));
    for (int i = 0; !done && i < MAX_STEPS; i++) {
        QnArena *tmp = qn_arena_new();
        QnStatus st = tmp ? step(g, o, tmp, &purse, &done) : QN_ENOMEM;
        qn_arena_free(tmp);
        QN_TRY(st);
    }
    QN_TRY(qn_live_peak(g, &after, NULL));
    if (o->report) {
        o->report->peak_bytes_before = before;
        o->report->peak_bytes_after = after;
    }
    return QN_OK;
}

/* Fusion: neighbouring maps of one shape become a node that reads its operands and writes its
 * results once. Every node gets a level that rises along each edge that cannot be fused; maps that
 * edges of one level join form a group, and no path can leave a group and come back. */
#include "ops/ops.h"
#include "pass/live.h"
#include "pass/pipeline.h"

#include <string.h>

enum { MAX_OPERAND = 32, MAX_INSTR = 64 }; /* what kernels take */

typedef struct Fuse {
    QnGraph *graph;
    QnArena *tmp;
    QnUsers users;
    int64_t *level; /* by node id */
    int64_t *group; /* by node id: union-find parent, the lowest id of a group is its root */
    QnNode **node;  /* by id */
    int64_t slack;  /* levels by which an operand may be kept longer for a map to sink */
    QnPipelineReport *report;
} Fuse;

static bool is_real(QnDtype d)
{
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || d == QN_DTYPE_BOOL;
}

/* A map whose arithmetic in f32 gives what it gives alone. */
static bool is_fusable(const QnNode *n)
{
    if (!n->op->map || !n->op->device || n->n_out != 1 || !is_real(n->out[0].type.dtype))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        QnDtype d = n->in[i]->type.dtype;
        if (!is_real(d) && d != QN_DTYPE_I8 && d != QN_DTYPE_U8)
            return false;
    }
    return true;
}

static bool is_edge(const QnNode *from, const QnNode *to)
{
    const QnType *a = &from->out[0].type, *b = to->n_out ? &to->out[0].type : a;
    return is_fusable(from) && is_fusable(to) && a->layout == b->layout &&
           qn_shape_is_equal(&a->shape, &b->shape);
}

static double bytes_of(const QnValue *v)
{
    int64_t bytes = qn_type_bytes(&v->type);
    return bytes > 0 ? (double)bytes : 0;
}

/* ---- levels ---- */

static void raise_levels(Fuse *f)
{
    QN_GRAPH_EACH(f->graph, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            const QnNode *p = n->in[i] ? n->in[i]->node : NULL;
            if (p)
                f->level[n->id] = QN_MAX(f->level[n->id], f->level[p->id] + !is_edge(p, n));
        }
    }
}

/* Bytes that would have to be kept for n to run at this level: operands that nobody else needs
 * that late, or shortly before. */
static double kept_for(const Fuse *f, const QnNode *n, int64_t level)
{
    double bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        const QnValue *v = n->in[i];
        bool late = (v->node->op->traits & QN_LEAF) || f->users.is_output[v->id];
        for (int64_t k = f->users.start[v->id]; !late && k < f->users.start[v->id + 1]; k++)
            late = f->users.users[k] != n && f->level[f->users.users[k]->id] >= level - 1;
        bytes += late ? 0 : bytes_of(v);
    }
    return bytes;
}

/* A map whose users all stand in one later group joins it if that keeps no more bytes alive than
 * its result takes: masks of a backward step are made again from what it has to keep anyway. */
static void sink(Fuse *f)
{
    for (QnNode *n = f->graph->last; n; n = n->prev) {
        if (!is_fusable(n) || f->users.is_output[n->out[0].id])
            continue;
        int64_t to = -1, id = n->out[0].id;
        bool joins = true;
        for (int64_t k = f->users.start[id]; joins && k < f->users.start[id + 1]; k++) {
            const QnNode *u = f->users.users[k];
            joins = is_edge(n, u) && (to < 0 || to == f->level[u->id]);
            to = f->level[u->id];
        }
        if (joins && to > f->level[n->id] && kept_for(f, n, to) <= bytes_of(&n->out[0]))
            f->level[n->id] = to;
    }
}

/* ---- groups ---- */

static int64_t root_of(const Fuse *f, int64_t id)
{
    while (f->group[id] != id)
        id = f->group[id] = f->group[f->group[id]];
    return id;
}

static void join_groups(Fuse *f)
{
    QN_GRAPH_EACH(f->graph, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            const QnNode *p = n->in[i] ? n->in[i]->node : NULL;
            if (!p || f->level[p->id] != f->level[n->id] || !is_edge(p, n))
                continue;
            int64_t a = root_of(f, p->id), b = root_of(f, n->id);
            f->group[QN_MAX(a, b)] = QN_MIN(a, b);
        }
    }
}

/* ---- bodies ---- */

typedef struct Group {
    QnNode **member; /* in order */
    int n;
    QnValue *in[MAX_OPERAND];
    QnBodyInstr instr[MAX_INSTR];
    int out[MAX_INSTR];
    QnBody body;
    double bytes_before, bytes_after;
} Group;

static int member_of(const Group *p, const QnNode *n)
{
    for (int i = 0; i < p->n; i++) {
        if (p->member[i] == n)
            return i;
    }
    return -1;
}

/* The operand's number; -1: there are too many. Results of members are numbered from MAX_OPERAND
 * until the number of operands is known. */
static int operand_of(Group *p, QnValue *v)
{
    int k = member_of(p, v->node);
    if (k >= 0)
        return MAX_OPERAND + k;
    for (k = 0; k < p->body.n_in; k++) {
        if (p->in[k] == v)
            return k;
    }
    if (k == MAX_OPERAND)
        return -1;
    p->in[p->body.n_in++] = v;
    p->bytes_after += bytes_of(v);
    return k;
}

static bool is_needed_outside(const Fuse *f, const Group *p, const QnValue *v)
{
    bool needed = f->users.is_output[v->id];
    for (int64_t k = f->users.start[v->id]; !needed && k < f->users.start[v->id + 1]; k++)
        needed = member_of(p, f->users.users[k]) < 0;
    return needed;
}

/* false: it exceeds what kernels take. */
static bool build(const Fuse *f, Group *p)
{
    p->body = (QnBody){ .instr = p->instr, .out = p->out, .n_instr = p->n };
    p->bytes_before = p->bytes_after = 0;
    if (p->n > MAX_INSTR)
        return false;
    for (int i = 0; i < p->n; i++) {
        QnNode *n = p->member[i];
        QnValue *y = &n->out[0];
        p->instr[i] = (QnBodyInstr){ .op = n->op, .attr = n->attr, .dtype = y->type.dtype };
        p->bytes_before += bytes_of(y);
        for (int k = 0; k < n->n_in; k++) {
            p->instr[i].arg[k] = operand_of(p, n->in[k]);
            if (p->instr[i].arg[k] < 0)
                return false;
            p->bytes_before += bytes_of(n->in[k]);
        }
        if (is_needed_outside(f, p, y)) {
            p->out[p->body.n_out++] = i;
            p->bytes_after += bytes_of(y);
        }
    }
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < p->instr[i].op->n_in; k++) {
            int *arg = &p->instr[i].arg[k];
            *arg = *arg >= MAX_OPERAND ? *arg - MAX_OPERAND + p->body.n_in : *arg;
        }
    }
    return p->body.n_out >= 1 && p->body.n_out <= QN_MAX_OUT;
}

/* Members first.. first+n-1 become one node, or two where they exceed the limits. */
static QnStatus fuse_members(Fuse *f, Group *p, QnNode **member, int n)
{
    if (n < 2)
        return QN_OK;
    p->member = member;
    p->n = n;
    if (!build(f, p)) {
        QN_TRY(fuse_members(f, p, member, n / 2));
        return fuse_members(f, p, member + n / 2, n - n / 2);
    }
    bool known = qn_type_bytes(&member[0]->out[0].type) >= 0;
    if (known && p->bytes_after >= p->bytes_before)
        return QN_OK;
    QnNode *last = member[n - 1];
    qn_graph_set_cursor(f->graph, last);
    QnNode *fused = qn_fused(f->graph, &p->body, p->in);
    qn_graph_set_cursor(f->graph, NULL);
    QN_TRY(qn_graph_check(f->graph));
    fused->name = last->name;
    for (int i = 0; i < p->body.n_out; i++) {
        fused->out[i].type.layout = last->out[0].type.layout;
        qn_value_replace(&member[p->out[i]]->out[0], &fused->out[i]);
    }
    if (f->report) {
        f->report->fused_groups++;
        f->report->fused_maps += n;
        f->report->fused_bytes_saved += p->bytes_before - p->bytes_after;
    }
    return QN_OK;
}

static QnStatus fuse_groups(Fuse *f, int64_t n_nodes)
{
    Group *p = qn_arena_alloc(f->tmp, sizeof *p);
    int64_t *size = qn_arena_array(f->tmp, (size_t)n_nodes + 1, sizeof *size);
    int64_t *begin = qn_arena_array(f->tmp, (size_t)n_nodes + 1, sizeof *begin);
    QnNode **member = qn_arena_array(f->tmp, (size_t)n_nodes + 1, sizeof *member);
    if (!p || !size || !begin || !member)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n_nodes; i++)
        size[root_of(f, i)]++;
    for (int64_t i = 1; i < n_nodes; i++)
        begin[i] = begin[i - 1] + size[i - 1];
    memset(size, 0, (size_t)n_nodes * sizeof *size);
    for (int64_t i = 0; i < n_nodes; i++) {
        int64_t r = root_of(f, i);
        member[begin[r] + size[r]++] = f->node[i];
    }
    for (int64_t i = 0; i < n_nodes; i++)
        QN_TRY(fuse_members(f, p, member + begin[i], (int)size[i]));
    return QN_OK;
}

static QnStatus fuse(Fuse *f)
{
    QnGraph *g = f->graph;
    QN_TRY(qn_live_users(g, f->tmp, &f->users));
    int64_t n_nodes = g->n_nodes;
    f->level = qn_arena_array(f->tmp, (size_t)n_nodes + 1, sizeof *f->level);
    f->group = qn_arena_array(f->tmp, (size_t)n_nodes + 1, sizeof *f->group);
    f->node = qn_arena_array(f->tmp, (size_t)n_nodes + 1, sizeof *f->node);
    if (!f->level || !f->group || !f->node)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        f->group[n->id] = n->id;
        f->node[n->id] = n;
    }
    raise_levels(f);
    sink(f);
    join_groups(f);
    return fuse_groups(f, n_nodes);
}

QnStatus qn_pass_fuse(QnGraph *g, const QnPipelineOptions *o)
{
    Fuse f = {
        .graph = g, .tmp = qn_arena_new(), .slack = o->memory_budget_bytes > 0, .report = o->report
    };
    QnStatus st = f.tmp ? fuse(&f) : QN_ENOMEM;
    qn_arena_free(f.tmp);
    QN_TRY(st);
    qn_graph_sweep(g);
    QN_TRY(qn_live_restore_order(g));
    return qn_pass_dce(g, o);
}

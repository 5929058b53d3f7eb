/* Convolutions and pools work on channels-last rows whatever they are given: plain operands they
 * turn inside, at every run. So images that flow from one such node to the next, perhaps through
 * maps and batch norms, form a group, and a group becomes channels-last if turning its borders
 * moves fewer bytes than its nodes would turn inside.
 *
 * Measured on one core of Zen 4 (AVX-512, f32), plain against channels-last, in ms. By oneDNN: conv
 * (128,32,28,28) to 32 channels 18.9 / 17.7, its dx 19.4 / 17.6, its dw 19.3 / 17.1; conv
 * (32,64,32,32) to 128 with stride 2, 12.7 / 11.4; 1x1 conv (16,256,14,14) to 64, 1.03 / 0.88. By
 * Quern's own: 25.6 / 20.9, 25.5 / 21.4, 22.6 / 20.3, 14.9 / 12.5, 1.59 / 1.00. max_pool
 * (128,32,28,28) 2.0 / 0.8, its gradient 3.5 / 1.9, batch norm the same in both. A whole step of
 * the Fashion-MNIST demo 16.5 / 13.5, of the narrow ResNet-18 248 / 217. */
#include "pass/layout.h"
#include "base/mem.h"
#include "ops/ops.h"
#include "pass/pipeline.h"

/* Which inputs and outputs of an operator are images; bits. */
typedef struct Role {
    const QnOp *op;
    unsigned in, out;
    bool turns; /* its plain kernel turns them inside */
} Role;

static const Role roles[] = {
    { &qn_op_conv, 1, 1, true },
    { &qn_op_conv_dx, 1, 1, true },
    { &qn_op_conv_dw, 3, 0, true },
    { &qn_op_max_pool, 1, 1, true },
    { &qn_op_max_pool_grad, 3, 1, true },
    { &qn_op_avg_pool, 1, 1, true },
    { &qn_op_avg_pool_grad, 1, 1, true },
    { &qn_op_lrn, 1, 1, false },
    { &qn_op_batch_norm, 1, 1, false },
    { &qn_op_batch_norm_grad, 3, 1, false },
    { &qn_op_batch_norm_stats, 1, 0, false },
    { &qn_op_batch_norm_relu_grad, 3, 1, false },
    { &qn_op_batch_norm_relu_pool, 1, 1, true },
    { &qn_op_batch_norm_relu_pool_grad, 3, 1, true },
};

typedef struct Pass {
    QnGraph *g;
    const QnLayoutOptions *o;
    int64_t *parent; /* union-find over values, by id */
    double *gain;    /* bytes saved by a group, by its root's id */
    QnValue **twin;  /* a value in its other layout, by id */
    bool *is_member; /* values that belong to a group */
    QnLayoutReport report;
} Pass;

/* Of an input of a map: broadcast operands stay as they are, kernels walk them by strides. */
static bool is_image(const QnValue *v, const QnShape *like)
{
    return v && v->type.shape.rank >= 3 && qn_shape_is_equal(&v->type.shape, like);
}

/* The roles of a node; false: it takes no part. */
static bool role_of(const QnNode *n, Role *r)
{
    for (int i = 0; i < QN_COUNT(roles); i++) {
        if (roles[i].op == n->op) {
            *r = roles[i];
            return n->in[0]->type.shape.rank >= 3;
        }
    }
    *r = (Role){ n->op, 0, 0, false };
    if (n->op == &qn_op_concat || n->op == &qn_op_split || n->op == &qn_op_slice) {
        r->in = n->n_in < 32 ? (1u << n->n_in) - 1 : 0;
        r->out = n->n_out < 32 ? (1u << n->n_out) - 1 : 0;
        return n->in[0]->type.shape.rank >= 3 && r->in && r->out;
    }
    if (n->op->traits & QN_REDUCE) { /* of an image to no image */
        r->in = 1;
        return n->in[0]->type.shape.rank >= 3;
    }
    if (n->op == &qn_op_fused_sum) {
        QnShape whole = qn_fused_sum_shape(n);
        for (int i = 0; i < n->n_in && i < 32; i++)
            r->in |= is_image(n->in[i], &whole) ? 1u << i : 0;
        return n->n_in <= 32 && r->in;
    }
    if (!(n->op->traits & QN_ANY_LAYOUT) || !(n->op->traits & QN_MAP) || n->n_in > 32 ||
        n->n_out > 32 || n->out[0].type.shape.rank < 3)
        return false;
    for (int i = 0; i < n->n_out; i++) {
        if (!is_image(&n->out[i], &n->out[0].type.shape))
            return false;
        r->out |= 1u << i;
    }
    for (int i = 0; i < n->n_in; i++)
        r->in |= is_image(n->in[i], &n->out[0].type.shape) ? 1u << i : 0;
    return true;
}

static void set_layouts(const QnNode *n, const Role *r, QnLayout layout)
{
    for (int i = 0; i < n->n_in; i++) {
        if (r->in >> i & 1)
            n->in[i]->type.layout = layout;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (r->out >> i & 1)
            n->out[i].type.layout = layout;
    }
}

/* Whether the node may become channels-last. */
static bool is_candidate(const Pass *p, const QnNode *n, Role *r)
{
    if (!role_of(n, r) || !(r->in | r->out))
        return false;
    for (int i = 0; i < n->n_in; i++) { /* some pass was here before */
        if (n->in[i] && n->in[i]->type.layout != QN_LAYOUT_PLAIN)
            return false;
    }
    if (!p->o || !p->o->accepts)
        return !(n->op->traits & QN_REDUCE) && n->op != &qn_op_fused_sum; /* few can */
    set_layouts(n, r, QN_LAYOUT_CHANNELS_LAST);
    bool ok = p->o->accepts(p->o->ctx, n);
    set_layouts(n, r, QN_LAYOUT_PLAIN);
    return ok;
}

static int64_t find(const Pass *p, int64_t id)
{
    while (p->parent[id] != id)
        id = p->parent[id] = p->parent[p->parent[id]];
    return id;
}

/* The group of a candidate: that of any of its images that a candidate computes; -1: none. */
static int64_t group_of(const Pass *p, const QnNode *n, const Role *r)
{
    for (int i = 0; i < n->n_out; i++) {
        if (r->out >> i & 1)
            return find(p, n->out[i].id);
    }
    for (int i = 0; i < n->n_in; i++) {
        if ((r->in >> i & 1) && p->is_member[n->in[i]->id])
            return find(p, n->in[i]->id);
    }
    return -1;
}

static void join(Pass *p, const QnNode *n, const Role *r)
{
    int64_t first = -1;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        bool in = i < n->n_in;
        if (!((in ? r->in >> i : r->out >> (i - n->n_in)) & 1))
            continue;
        const QnValue *v = in ? n->in[i] : &n->out[i - n->n_in];
        if (!p->is_member[v->id])
            continue;
        if (first >= 0)
            p->parent[find(p, v->id)] = find(p, first);
        first = v->id;
    }
}

/* Both orders are the same where there is one channel or one pixel. */
static double bytes_to_turn(const QnValue *v)
{
    const QnShape *s = &v->type.shape;
    int64_t pixels = 1;
    for (int i = 2; i < s->rank; i++)
        pixels *= s->dim[i];
    double bytes = (double)qn_type_bytes(&v->type);
    return s->dim[1] == 1 || pixels == 1 ? bytes / 4 : bytes; /* a copy is faster than a turn */
}

/* Adds what turning the operands inside costs a group, and takes off what its borders cost. */
static void weigh(Pass *p)
{
    QN_GRAPH_EACH(p->g, n)
    {
        Role r = { 0 };
        int64_t group = n->mark && role_of(n, &r) ? group_of(p, n, &r) : -1;
        for (int i = 0; i < n->n_in; i++) {
            const QnValue *v = n->in[i];
            bool image = group >= 0 && (r.in >> i & 1);
            if (!v)
                continue;
            if (image && r.turns)
                p->gain[group] += bytes_to_turn(v);
            if (image && !p->is_member[v->id] && !p->twin[v->id]) {
                p->gain[group] -= bytes_to_turn(v);
                p->twin[v->id] = (QnValue *)v; /* counted once */
            }
            if (!image && p->is_member[v->id] && !p->twin[v->id]) {
                p->gain[find(p, v->id)] -= bytes_to_turn(v);
                p->twin[v->id] = (QnValue *)v;
            }
        }
        for (int i = 0; group >= 0 && i < n->n_out; i++) {
            if ((r.out >> i & 1) && r.turns)
                p->gain[group] += bytes_to_turn(&n->out[i]);
        }
    }
    for (int64_t i = 0; i < p->g->n_outputs; i++) {
        const QnValue *v = p->g->outputs[i].value;
        if (p->is_member[v->id] && !p->twin[v->id])
            p->gain[find(p, v->id)] -= bytes_to_turn(v);
    }
}

static bool is_chosen(const Pass *p, const QnValue *v, int64_t n_values)
{
    return v->id < n_values && p->is_member[v->id] && p->gain[find(p, v->id)] > 0;
}

static QnValue *twin_of(Pass *p, QnValue *v, QnLayout to)
{
    if (!p->twin[v->id]) {
        qn_graph_set_cursor(p->g, v->node->next);
        p->twin[v->id] = qn_relayout(p->g, v, to);
        qn_graph_set_cursor(p->g, NULL);
        p->report.n_relayouts++;
    }
    return p->twin[v->id];
}

/* Gives every reader the layout that it takes. New nodes are skipped: they come with ids beyond. */
static void rewire(Pass *p, int64_t n_values)
{
    for (QnNode *n = p->g->first; n; n = n->next) {
        Role r = { 0 };
        if (n->op == &qn_op_relayout)
            continue;
        int64_t group = n->mark && role_of(n, &r) ? group_of(p, n, &r) : -1;
        bool last = group >= 0 && p->gain[group] > 0;
        p->report.n_nodes += last;
        for (int i = 0; i < n->n_in; i++) {
            QnValue *v = n->in[i];
            if (!v)
                continue;
            bool image = last && (r.in >> i & 1), chosen = is_chosen(p, v, n_values);
            if (image && !chosen)
                n->in[i] = twin_of(p, v, QN_LAYOUT_CHANNELS_LAST);
            else if (!image && chosen)
                n->in[i] = twin_of(p, v, QN_LAYOUT_PLAIN);
        }
    }
    for (int64_t i = 0; i < p->g->n_outputs; i++) {
        QnValue *v = p->g->outputs[i].value;
        if (is_chosen(p, v, n_values))
            p->g->outputs[i].value = twin_of(p, v, QN_LAYOUT_PLAIN);
    }
}

static QnStatus turn(Pass *p)
{
    int64_t n_values = p->g->n_values;
    QN_GRAPH_EACH(p->g, n)
    {
        Role r;
        n->mark = is_candidate(p, n, &r);
        for (int i = 0; n->mark && i < n->n_out; i++)
            p->is_member[n->out[i].id] = r.out >> i & 1;
    }
    QN_GRAPH_EACH(p->g, n)
    {
        Role r;
        if (n->mark && role_of(n, &r))
            join(p, n, &r);
    }
    weigh(p);
    for (int64_t i = 0; i < n_values; i++) {
        p->twin[i] = NULL;
        p->report.n_groups += p->is_member[i] && p->parent[i] == i && p->gain[i] > 0;
    }
    QN_GRAPH_EACH(p->g, n)
    {
        for (int i = 0; i < n->n_out; i++) {
            if (is_chosen(p, &n->out[i], n_values))
                n->out[i].type.layout = QN_LAYOUT_CHANNELS_LAST;
        }
    }
    rewire(p, n_values);
    qn_graph_number(p->g);
    return qn_graph_check(p->g);
}

static bool is_concrete(const QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_out; i++) {
            if (!qn_shape_is_concrete(&n->out[i].type.shape))
                return false;
        }
    }
    return true;
}

QnStatus qn_layout_run(QnGraph *g, const QnLayoutOptions *o, QnLayoutReport *report)
{
    Pass p = { .g = g, .o = o };
    QN_TRY(qn_graph_check(g));
    qn_graph_number(g);
    size_t n = (size_t)g->n_values + 1;
    QnStatus st = QN_OK;
    if (is_concrete(g)) {
        p.parent = qn_alloc_array(n, sizeof *p.parent);
        p.gain = qn_alloc_array(n, sizeof *p.gain);
        p.twin = qn_alloc_array(n, sizeof *p.twin);
        p.is_member = qn_alloc_array(n, sizeof *p.is_member);
        for (size_t i = 0; p.parent && i < n; i++)
            p.parent[i] = (int64_t)i;
        st = p.parent && p.gain && p.twin && p.is_member ? turn(&p) : QN_ENOMEM;
    }
    if (report)
        *report = p.report;
    qn_free(p.parent);
    qn_free(p.gain);
    qn_free(p.twin);
    qn_free(p.is_member);
    return st;
}

QnStatus qn_pass_layout(QnGraph *g, const QnPipelineOptions *o)
{
    QnLayoutReport report = { 0 };
    QnLayoutOptions options = { o->tuned, o->tuned_ctx };
    if (o->tuned)
        QN_TRY(qn_layout_run(g, &options, &report));
    if (o->report)
        o->report->relayouts += report.n_relayouts;
    return QN_OK;
}

/* Maps after a matrix product go into it, where the device runs the two in one by as good a kernel
 * as the product alone: the result is then written once, as the maps leave it. What gradients read
 * of the product itself is a further output. Sums over all rows, the gradients of biases, likewise
 * go into the product that makes or reads what they sum: the gradient of a layer's input, or of its
 * weight. */
#include "ops/body.h"
#include "ops/ops.h"
#include "ops/util.h"
#include "pass/pipeline.h"
#include "pass/rewrite.h"

typedef struct Fuse {
    QnGraph *g;
    const QnPipelineOptions *o;
    const int32_t *uses;
    int32_t *reads; /* of each value, by nodes before the present one */
    int64_t known;
} Fuse;

/* The product behind v, of the same rows in the same order; NULL: none to take maps in. */
static QnNode *product_of(const Fuse *f, const QnValue *v)
{
    if (!v || v->id >= f->known || v->type.layout != QN_LAYOUT_PLAIN)
        return NULL;
    QnNode *p = v->node;
    if (p->op == &qn_op_reshape && p->in[0]->id < f->known) {
        const QnShape *s = &v->type.shape, *t = &p->in[0]->type.shape;
        if (s->rank < 1 || t->rank < 1 || s->dim[s->rank - 1] != t->dim[t->rank - 1])
            return NULL;
        p = p->in[0]->node;
    }
    return p->op == &qn_op_matmul && qn_dtype_is_float(p->out[0].type.dtype) ? p : NULL;
}

/* The input that is a product of n's shape: of several the last to run, as it waits least. */
static int find_product(const Fuse *f, const QnNode *n)
{
    int best = -1;
    int64_t at = -1;
    for (int i = 0; i < n->n_in; i++) {
        const QnNode *p = product_of(f, n->in[i]);
        if (p && qn_shape_is_equal(&n->in[i]->type.shape, &n->out[0].type.shape) && p->id > at) {
            best = i;
            at = p->id;
        }
    }
    return best;
}

/* v as an operand beside the product of shape y: whole tensors take its shape. */
static QnValue *operand(QnGraph *g, QnValue *v, const QnShape *n, const QnShape *y)
{
    bool whole = qn_shape_is_equal(&v->type.shape, n) && !qn_shape_is_equal(n, y);
    return whole ? qn_reshape(g, v, y) : v;
}

/* Whether v still broadcasts once the leading axes are those of y. */
static bool is_operand(const QnValue *v, const QnShape *n, const QnShape *y)
{
    const QnShape *s = &v->type.shape;
    if (v->type.layout != QN_LAYOUT_PLAIN)
        return false;
    if (qn_shape_is_equal(s, n) || qn_shape_is_equal(n, y))
        return true;
    for (int k = 2; k <= s->rank; k++) {
        if (s->dim[s->rank - k] != 1)
            return false;
    }
    return s->rank <= y->rank;
}

/* Whether the other operands can stand beside the product p, and none is p itself. */
static bool has_operands(const Fuse *f, const QnNode *n, int at, const QnNode *p)
{
    for (int i = 0; i < n->n_in; i++) {
        if (i == at)
            continue;
        if (!n->in[i] || product_of(f, n->in[i]) == p ||
            !is_operand(n->in[i], &n->out[0].type.shape, &p->out[0].type.shape))
            return false;
    }
    return true;
}

/* n and the product in one, before n; NULL: the device does not gain by it. */
static QnNode *emit(const Fuse *f, QnNode *n, int at, QnNode *p, bool keep)
{
    QnGraph *g = f->g;
    QnBodyOne one;
    QnValue *more[QN_MAX_IN];
    int n_more = 0;
    const QnShape *shape = &n->out[0].type.shape, *y = &p->out[0].type.shape;
    const QnBody *b = qn_body_with_first(g->arena, qn_body_of_maps(n, &one), at);
    if (!b) {
        qn_graph_poison(g);
        return NULL;
    }
    QnNode *before = n->prev;
    qn_graph_set_cursor(g, n);
    for (int i = 0; i < n->n_in; i++)
        if (i != at)
            more[n_more++] = operand(g, n->in[i], shape, y);
    QnNode *m = qn_matmul_map(g, p, b, more, n_more, keep);
    qn_graph_set_cursor(g, NULL);
    if (!m || g->error.code)
        return NULL;
    if (f->o->prefers(f->o->keep_ctx, m, p))
        return m;
    for (QnNode *x = n->prev; x != before;) {
        QnNode *prev = x->prev;
        qn_graph_remove(g, x);
        x = prev;
    }
    return NULL;
}

/* Whether all else that reads the product, or the view v of it, stands behind the present node. */
static bool may_keep(const Fuse *f, const QnValue *v, const QnNode *p)
{
    bool view = v->node != p;
    return f->reads[p->out[0].id] == view && f->reads[v->id] == 0;
}

static bool takes_maps(const Fuse *f, QnNode *n)
{
    bool maps = (n->op->map || n->op == &qn_op_fused) && n->n_out == 1 &&
                n->out[0].type.layout == QN_LAYOUT_PLAIN;
    int at = maps ? find_product(f, n) : -1;
    if (at < 0)
        return false;
    QnValue *v = n->in[at];
    QnNode *p = product_of(f, v);
    bool keep = f->uses[p->out[0].id] > 1 || f->uses[v->id] > 1;
    if ((keep && !may_keep(f, v, p)) || !has_operands(f, n, at, p))
        return false;
    QnNode *m = emit(f, n, at, p, keep);
    if (!m)
        return false;
    m->name = p->name ? p->name : n->name;
    qn_graph_set_cursor(f->g, n);
    qn_rewrite_to(f->g, n, qn_reshape(f->g, &m->out[0], &n->out[0].type.shape));
    if (keep && v->node != p)
        qn_rewrite_to(f->g, v->node, qn_reshape(f->g, &m->out[1], &v->type.shape));
    if (keep)
        qn_rewrite_to(f->g, p, &m->out[1]);
    qn_graph_set_cursor(f->g, NULL);
    return true;
}

static QnStatus take_maps(QnGraph *g, const QnPipelineOptions *o)
{
    qn_graph_number(g);
    Fuse f = { .g = g, .o = o, .uses = qn_graph_uses(g), .known = g->n_values };
    f.reads = qn_arena_array(g->arena, (size_t)g->n_values + 1, sizeof *f.reads);
    if (!f.uses || !f.reads)
        return QN_ENOMEM;
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = qn_value_resolve(n->in[i]);
        if (takes_maps(&f, n) && o->report) {
            o->report->fused_groups += n->op != &qn_op_fused;
            o->report->fused_maps += n->op != &qn_op_fused;
            o->report->fused_bytes_saved += 2 * (double)qn_type_bytes(&n->out[0].type);
        }
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->id < f.known)
                f.reads[n->in[i]->id]++;
    }
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

/* ---- sums ---- */

/* Whether n sums its input over all axes but the last. */
static bool sums_rows(const QnNode *n)
{
    unsigned mask;
    if (n->op != &qn_op_sum)
        return false;
    const QnReduceAttr *a = n->attr;
    const QnShape *s = &n->in[0]->type.shape;
    return s->rank > 1 && qn_util_axes_mask("sum", s, &a->axes, &mask) == QN_OK &&
           mask == (1u << (s->rank - 1)) - 1;
}

/* The matmul_map whose first output v is, or is a view of with the same rows. */
static QnNode *map_of(const QnValue *v)
{
    const QnValue *x = v;
    while (x->node->op == &qn_op_reshape)
        x = qn_value_resolve(x->node->in[0]);
    const QnShape *s = &v->type.shape, *t = &x->type.shape;
    bool rows = t->rank > 0 && s->dim[s->rank - 1] == t->dim[t->rank - 1];
    return rows && x->node->op == &qn_op_matmul_map && x->index == 0 ? x->node : NULL;
}

static bool takes_sum(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    QnNode *m = sums_rows(n) ? map_of(n->in[0]) : NULL;
    if (!m)
        return false;
    qn_graph_set_cursor(g, m);
    QnNode *with = qn_matmul_map_with_sums(g, m);
    qn_graph_set_cursor(g, NULL);
    if (!with)
        return false;
    if (!o->prefers(o->keep_ctx, with, m)) {
        qn_graph_remove(g, with);
        return false;
    }
    with->name = m->name;
    for (int i = 0; i < m->n_out; i++)
        qn_value_replace(&m->out[i], &with->out[i]);
    qn_graph_set_cursor(g, n);
    qn_rewrite_to(g, n, qn_reshape(g, &with->out[with->n_out - 1], &n->out[0].type.shape));
    qn_graph_set_cursor(g, NULL);
    return true;
}

static const QnValue *behind_views(const QnValue *v)
{
    while (v->node->op == &qn_op_reshape)
        v = qn_value_resolve(v->node->in[0]);
    return v;
}

/* Whether the matrix v holds the rows that x does. */
static bool has_rows_of(const QnValue *v, const QnValue *x)
{
    const QnShape *s = &v->type.shape, *t = &x->type.shape;
    return s->dim[1] == t->dim[t->rank - 1] && behind_views(v) == behind_views(x);
}

/* Whether operand k of a product of two matrices is summed over by it, row after row, and holds
 * what x does: then it is the gradient that both a weight's and a bias's come of. */
static bool reads_rows_of(const QnNode *p, int k, const QnValue *x)
{
    if (p->op != &qn_op_matmul || p->n_in != 2 || p->out[0].forward ||
        p->in[0]->type.shape.rank != 2 || p->in[1]->type.shape.rank != 2 ||
        !qn_dtype_is_float(p->out[0].type.dtype))
        return false;
    bool along = k == 0 ? qn_rewrite_bool(p, "trans_a") : !qn_rewrite_bool(p, "trans_b");
    return along && has_rows_of(qn_value_resolve(p->in[k]), x);
}

/* The first to read v; NULL: an output of the graph alone. */
static const QnNode *first_user(const QnGraph *g, const QnValue *v)
{
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i] && qn_value_resolve(n->in[i]) == v)
                return n;
        }
    }
    return NULL;
}

/* The product, and which operand of it, that can sum what n sums before anybody reads it. */
static QnNode *product_that_reads(const QnGraph *g, const QnNode *n, int *operand)
{
    const QnNode *user = first_user(g, &n->out[0]);
    QN_GRAPH_EACH(g, p)
    {
        if (p == user)
            return NULL;
        for (int k = 0; k < 2; k++) {
            if (reads_rows_of(p, k, n->in[0])) {
                *operand = k;
                return p;
            }
        }
    }
    return NULL;
}

static bool goes_along(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    int k;
    QnNode *p = sums_rows(n) ? product_that_reads(g, n, &k) : NULL;
    if (!p)
        return false;
    qn_graph_set_cursor(g, p);
    QnNode *with = qn_matmul_sums(g, p, k == 0);
    QnValue *sums = qn_reshape(g, qn_node_out(g, with, 1), &n->out[0].type.shape);
    qn_graph_set_cursor(g, NULL);
    if (g->error.code)
        return false;
    if (!o->prefers(o->keep_ctx, with, p)) {
        if (sums->node != with)
            qn_graph_remove(g, sums->node);
        qn_graph_remove(g, with);
        return false;
    }
    with->name = p->name;
    qn_value_replace(&p->out[0], &with->out[0]);
    return qn_rewrite_to(g, n, sums);
}

static QnStatus take_sums(QnGraph *g, const QnPipelineOptions *o)
{
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = qn_value_resolve(n->in[i]);
        if (!takes_sum(g, n, o))
            goes_along(g, n, o);
    }
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

QnStatus qn_pass_fuse_matmul(QnGraph *g, const QnPipelineOptions *o)
{
    if (!o->prefers)
        return QN_OK;
    QN_TRY(take_maps(g, o));
    return take_sums(g, o);
}

#include "ir/eval.h"

#include <string.h>

/* Strides of an input that is broadcast to the output's shape. */
static void broadcast_strides(const QnShape *from, const QnShape *to, int64_t out[QN_MAX_RANK])
{
    int64_t tight[QN_MAX_RANK];
    qn_shape_strides(from, tight);
    memset(out, 0, QN_MAX_RANK * sizeof *out);
    for (int i = 0; i < from->rank; i++)
        out[to->rank - from->rank + i] = from->dim[i] == 1 ? 0 : tight[i];
}

/* The dtype that a map computes with: of its last input, which of `where` is a branch. */
static QnDtype map_dtype(const QnNode *n)
{
    return n->in[n->n_in - 1]->type.dtype;
}

/* Whether a map runs on integers rather than on doubles. */
static bool is_whole_map(const QnNode *n)
{
    const QnMapInfo *m = n->op->map;
    return (m->ref_int || m->ref_int_attr) && !qn_dtype_is_float(map_dtype(n));
}

bool qn_eval_is_bits(const QnNode *n, const QnType *t, int input)
{
    if (!qn_dtype_is_wide(t->dtype))
        return false;
    if (n->op->map)
        return is_whole_map(n);
    return (n->op->traits & (QN_MOVES_DATA | QN_WHOLE)) &&
           (input < 0 || !(n->op->index_in >> input & 1));
}

static double whole_element(const QnNode *n, const double *x, bool bits)
{
    const QnMapInfo *m = n->op->map;
    QnDtype dtype = map_dtype(n);
    bool is_unsigned = dtype == QN_DTYPE_U64;
    int64_t xi[QN_MAP_MAX_IN], y;
    uint64_t xu[QN_MAP_MAX_IN];
    for (int k = 0; k < n->n_in; k++) {
        xi[k] = qn_dtype_whole_of(n->in[k]->type.dtype, x[k], bits);
        xu[k] = (uint64_t)xi[k];
    }
    if (m->ref_int_attr)
        y = m->ref_int_attr(xi, n->attr, is_unsigned);
    else
        y = is_unsigned && m->ref_uint ? (int64_t)m->ref_uint(xu) : m->ref_int(xi);
    if (!qn_dtype_is_float(n->out[0].type.dtype))
        return qn_dtype_whole_to(n->out[0].type.dtype, y, bits);
    double real = is_unsigned ? (double)(uint64_t)y : (double)y;
    return m->finish ? m->finish(real, n->attr) : real;
}

static double map_element(const QnNode *n, const double *x, const double *param)
{
    const QnMapInfo *m = n->op->map;
    double y = m->ref(x, param);
    return m->finish ? m->finish(y, n->attr) : y;
}

static QnStatus run_map(const QnNode *n, const double *const *in, double *y, bool bits)
{
    bool whole = is_whole_map(n);
    const QnShape *s = &n->out[0].type.shape;
    double param[QN_MAP_MAX_PARAM] = { 0 };
    int64_t stride[QN_MAP_MAX_IN][QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    qn_attr_floats(n->op, n->attr, param);
    for (int k = 0; k < n->n_in; k++)
        broadcast_strides(&n->in[k]->type.shape, s, stride[k]);
    for (int64_t i = 0, count = qn_shape_count(s); i < count; i++) {
        double x[QN_MAP_MAX_IN];
        for (int k = 0; k < n->n_in; k++) {
            int64_t o = 0;
            for (int d = 0; d < s->rank; d++)
                o += index[d] * stride[k][d];
            x[k] = in[k][o];
        }
        y[i] = whole ? whole_element(n, x, bits) : map_element(n, x, param);
        for (int d = s->rank - 1; d >= 0 && ++index[d] == s->dim[d]; d--)
            index[d] = 0;
    }
    return QN_OK;
}

static QnStatus run_ref(const QnNode *n, const double *const *in, double *const *out, bool i64_bits)
{
    const QnType *small[16], *out_type[QN_MAX_OUT], **in_type = small;
    if (n->n_in > QN_COUNT(small) && !(in_type = qn_alloc_array((size_t)n->n_in, sizeof *in_type)))
        return QN_ENOMEM;
    for (int i = 0; i < n->n_in; i++)
        in_type[i] = n->in[i] ? &n->in[i]->type : NULL;
    for (int i = 0; i < n->n_out; i++)
        out_type[i] = &n->out[i].type;
    QnRefArgs a = { .node = n,
                    .attr = n->attr,
                    .n_in = n->n_in,
                    .n_out = n->n_out,
                    .in_type = in_type,
                    .out_type = out_type,
                    .in = in,
                    .out = out,
                    .i64_bits = i64_bits };
    QnStatus st = n->op->ref(&a);
    if (in_type != small)
        qn_free(in_type);
    return st;
}

/* A composite runs as a graph of its own whose leaves are stand-ins for the node's inputs. */
static QnStatus run_lowered(const QnNode *n, const double *const *in, double *const *out)
{
    static const QnOp stand_in = { .name = "stand_in", .n_out = 1 };
    QnGraph *g = qn_graph_new();
    QnEval *e = g ? qn_eval_new(g, false) : NULL;
    QnValue **ins = e ? qn_arena_array(g->arena, (size_t)n->n_in + 1, sizeof *ins) : NULL;
    QnStatus st = ins ? QN_OK : QN_ENOMEM;
    for (int i = 0; !st && i < n->n_in; i++) {
        QnNode *leaf = n->in[i] ? qn_arena_alloc(g->arena, sizeof *leaf + sizeof(QnValue)) : NULL;
        if (!n->in[i])
            continue;
        if (!leaf)
            QN_TRY_DONE(QN_ENOMEM);
        leaf->op = &stand_in;
        leaf->n_out = 1;
        leaf->out = (QnValue *)(leaf + 1);
        leaf->out[0] = (QnValue){ .node = leaf, .type = n->in[i]->type };
        qn_graph_link(g, leaf);
        ins[i] = &leaf->out[0];
        QN_TRY_DONE(qn_eval_set(e, ins[i], in[i]));
    }
    if (!st) {
        QnNode copy = *n;
        QnValue *results[QN_MAX_OUT] = { 0 };
        copy.in = ins;
        n->op->lower(g, &copy, results);
        QN_TRY_DONE(qn_graph_check(g));
        for (int i = 0; i < n->n_out; i++) {
            const double *y;
            QN_TRY_DONE(qn_eval_get(e, results[i], &y));
            memcpy(out[i], y, (size_t)qn_shape_count(&n->out[i].type.shape) * sizeof(double));
        }
    }
done:
    qn_eval_free(e);
    qn_graph_free(g);
    return st;
}

QnStatus qn_eval_node(const QnNode *n, const double *const *in, double *const *out, bool i64_bits)
{
    if (n->op->map)
        return run_map(n, in, out[0], i64_bits);
    if (n->op->ref)
        return run_ref(n, in, out, i64_bits);
    if (n->op->lower)
        return run_lowered(n, in, out);
    return qn_fail(QN_EUNSUPPORTED, "%s: has no value of its own; it must be set", n->op->name);
}

/* ---- graphs ---- */

struct QnEval {
    QnGraph *graph;
    bool round;
    int64_t cap;    /* slots */
    double **given; /* by value id: set by the caller */
    double **computed;
};

QnEval *qn_eval_new(QnGraph *g, bool round)
{
    QnEval *e = qn_alloc(sizeof *e);
    if (e) {
        e->graph = g;
        e->round = round;
    }
    return e;
}

static void forget(QnEval *e, double **slots)
{
    for (int64_t i = 0; slots && i < e->cap; i++) {
        qn_free(slots[i]);
        slots[i] = NULL;
    }
}

void qn_eval_free(QnEval *e)
{
    if (!e)
        return;
    forget(e, e->given);
    forget(e, e->computed);
    qn_free(e->given);
    qn_free(e->computed);
    qn_free(e);
}

static QnStatus make_room(QnEval *e)
{
    int64_t n = e->graph->n_values;
    if (n <= e->cap)
        return QN_OK;
    double ***lists[] = { &e->given, &e->computed };
    for (int k = 0; k < 2; k++) {
        double **p = qn_realloc(*lists[k], (size_t)n * sizeof *p);
        if (!p)
            return QN_ENOMEM;
        memset(p + e->cap, 0, (size_t)(n - e->cap) * sizeof *p);
        *lists[k] = p;
    }
    e->cap = n;
    return QN_OK;
}

QnStatus qn_eval_set(QnEval *e, const QnValue *v, const double *elements)
{
    int64_t n = qn_shape_count(&v->type.shape);
    QN_TRY(make_room(e));
    double *copy = n < 0 ? NULL : qn_alloc_array((size_t)n + 1, sizeof *copy);
    if (!copy)
        return n < 0 ? qn_fail(QN_ESHAPE, "the value's shape is symbolic") : QN_ENOMEM;
    memcpy(copy, elements, (size_t)n * sizeof *copy);
    forget(e, e->computed);
    qn_free(e->given[v->id]);
    e->given[v->id] = copy;
    return QN_OK;
}

static void round_to(QnDtype dtype, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t cell;
        qn_dtype_from_f64(dtype, &x[i], &cell, 1);
        qn_dtype_to_f64(dtype, &cell, &x[i], 1);
    }
}

static QnStatus compute(QnEval *e, const QnNode *n)
{
    const double **in = qn_alloc_array((size_t)n->n_in + 1, sizeof *in);
    double *out[QN_MAX_OUT] = { 0 };
    QnStatus st = in ? QN_OK : QN_ENOMEM;
    if (st)
        return st;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i])
            in[i] = e->given[n->in[i]->id] ? e->given[n->in[i]->id] : e->computed[n->in[i]->id];
    }
    for (int i = 0; i < n->n_out; i++) {
        int64_t count = qn_shape_count(&n->out[i].type.shape);
        if (count < 0)
            QN_TRY_DONE(qn_fail(QN_ESHAPE, "%s: its shape is symbolic", n->op->name));
        if (!(out[i] = qn_alloc_array((size_t)count + 1, sizeof **out)))
            QN_TRY_DONE(QN_ENOMEM);
    }
    QN_TRY_DONE(qn_eval_node(n, in, out, false));
    for (int i = 0; i < n->n_out; i++) {
        if (e->round || !qn_dtype_is_float(n->out[i].type.dtype))
            round_to(n->out[i].type.dtype, out[i], qn_shape_count(&n->out[i].type.shape));
        qn_free(e->computed[n->out[i].id]);
        e->computed[n->out[i].id] = out[i];
        out[i] = NULL;
    }
done:
    for (int i = 0; i < n->n_out; i++)
        qn_free(out[i]);
    qn_free(in);
    if (st && n->name)
        qn_fail_prefix("node %s", n->name);
    return st;
}

/* Marks the nodes that v needs, from v backwards: the list is in topological order. */
static void mark_needed(QnEval *e, const QnValue *v)
{
    QN_GRAPH_EACH(e->graph, n)
    n->mark = 0;
    v->node->mark = 1;
    for (QnNode *n = e->graph->last; n; n = n->prev) {
        bool known = true;
        for (int i = 0; i < n->n_out; i++)
            known &= e->given[n->out[i].id] || e->computed[n->out[i].id];
        if (known)
            n->mark = 0;
        for (int i = 0; n->mark && i < n->n_in; i++) {
            if (n->in[i] && !e->given[n->in[i]->id])
                n->in[i]->node->mark = 1;
        }
    }
}

QnStatus qn_eval_get(QnEval *e, const QnValue *v, const double **elements)
{
    if (qn_value_is_poison(v))
        return qn_fail(QN_EGRAPH, "the value is not part of a sound graph");
    QN_TRY(make_room(e));
    if (!e->given[v->id] && !e->computed[v->id]) {
        mark_needed(e, v);
        QN_GRAPH_EACH(e->graph, n)
        {
            if (n->mark)
                QN_TRY(compute(e, n));
        }
    }
    *elements = e->given[v->id] ? e->given[v->id] : e->computed[v->id];
    return QN_OK;
}

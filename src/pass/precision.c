#include "pass/precision.h"

#include "ops/ops.h"

#include <string.h>

typedef enum Class {
    CLASS_LOW,    /* products: half the bytes, and the units that dot instructions feed */
    CLASS_FOLLOW, /* low if an input is: moving data, and maps that lose nothing by it */
    CLASS_HIGH,   /* float32 */
} Class;

static const QnOp *const low_ops[] = {
    &qn_op_matmul, &qn_op_conv, &qn_op_conv_dx, &qn_op_conv_dw, &qn_op_attention,
};

/* Maps whose result has about the relative error of its operands. */
static const QnOp *const follow_ops[] = {
    &qn_op_add,      &qn_op_sub,      &qn_op_mul,        &qn_op_neg,       &qn_op_abs,
    &qn_op_relu,     &qn_op_relu6,    &qn_op_leaky_relu, &qn_op_gelu,      &qn_op_gelu_tanh,
    &qn_op_silu,     &qn_op_tanh,     &qn_op_sigmoid,    &qn_op_hardswish, &qn_op_hardsigmoid,
    &qn_op_hardtanh, &qn_op_clip,     &qn_op_maximum,    &qn_op_minimum,   &qn_op_where,
    &qn_op_mish,     &qn_op_max_pool, &qn_op_dropout,
};

static bool is_among(const QnOp *op, const QnOp *const *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (list[i] == op)
            return true;
    }
    return false;
}

static Class class_of(const QnOp *op)
{
    if (is_among(op, low_ops, QN_COUNT(low_ops)))
        return CLASS_LOW;
    if ((op->traits & QN_MOVES_DATA) || is_among(op, follow_ops, QN_COUNT(follow_ops)))
        return CLASS_FOLLOW;
    return CLASS_HIGH;
}

static bool is_mixed(QnDtype dtype, QnDtype low)
{
    return dtype == QN_DTYPE_F32 || dtype == low;
}

typedef struct Pass {
    QnGraph *to;
    QnDtype low;
    QnValue **map;  /* new values by old ids */
    QnValue **cast; /* a new value in the other of the two dtypes, by its own id; grown by need */
    int64_t n_cast;
    QnPrecisionReport report;
} Pass;

/* v in dtype, by one cast for all who want it. */
static QnStatus in_dtype(Pass *p, QnValue *v, QnDtype dtype, QnValue **out)
{
    if (!v || v->type.dtype == dtype || !is_mixed(v->type.dtype, p->low)) {
        *out = v;
        return QN_OK;
    }
    if (v->id >= p->n_cast) {
        int64_t n = v->id * 2 + 64;
        QnValue **grown = qn_arena_array(p->to->arena, (size_t)n, sizeof *grown);
        if (!grown)
            return QN_ENOMEM;
        if (p->n_cast)
            memcpy(grown, p->cast, (size_t)p->n_cast * sizeof *grown);
        p->cast = grown;
        p->n_cast = n;
    }
    if (!p->cast[v->id]) {
        p->cast[v->id] = qn_cast(p->to, v, dtype);
        p->report.casts++;
    }
    *out = p->cast[v->id];
    return qn_graph_check(p->to);
}

static QnDtype dtype_for(const Pass *p, const QnNode *n, QnValue *const *in)
{
    Class c = class_of(n->op);
    bool any_low = false;
    for (int i = 0; i < n->n_in; i++)
        any_low |= in[i] && in[i]->type.dtype == p->low;
    if (c == CLASS_LOW || (c == CLASS_FOLLOW && any_low))
        return p->low;
    return QN_DTYPE_F32;
}

static QnStatus copy_node(Pass *p, const QnNode *n, QnValue **in)
{
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? p->map[n->in[i]->id] : NULL;
    if (!(n->op->traits & (QN_LEAF | QN_EFFECT)) && n->op != &qn_op_cast) {
        QnDtype dtype = dtype_for(p, n, in);
        for (int i = 0; i < n->n_in; i++)
            QN_TRY(in_dtype(p, in[i], dtype, &in[i]));
        *(dtype == p->low ? &p->report.low_nodes : &p->report.high_nodes) += 1;
    } else if (n->op->traits & QN_EFFECT) { /* a state keeps its dtype */
        QN_TRY(in_dtype(p, in[1], in[0]->type.dtype, &in[1]));
    }
    QnNode *copy = qn_graph_copy_node(p->to, n, in);
    if (!copy)
        return p->to->error.code ? qn_graph_check(p->to) : QN_ENOMEM;
    for (int i = 0; i < n->n_out; i++)
        p->map[n->out[i].id] = &copy->out[i];
    return QN_OK;
}

static QnStatus rewrite(Pass *p, const QnGraph *g)
{
    QnValue **in = qn_arena_array(p->to->arena, QN_MAX_IN, sizeof *in);
    if (!in)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    QN_TRY(copy_node(p, n, in));
    for (int64_t i = 0; i < g->n_outputs; i++) {
        QnValue *v = p->map[g->outputs[i].value->id];
        QN_TRY(in_dtype(p, v, g->outputs[i].value->type.dtype, &v));
        QN_TRY(qn_graph_output(p->to, g->outputs[i].name, v));
        p->map[g->outputs[i].value->id] = v;
    }
    p->to->next_stream = g->next_stream;
    return QN_OK;
}

QnStatus qn_precision(QnGraph *g, QnDtype low, QnGraph **out, QnValue ***map,
                      QnPrecisionReport *report)
{
    if (low != QN_DTYPE_F16 && low != QN_DTYPE_BF16)
        return qn_fail(QN_EDTYPE, "mixed precision is in f16 or bf16, not %s", qn_dtype_name(low));
    QN_TRY(qn_graph_check(g));
    qn_graph_number(g);
    Pass p = { .to = qn_graph_new(), .low = low };
    if (!p.to)
        return QN_ENOMEM;
    QnStatus st = qn_dims_copy(g, p.to);
    p.map = qn_arena_array(p.to->arena, (size_t)g->n_values + 1, sizeof *p.map);
    if (st == QN_OK)
        st = p.map ? rewrite(&p, g) : QN_ENOMEM;
    if (st != QN_OK) {
        qn_graph_free(p.to);
        return st;
    }
    *out = p.to;
    *map = p.map;
    if (report)
        *report = p.report;
    return QN_OK;
}

/* Movement of data: fewer reshapes, transposes, expansions and casts. */
#include "ops/ops.h"
#include "pass/rewrite.h"

#include <string.h>

/* ---- reshape, expand ---- */

static bool simplify_reshape(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    QnValue *x = n->in[0];
    const QnShape *s = &n->out[0].type.shape;
    double value;
    if (qn_shape_is_equal(&x->type.shape, s))
        return qn_rewrite_to(g, n, x);
    if (qn_full_value(x, &value))
        return qn_rewrite_to(g, n, qn_full(g, value, x->type.dtype, s));
    return x->node->op == &qn_op_reshape && qn_rewrite_to(g, n, qn_reshape(g, x->node->in[0], s));
}

static bool simplify_expand(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    QnValue *x = n->in[0];
    const QnShape *s = &n->out[0].type.shape;
    double value;
    if (qn_shape_is_equal(&x->type.shape, s))
        return qn_rewrite_to(g, n, x);
    if (qn_full_value(x, &value))
        return qn_rewrite_to(g, n, qn_full(g, value, x->type.dtype, s));
    if (x->node->op == &qn_op_expand)
        return qn_rewrite_to(g, n, qn_expand(g, x->node->in[0], s));
    if (!qn_shape_is_concrete(s) || qn_shape_count(&x->type.shape) != qn_shape_count(s))
        return false;
    return qn_rewrite_to(g, n, qn_reshape(g, x, s)); /* only adds axes of length 1 */
}

/* ---- transpose ---- */

/* Whether axes longer than 1 keep their order. */
static bool keeps_order(const QnShape *s, const int *order)
{
    int last = -1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[order[i]] == 1)
            continue;
        if (order[i] < last)
            return false;
        last = order[i];
    }
    return true;
}

static QnValue *transpose(QnGraph *g, QnValue *x, const int *order)
{
    QnInts perm = { .n = x->type.shape.rank };
    for (int i = 0; i < perm.n; i++)
        perm.v[i] = order[i];
    return qn_transpose(g, x, perm);
}

static bool simplify_transpose(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    QnValue *x = n->in[0];
    int order[QN_MAX_RANK], inner[QN_MAX_RANK], both[QN_MAX_RANK];
    double value;
    if (!qn_transpose_order(&n->out[0], order))
        return false;
    if (qn_full_value(x, &value))
        return qn_rewrite_to(g, n, qn_full(g, value, x->type.dtype, &n->out[0].type.shape));
    if (keeps_order(&x->type.shape, order))
        return qn_rewrite_to(g, n, qn_reshape(g, x, &n->out[0].type.shape));
    if (!qn_transpose_order(x, inner))
        return false;
    for (int i = 0; i < x->type.shape.rank; i++)
        both[i] = inner[order[i]];
    return qn_rewrite_to(g, n, transpose(g, x->node->in[0], both));
}

/* Whether v is a transposition of the last two axes alone. */
static bool swaps_last_two(const QnValue *v)
{
    int order[QN_MAX_RANK], rank = v->type.shape.rank;
    if (rank < 2 || !qn_transpose_order(v, order))
        return false;
    for (int i = 0; i < rank - 2; i++) {
        if (order[i] != i)
            return false;
    }
    return order[rank - 2] == rank - 1;
}

/* matmul reads its operands either way round. */
static bool simplify_matmul(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    bool a = swaps_last_two(n->in[0]), b = swaps_last_two(n->in[1]);
    if (!a && !b)
        return false;
    return qn_rewrite_to(g, n,
                         qn_matmul(g, a ? n->in[0]->node->in[0] : n->in[0],
                                   b ? n->in[1]->node->in[0] : n->in[1],
                                   n->n_in > 2 ? n->in[2] : NULL, qn_rewrite_bool(n, "trans_a") ^ a,
                                   qn_rewrite_bool(n, "trans_b") ^ b));
}

/* ---- cast ---- */

/* Bits of the numbers of an integer type without its sign; of a float, how many all fit. */
static int bits_of(QnDtype d)
{
    switch (d) {
    case QN_DTYPE_BF16: return 8;
    case QN_DTYPE_F16: return 11;
    case QN_DTYPE_F32: return 24;
    case QN_DTYPE_F64: return 53;
    case QN_DTYPE_I4: return 3;
    case QN_DTYPE_U4: return 4;
    default: return !qn_dtype_is_int(d) ? 1 : (int)qn_dtype_bytes(d) * 8 - !qn_dtype_is_unsigned(d);
    }
}

/* Every number of type a is one of type b. */
static bool is_within(QnDtype a, QnDtype b)
{
    if (a == b || a == QN_DTYPE_BOOL)
        return true;
    if (b == QN_DTYPE_BOOL || (qn_dtype_is_storage(b) && qn_dtype_is_float(b)))
        return false;
    if (!qn_dtype_is_float(a)) /* e.g. i8 in f16, whose 11 bits have a sign of their own */
        return bits_of(a) <= bits_of(b) && (qn_dtype_is_unsigned(a) || !qn_dtype_is_unsigned(b));
    switch (a) {
    case QN_DTYPE_F16:
    case QN_DTYPE_BF16: return b == QN_DTYPE_F32 || b == QN_DTYPE_F64;
    case QN_DTYPE_F32: return b == QN_DTYPE_F64;
    case QN_DTYPE_F64: return false;
    default: return qn_dtype_is_float(b);
    }
}

static bool simplify_cast(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    QnValue *x = n->in[0];
    QnDtype to = n->out[0].type.dtype;
    if (x->type.dtype == to)
        return qn_rewrite_to(g, n, x);
    if (x->node->op != &qn_op_cast || !is_within(x->node->in[0]->type.dtype, x->type.dtype))
        return false;
    QnDtype from = x->node->in[0]->type.dtype;
    if (qn_dtype_is_int(from) && qn_dtype_is_float(x->type.dtype) && qn_dtype_is_int(to) &&
        !is_within(from, to))
        return false; /* floats saturate where integers wrap */
    /* the middle loses nothing */
    return qn_rewrite_to(g, n, qn_cast_as(g, x->node->in[0], to, qn_rewrite_bool(n, "saturate")));
}

/* ---- reductions, concat ---- */

/* Over axes of length 1 alone nothing is reduced. */
static bool simplify_reduction(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    const QnShape *from = &n->in[0]->type.shape, *to = &n->out[0].type.shape;
    if (n->in[0]->type.dtype != n->out[0].type.dtype || !qn_shape_is_concrete(from))
        return false;
    const QnInts *axes = qn_rewrite_ints(n, "axes");
    for (int i = 0; axes && i < (axes->n ? axes->n : from->rank); i++) {
        int64_t a = axes->n ? axes->v[i] : i;
        if (from->dim[a < 0 ? a + from->rank : a] != 1)
            return false;
    }
    return axes && qn_rewrite_to(g, n, qn_reshape(g, n->in[0], to));
}

static bool simplify_concat(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    return n->n_in == 1 && qn_rewrite_to(g, n, n->in[0]);
}

/* ---- operands of maps ---- */

/* The shape that n has with in[k] instead of its own. */
static bool same_shape_with(QnGraph *g, const QnNode *n, QnValue *const *in, QnShape *shape)
{
    QnInfer c;
    if (qn_graph_infer(g, n->op, n->attr, in, n->n_in, &c) != QN_OK)
        return false;
    *shape = c.out[0].shape;
    return qn_shape_is_equal(shape, &n->out[0].type.shape);
}

/* Maps repeat their operands themselves, and read a `full` as one number. */
static bool simplify_map(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    QnValue *in[QN_MAP_MAX_IN];
    bool changed = false;
    if (!n->op->map)
        return false;
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    for (int i = 0; i < n->n_in; i++) {
        QnShape shape;
        QnValue *was = in[i];
        double value;
        if (qn_full_value(was, &value) && was->type.shape.rank)
            in[i] = qn_full(g, value, was->type.dtype, &(QnShape){ 0 });
        else if (was->node->op == &qn_op_expand)
            in[i] = was->node->in[0];
        if (in[i] == was)
            continue;
        if (qn_value_is_poison(in[i]))
            return true;
        if (same_shape_with(g, n, in, &shape))
            changed = true;
        else
            in[i] = was;
    }
    return changed && qn_rewrite_to(g, n, qn_emitn(g, n->op, n->attr, in, n->n_in));
}

/* A map of nothing but `full`s is one number, repeated. */
static bool simplify_full_map(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    QnValue *in[QN_MAP_MAX_IN];
    double value[QN_MAP_MAX_IN];
    bool repeated = false;
    if (!n->op->map || n->out[0].type.shape.rank == 0)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        if (!qn_full_value(n->in[i], &value[i]))
            return false;
        repeated |= n->in[i]->type.shape.rank > 0;
    }
    for (int i = 0; repeated && i < n->n_in; i++)
        in[i] = qn_full(g, value[i], n->in[i]->type.dtype, &(QnShape){ 0 });
    return repeated &&
           qn_rewrite_to(
               g, n, qn_expand(g, qn_emitn(g, n->op, n->attr, in, n->n_in), &n->out[0].type.shape));
}

static const QnRule rules[] = {
    { &qn_op_reshape, simplify_reshape },
    { &qn_op_expand, simplify_expand },
    { &qn_op_transpose, simplify_transpose },
    { &qn_op_matmul, simplify_matmul },
    { &qn_op_cast, simplify_cast },
    { &qn_op_sum, simplify_reduction },
    { &qn_op_mean, simplify_reduction },
    { &qn_op_prod, simplify_reduction },
    { &qn_op_reduce_max, simplify_reduction },
    { &qn_op_reduce_min, simplify_reduction },
    { &qn_op_concat, simplify_concat },
    { NULL, simplify_full_map },
    { NULL, simplify_map },
};

QnStatus qn_pass_simplify(QnGraph *g, const QnPipelineOptions *o)
{
    return qn_rewrite_run(g, rules, QN_COUNT(rules), o);
}

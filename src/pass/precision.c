#include "pass/precision.h"

#include "ops/ops.h"

#include <string.h>

typedef enum Class {
    CLASS_LOW,    /* products: half the bytes, and the units that dot instructions feed */
    CLASS_INNER,  /* take 16-bit data if their input is, and sum it in float32 inside */
    CLASS_FOLLOW, /* 16-bit if an input is: moving data, and maps that lose nothing by it */
    CLASS_HIGH,   /* float32 */
} Class;

static const QnOp *const low_ops[] = {
    &qn_op_matmul,  &qn_op_conv,           &qn_op_conv_dx,
    &qn_op_conv_dw, &qn_op_conv_transpose, &qn_op_attention,
};

/* Their operands 0 to 2 share one dtype (labels apart); statistics and losses are float32. */
static const QnOp *const inner_ops[] = {
    &qn_op_batch_norm,    &qn_op_batch_norm_inference,
    &qn_op_layer_norm,    &qn_op_rms_norm,
    &qn_op_group_norm,    &qn_op_instance_norm,
    &qn_op_softmax,       &qn_op_log_softmax,
    &qn_op_cross_entropy, &qn_op_avg_pool,
    &qn_op_mean,          &qn_op_adaptive_avg_pool,
};
enum { INNER_SHARED = 3 };

/* Maps whose result has about the relative error of its operands. */
static const QnOp *const follow_ops[] = {
    &qn_op_add,      &qn_op_sub,      &qn_op_mul,        &qn_op_neg,       &qn_op_abs,
    &qn_op_relu,     &qn_op_relu6,    &qn_op_leaky_relu, &qn_op_gelu,      &qn_op_gelu_tanh,
    &qn_op_silu,     &qn_op_tanh,     &qn_op_sigmoid,    &qn_op_hardswish, &qn_op_hardsigmoid,
    &qn_op_hardtanh, &qn_op_clip,     &qn_op_maximum,    &qn_op_minimum,   &qn_op_where,
    &qn_op_mish,     &qn_op_max_pool, &qn_op_dropout,    &qn_op_elu,       &qn_op_selu,
    &qn_op_celu,     &qn_op_prelu,    &qn_op_lerp,       &qn_op_softplus,
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
    if (is_among(op, inner_ops, QN_COUNT(inner_ops)))
        return CLASS_INNER;
    if ((op->traits & QN_MOVES_DATA) || is_among(op, follow_ops, QN_COUNT(follow_ops)))
        return CLASS_FOLLOW;
    return CLASS_HIGH;
}

bool qn_precision_is_product(const QnOp *op)
{
    return class_of(op) == CLASS_LOW;
}

/* Dtypes that the pass moves values between. */
enum { N_MIXED = 3 };
static const QnDtype mixed[N_MIXED] = { QN_DTYPE_F32, QN_DTYPE_BF16, QN_DTYPE_F16 };

static int mixed_at(QnDtype dtype)
{
    for (int i = 0; i < N_MIXED; i++) {
        if (mixed[i] == dtype)
            return i;
    }
    return -1;
}

static bool is_low(const QnValue *v)
{
    return v && (v->type.dtype == QN_DTYPE_BF16 || v->type.dtype == QN_DTYPE_F16);
}

static bool is_parameter(const QnValue *v)
{
    return v->node->op == &qn_op_state && ((const QnStateAttr *)v->node->attr)->trainable;
}

typedef struct Pass {
    QnGraph *to;
    const QnPrecisionOptions *o;
    QnValue **map;             /* new values by old ids */
    bool *is_loss;             /* by old id: it depends on the model's result */
    QnValue *(*cast)[N_MIXED]; /* a new value in the other dtypes, by its own id; grown by need */
    int64_t n_cast, n_f8;
    QnPrecisionReport report;
} Pass;

/* v in dtype, by one cast for all who want it. A parameter has a cast for each use: its gradients
 * then come together in float32 (equal casts become one when gradients have been taken). */
static QnStatus in_dtype(Pass *p, QnValue *v, QnDtype dtype, QnValue **out)
{
    int at = mixed_at(dtype);
    if (!v || v->type.dtype == dtype || at < 0 || mixed_at(v->type.dtype) < 0) {
        *out = v;
        return QN_OK;
    }
    if (v->id >= p->n_cast) {
        int64_t n = v->id * 2 + 64;
        QnValue *(*grown)[N_MIXED] = qn_arena_array(p->to->arena, (size_t)n, sizeof *grown);
        if (!grown)
            return QN_ENOMEM;
        if (p->n_cast)
            memcpy(grown, p->cast, (size_t)p->n_cast * sizeof *grown);
        p->cast = grown;
        p->n_cast = n;
    }
    bool again = v->node->op->traits & QN_STATE;
    QnValue **cast = &p->cast[v->id][at];
    if (*cast && again) {
        QnNode *n = qn_graph_copy_node(p->to, (*cast)->node, (*cast)->node->in);
        *cast = n ? &n->out[0] : qn_graph_poison(p->to);
        p->report.casts++;
    } else if (!*cast) {
        bool chance = p->o->key && is_parameter(v) && dtype != QN_DTYPE_F32;
        *cast = chance ? qn_cast_random(p->to, v, p->map[p->o->key->id], dtype)
                       : qn_cast(p->to, v, dtype);
        p->report.casts++;
    }
    *out = p->cast[v->id][at];
    return qn_graph_check(p->to);
}

/* With products in 8 bits everything else is bf16. */
static QnDtype low_dtype(const Pass *p, const QnNode *n)
{
    QnDtype dtype = p->o->of ? p->o->of(p->o->ctx, n) : p->o->low;
    return dtype == QN_DTYPE_F8E4M3FN ? QN_DTYPE_BF16 : dtype;
}

static bool flag_of(const QnNode *n, const char *name)
{
    return *(const bool *)((const char *)n->attr + qn_attr_find(n->op, name)->offset);
}

bool qn_precision_takes_f8(const QnNode *n)
{
    if (n->op != &qn_op_matmul || flag_of(n, "trans_a"))
        return false;
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    if (a->rank != 2 || b->rank != 2)
        return false;
    const int64_t lengths[] = { a->dim[0], a->dim[1], b->dim[0], b->dim[1] };
    for (int i = 0; i < QN_COUNT(lengths); i++) {
        if (lengths[i] <= 0 || lengths[i] % 16)
            return false;
    }
    return true;
}

/* Products of whole matrices, of lengths that tensor cores take in 8 bits. */
static bool is_by_f8(const Pass *p, const QnNode *n)
{
    QnDtype dtype = p->o->of ? p->o->of(p->o->ctx, n) : p->o->low;
    return n->op == &qn_op_matmul && dtype == QN_DTYPE_F8E4M3FN && qn_precision_takes_f8(n);
}

static const char *history_name(Pass *p, const QnNode *n, const char *of)
{
    return qn_arena_printf(p->to->arena, "optim.f8.%lld.%s.%s", (long long)p->n_f8,
                           n->name ? n->name : "matmul", of);
}

/* The product by 8-bit operands in place of the node's. */
static QnStatus product_by_f8(Pass *p, const QnNode *n, QnValue *const *in, QnValue **out)
{
    QnGraph *g = p->to;
    const char *history[] = { history_name(p, n, "x"), history_name(p, n, "w"),
                              history_name(p, n, "dy") };
    if (!history[0] || !history[1] || !history[2])
        return QN_ENOMEM;
    p->n_f8++;
    qn_scope_push(g, n->name ? n->name : n->op->name);
    QnValue *y = qn_matmul_by_f8(g, in[0], in[1], flag_of(n, "trans_b"), history, p->o->updates);
    if (n->n_in > 2 && in[2])
        y = qn_add(g, y, in[2]);
    qn_scope_pop(g);
    *out = y;
    p->report.f8_nodes++;
    return qn_graph_check(g);
}

/* That of the first 16-bit input; where inputs are of both 16-bit types bf16, which holds either's
 * range. */
static QnDtype follow(const QnNode *n, QnValue *const *in)
{
    QnDtype dtype = QN_DTYPE_F32;
    for (int i = 0; i < n->n_in; i++) {
        if (is_low(in[i]) && dtype != QN_DTYPE_BF16)
            dtype = in[i]->type.dtype;
    }
    return dtype;
}

static QnDtype dtype_for(const Pass *p, const QnNode *n, QnValue *const *in, bool is_loss)
{
    Class c = class_of(n->op);
    if (c == CLASS_LOW)
        return low_dtype(p, n);
    if (c == CLASS_HIGH || (is_loss && n->op != &qn_op_cross_entropy))
        return QN_DTYPE_F32;
    return follow(n, in);
}

static QnStatus choose_dtypes(Pass *p, const QnNode *n, QnValue **in)
{
    bool is_loss = n->n_out > 0 && p->is_loss[n->out[0].id];
    QnDtype dtype = dtype_for(p, n, in, is_loss);
    int shared = class_of(n->op) == CLASS_INNER ? QN_MIN(n->n_in, INNER_SHARED) : n->n_in;
    qn_scope_push(p->to, n->name ? n->name : n->op->name); /* who overflows is known by name */
    for (int i = 0; i < n->n_in; i++)
        QN_TRY(in_dtype(p, in[i], i < shared ? dtype : QN_DTYPE_F32, &in[i]));
    qn_scope_pop(p->to);
    *(dtype != QN_DTYPE_F32 ? &p->report.low_nodes : &p->report.high_nodes) += 1;
    return QN_OK;
}

/* What is computed from the model's result is the loss. */
static void mark_loss(Pass *p, const QnNode *n)
{
    bool is_loss = false;
    for (int i = 0; i < n->n_in; i++)
        is_loss |= n->in[i] && (p->is_loss[n->in[i]->id] || n->in[i] == p->o->result);
    for (int i = 0; i < n->n_out; i++)
        p->is_loss[n->out[i].id] = is_loss;
}

static QnStatus copy_node(Pass *p, const QnNode *n, QnValue **in)
{
    mark_loss(p, n);
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? p->map[n->in[i]->id] : NULL;
    if (!(n->op->traits & (QN_LEAF | QN_EFFECT)) && n->op != &qn_op_cast)
        QN_TRY(choose_dtypes(p, n, in));
    else if (n->op->traits & QN_EFFECT) /* a state keeps its dtype */
        QN_TRY(in_dtype(p, in[1], in[0]->type.dtype, &in[1]));
    if (is_by_f8(p, n))
        return product_by_f8(p, n, in, &p->map[n->out[0].id]);
    if (p->o->of && n->op == &qn_op_matmul && qn_precision_takes_f8(n))
        p->n_f8++; /* names of histories do not depend on who is in 8 bits */
    QnNode *copy = qn_graph_copy_node(p->to, n, in);
    if (!copy)
        return p->to->error.code ? qn_graph_check(p->to) : QN_ENOMEM;
    for (int i = 0; i < n->n_out; i++)
        p->map[n->out[i].id] = &copy->out[i];
    /* Rows of a float32 table begin the stream of activations: rounded here, once. */
    if (n->op == &qn_op_embedding)
        return in_dtype(p, &copy->out[0], low_dtype(p, n), &p->map[n->out[0].id]);
    return QN_OK;
}

static QnStatus rewrite(Pass *p, const QnGraph *g)
{
    QnValue **in = qn_arena_array(p->to->arena, QN_MAX_IN, sizeof *in);
    if (!in)
        return QN_ENOMEM;
    p->to->next_stream = g->next_stream;
    QN_GRAPH_EACH(g, n)
    QN_TRY(copy_node(p, n, in));
    for (int64_t i = 0; i < g->n_outputs; i++) {
        QnValue *v = p->map[g->outputs[i].value->id];
        QN_TRY(in_dtype(p, v, g->outputs[i].value->type.dtype, &v));
        QN_TRY(qn_graph_output(p->to, g->outputs[i].name, v));
        p->map[g->outputs[i].value->id] = v;
    }
    return QN_OK;
}

QnStatus qn_precision(QnGraph *g, const QnPrecisionOptions *o, QnGraph **out, QnValue ***map,
                      QnPrecisionReport *report)
{
    if (!o->of && o->low != QN_DTYPE_F16 && o->low != QN_DTYPE_BF16 && o->low != QN_DTYPE_F8E4M3FN)
        return qn_fail(QN_EDTYPE, "mixed precision is in f16, bf16 or f8e4m3fn, not %s",
                       qn_dtype_name(o->low));
    QN_TRY(qn_graph_check(g));
    qn_graph_number(g);
    Pass p = { .to = qn_graph_new(), .o = o };
    if (!p.to)
        return QN_ENOMEM;
    QnStatus st = qn_dims_copy(g, p.to);
    p.map = qn_arena_array(p.to->arena, (size_t)g->n_values + 1, sizeof *p.map);
    p.is_loss = qn_arena_array(p.to->arena, (size_t)g->n_values + 1, sizeof *p.is_loss);
    if (st == QN_OK)
        st = p.map && p.is_loss ? rewrite(&p, g) : QN_ENOMEM;
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

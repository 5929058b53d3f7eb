#include "plan/work.h"

#include "ops/ops.h"
#include "plan/models/recurrent.h"

#include <math.h>
#include <string.h>

static double dim(const QnShape *s, int i)
{
    i = i < 0 ? s->rank + i : i;
    return i >= 0 && i < s->rank ? (double)s->dim[i] : 1;
}

/* A product of which the flops are known: k follows. */
static void set_product(QnWork *w, QnWorkKind kind, double m, double n, double groups)
{
    w->kind = kind;
    w->m = m;
    w->n = n;
    w->groups = QN_MAX(groups, 1);
    w->k = floor(w->flops / (2 * m * n * w->groups)); /* a bias is half of one more */
}

/* A product of all time steps with the weights between them stands for one a step. */
static int64_t steps_of(const QnNode *node)
{
    const QnNode *of = qn_value_resolve(node->in[1])->node;
    return of->op == &qn_op_state ? qn_recurrent_steps(((const QnStateAttr *)of->attr)->name) : 0;
}

static void set_recurrent(QnWork *w, const QnNode *node, int64_t steps)
{
    const QnShape *y = &node->out[0].type.shape;
    double weight = (double)qn_type_bytes(&node->in[1]->type), n = (double)steps;
    w->count = n;
    w->flops /= n;
    w->read = (w->read - weight) / n + weight;
    w->written /= n;
    set_product(w, QN_WORK_RECURRENT, (double)qn_shape_count(y) / dim(y, -1) / n, dim(y, -1), 1);
}

static void set_matmul(QnWork *w, const QnNode *node)
{
    const QnShape *y = &node->out[0].type.shape;
    double all = (double)qn_shape_count(y), n = dim(y, -1), m = dim(y, -2);
    bool one_matrix = node->in[1]->type.shape.rank <= 2; /* rows of all batches together */
    if (one_matrix)
        set_product(w, QN_WORK_GEMM, all / n, n, 1);
    else
        set_product(w, QN_WORK_GEMM, m, n, all / (m * n));
}

static bool is_winograd(const QnNode *node)
{
    const QnConvAttr *a = node->attr;
    const QnShape *w = &(node->op == &qn_op_conv_dw ? &node->out[0] : node->in[1])->type.shape;
    bool small = w->rank == 4 && w->dim[2] == 3 && w->dim[3] == 3 && a->groups <= 1;
    for (int i = 0; i < a->strides.n; i++)
        small &= a->strides.v[i] == 1;
    for (int i = 0; i < a->dilations.n; i++)
        small &= a->dilations.v[i] == 1;
    return small;
}

/* Convolutions and their gradients by what they write: images (rows x channels) or weights. */
static void set_conv(QnWork *w, const QnNode *node, int64_t groups)
{
    const QnShape *y = &node->out[0].type.shape;
    double all = (double)qn_shape_count(y);
    double per_group = node->op == &qn_op_conv_dw ? dim(y, 1) : dim(y, 1) / (double)groups;
    double n = node->op == &qn_op_conv_dw ? dim(y, 0) / (double)groups : per_group;
    double m = all / (n * (double)groups);
    set_product(w, groups > 1 && per_group < 16 ? QN_WORK_DEPTHWISE : QN_WORK_CONV, m, n,
                (double)groups);
    w->winograd = w->kind == QN_WORK_CONV && is_winograd(node);
}

/* Queries x keys x the width of a head, for each head of each example: what does not fuse attention
 * writes that many scores. */
static void set_attention(QnWork *w, const QnNode *node)
{
    int q = node->op == &qn_op_attention_grad; /* after dy */
    const QnShape *query = &node->in[q]->type.shape, *key = &node->in[q + 1]->type.shape;
    w->kind = QN_WORK_ATTENTION;
    w->m = dim(query, -2);
    w->n = dim(key, -2);
    w->k = dim(query, -1);
    w->groups = (double)qn_shape_count(query) / QN_MAX(w->m * w->k, 1);
}

static int64_t conv_groups(const QnNode *node)
{
    const QnConvAttr *a = node->attr; /* the first member for all three */
    return QN_MAX(a->groups, 1);
}

static bool is_update(const QnNode *node)
{
    static const QnOp *const ops[] = { &qn_op_sgd, &qn_op_adam, &qn_op_adamw, &qn_op_lamb };
    for (int i = 0; i < QN_COUNT(ops); i++)
        if (node->op == ops[i])
            return true;
    return false;
}

/* One value a channel: (C), (C,1,1), (1,C,1,1). */
static bool is_vector(const QnValue *v)
{
    int64_t widest = 1;
    for (int i = 0; i < v->type.shape.rank; i++)
        widest = QN_MAX(widest, v->type.shape.dim[i]);
    return widest > 1 && widest == qn_shape_count(&v->type.shape) &&
           (v->type.shape.rank == 1 || v->type.shape.dim[v->type.shape.rank - 1] == 1);
}

/* x with an operation on it and a vector: x; NULL: it is not such a node. */
static const QnValue *scaled(const QnNode *node, const QnOp *op)
{
    if (node->op != op || node->n_in != 2)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (is_vector(node->in[i]) && !is_vector(node->in[1 - i]))
            return node->in[1 - i];
    return NULL;
}

/* What frameworks have in one kernel with other steps: the statistics of a batch norm, and where
 * its factors are no part of the convolution, its addition. */
bool qn_work_is_part_of_norm(const QnNode *node)
{
    const QnValue *x = scaled(node, &qn_op_add);
    return is_vector(&node->out[0]) || (x && scaled(x->node, &qn_op_mul));
}

static bool is_gather(const QnOp *op)
{
    static const QnOp *const ops[] = { &qn_op_embedding,       &qn_op_gather,
                                       &qn_op_gather_elements, &qn_op_gather_nd,
                                       &qn_op_scatter_add,     &qn_op_scatter_elements,
                                       &qn_op_scatter_nd };
    for (int i = 0; i < QN_COUNT(ops); i++)
        if (op == ops[i])
            return true;
    return false;
}

static bool is_sort(const QnOp *op)
{
    return op == &qn_op_sort || op == &qn_op_topk || op == &qn_op_cumsum || op == &qn_op_cumprod;
}

/* Bytes of operands that stand twice among a node's: keys that are values too. */
static double bytes_twice(const QnNode *node)
{
    bool twice = node->op == &qn_op_attention && node->in[1] == node->in[2];
    return twice ? (double)qn_type_bytes(&node->in[1]->type) : 0;
}

/* What is stored in fewer bits than it is computed with is read in fewer bytes. */
static double bytes_spared(const QnNode *node, const QnCountRequest *r)
{
    double spared = 0;
    for (int i = 0; i < node->n_in; i++) {
        const QnValue *v = node->in[i] ? qn_value_resolve(node->in[i]) : NULL;
        if (!v || v->node->op != &qn_op_state)
            continue;
        const QnStateAttr *a = v->node->attr;
        double bits = qn_cache_is_kept(a->name)                ? r->cache_bits
                      : a->trainable && v->type.shape.rank > 1 ? r->weight_bits
                                                               : 0;
        double share = bits > 0 ? bits / (8.0 * (double)qn_dtype_bytes(v->type.dtype)) : 1;
        bool product =
            node->op == &qn_op_matmul || node->op == &qn_op_conv || node->op == &qn_op_attention;
        if (product && share < 1)
            spared += (1 - share) * (double)qn_type_bytes(&v->type);
    }
    return spared;
}

/* A plan of the null device has kernels that do nothing. */
static const char *kernel_name(const QnPlanStep *s, const QnCountRequest *r)
{
    const QnKernel *k = s->kernel;
    if (strcmp(k->backend, r->here->backend->name) != 0 &&
        qn_select(r->here, s->node, r->choices, &k) != QN_OK)
        return NULL;
    return k->name;
}

QnWork qn_work_of(const QnPlanStep *s, const QnCountRequest *r)
{
    const QnOp *op = s->node->op;
    QnWork w = { .kind = QN_WORK_MOVE,
                 .op = op->name,
                 .flops = s->cost.flops,
                 .read = s->cost.bytes_read - bytes_spared(s->node, r) - bytes_twice(s->node),
                 .written = s->cost.bytes_written,
                 .count = 1 };
    w.kernel = r->here ? kernel_name(s, r) : NULL;
    int64_t steps = op == &qn_op_matmul ? steps_of(s->node) : 0;
    if (steps > 0)
        set_recurrent(&w, s->node, steps);
    else if (op == &qn_op_matmul)
        set_matmul(&w, s->node);
    else if (op == &qn_op_conv || op == &qn_op_conv_dx || op == &qn_op_conv_dw)
        set_conv(&w, s->node, conv_groups(s->node));
    else if (op == &qn_op_attention || op == &qn_op_attention_grad)
        set_attention(&w, s->node);
    else if (is_update(s->node))
        w.kind = QN_WORK_UPDATE;
    else if (is_gather(op))
        w.kind = QN_WORK_GATHER;
    else if (is_sort(op))
        w.kind = QN_WORK_SORT;
    return w;
}

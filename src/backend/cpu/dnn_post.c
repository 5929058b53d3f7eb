#include "backend/cpu/dnn_post.h"

#include "ops/ops.h"

#include <string.h>

/* The operand that instruction i reads beside the chain, -1: none; -2: it is no link of a chain. */
static int other_of(const QnBody *b, int i)
{
    const QnBodyInstr *x = &b->instr[i];
    int chain = i == 0 ? 0 : b->n_in + i - 1;
    if (x->op->n_in == 1)
        return x->arg[0] == chain ? -1 : -2;
    if (x->op->n_in != 2)
        return -2;
    bool first = x->arg[0] == chain, second = x->arg[1] == chain;
    int other = first ? x->arg[1] : x->arg[0];
    if (first == second || other < 1 || other >= b->n_in)
        return -2;
    return first || (x->op->traits & QN_COMMUTATIVE) ? other : -2;
}

/* The same for all pixels: one number, or one a channel of (N,C,spatial...). */
static bool is_flat(const QnShape *s, const QnShape *y)
{
    for (int k = 1; k <= s->rank; k++) {
        bool channel = k == y->rank - 1;
        QnDim d = s->dim[s->rank - k];
        if (d != 1 && !(channel && d == y->dim[1]))
            return false;
    }
    return true;
}

/* A full operand must lie as the result does, and the library is at its best where that is fixed.
 */
static const char *operand_refused(const QnNode *n, const QnType *t)
{
    const QnType *y = &n->out[0].type;
    if (t->dtype != y->dtype)
        return "an operand of the maps is of another type";
    if (is_flat(&t->shape, &y->shape))
        return NULL;
    if (!qn_shape_is_equal(&t->shape, &y->shape) || t->layout != y->layout)
        return "an operand of the maps is broadcast in a way that the library has not";
    return y->layout == QN_LAYOUT_CHANNELS_LAST ? NULL : "maps of plain images read two of them";
}

#ifdef QN_HAVE_ONEDNN

typedef struct Eltwise {
    const QnOp *op;
    dnnl_alg_kind_t kind;
    int alpha, beta; /* number of the operator's float attribute, -1: .a, .b */
    float a, b;
} Eltwise;

static const Eltwise eltwise[] = {
    { &qn_op_relu, dnnl_eltwise_relu, -1, -1, 0, 0 },
    { &qn_op_leaky_relu, dnnl_eltwise_relu, 0, -1, 0, 0 },
    { &qn_op_relu6, dnnl_eltwise_clip, -1, -1, 0, 6 },
    { &qn_op_clip, dnnl_eltwise_clip, 0, 1, 0, 0 },
    { &qn_op_sigmoid, dnnl_eltwise_logistic, -1, -1, 0, 0 },
    { &qn_op_tanh, dnnl_eltwise_tanh, -1, -1, 0, 0 },
    { &qn_op_silu, dnnl_eltwise_swish, -1, -1, 1, 0 },
    { &qn_op_gelu, dnnl_eltwise_gelu_erf, -1, -1, 0, 0 },
    { &qn_op_gelu_tanh, dnnl_eltwise_gelu_tanh, -1, -1, 0, 0 },
    { &qn_op_elu, dnnl_eltwise_elu, 0, -1, 0, 0 },
    { &qn_op_hardswish, dnnl_eltwise_hardswish, -1, -1, 0, 0 },
    { &qn_op_abs, dnnl_eltwise_abs, -1, -1, 0, 0 },
    { &qn_op_square, dnnl_eltwise_square, -1, -1, 0, 0 },
};

static const struct {
    const QnOp *op;
    dnnl_alg_kind_t kind;
} binary[] = {
    { &qn_op_add, dnnl_binary_add },     { &qn_op_sub, dnnl_binary_sub },
    { &qn_op_mul, dnnl_binary_mul },     { &qn_op_div, dnnl_binary_div },
    { &qn_op_maximum, dnnl_binary_max }, { &qn_op_minimum, dnnl_binary_min },
};

static const Eltwise *find_eltwise(const QnOp *op)
{
    for (size_t i = 0; i < QN_COUNT(eltwise); i++)
        if (eltwise[i].op == op)
            return &eltwise[i];
    return NULL;
}

static dnnl_alg_kind_t find_binary(const QnOp *op)
{
    for (size_t i = 0; i < QN_COUNT(binary); i++)
        if (binary[i].op == op)
            return binary[i].kind;
    return dnnl_alg_kind_undef;
}

const char *qn_dnn_post_refuses(const QnNode *n, const QnBody *b, int first)
{
    if (b->n_out != 1 || b->out[0] != b->n_instr - 1 || b->n_instr > QN_DNN_MAX_POST)
        return "the maps are no chain";
    for (int i = 0; i < b->n_instr; i++) {
        int other = other_of(b, i);
        if (other == -2)
            return "the maps are no chain";
        if (b->instr[i].dtype != n->out[0].type.dtype)
            return "the maps change the type";
        if (other == -1 ? !find_eltwise(b->instr[i].op)
                        : find_binary(b->instr[i].op) == dnnl_alg_kind_undef)
            return "the library has no such map";
        if (other < 0)
            continue;
        const char *why = operand_refused(n, &n->in[first + other - 1]->type);
        if (why)
            return why;
    }
    return NULL;
}

static QnStatus add_eltwise(const QnBodyInstr *x, dnnl_post_ops_t post)
{
    double v[QN_MAP_MAX_PARAM] = { 0 };
    const Eltwise *e = find_eltwise(x->op);
    qn_attr_floats(x->op, x->attr, v);
    float alpha = e->alpha >= 0 ? (float)v[e->alpha] : e->a;
    float beta = e->beta >= 0 ? (float)v[e->beta] : e->b;
    QN_DNN(dnnl_post_ops_append_eltwise(post, 1.0f, e->kind, alpha, beta));
    return QN_OK;
}

/* A flat operand with all of the result's axes. */
static QnStatus operand_md(const QnNode *n, const QnType *t, dnnl_memory_desc_t *md)
{
    const QnShape *y = &n->out[0].type.shape;
    if (qn_shape_is_equal(&t->shape, y))
        return qn_dnn_md(t, 1, md);
    QnType flat = { .dtype = t->dtype, .shape = { .rank = y->rank } };
    for (int i = 0; i < y->rank; i++)
        flat.shape.dim[i] = 1;
    if (qn_shape_count(&t->shape) > 1)
        flat.shape.dim[1] = y->dim[1];
    return qn_dnn_md(&flat, 1, md);
}

QnStatus qn_dnn_post_add(const QnNode *n, const QnBody *b, int first, dnnl_post_ops_t post,
                         QnDnnArg *args, int *n_args)
{
    for (int i = 0; i < b->n_instr; i++) {
        int other = other_of(b, i), index = first + other - 1;
        if (other < 0) {
            QN_TRY(add_eltwise(&b->instr[i], post));
            continue;
        }
        QnDnnArg *a = &args[(*n_args)++];
        *a =
            (QnDnnArg){ .arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1, .index = index };
        QN_TRY(operand_md(n, &n->in[index]->type, &a->md));
        QN_DNN(dnnl_post_ops_append_binary(post, find_binary(b->instr[i].op), &a->md));
    }
    return QN_OK;
}

#else

const char *qn_dnn_post_refuses(const QnNode *n, const QnBody *b, int first)
{
    (void)first;
    (void)other_of(b, 0);
    (void)operand_refused(n, &n->out[0].type);
    return "Quern was built without oneDNN";
}
#endif

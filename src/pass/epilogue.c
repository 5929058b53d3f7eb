/* What follows a product: y = matmul(a, b) + c is matmul(a, b, c) where c holds one number a
 * column, conv likewise one a channel, and matmul_f8 where the device takes it. The sum is then
 * rounded once. Later maps stay for the fusion pass: the kernels' attributes offer no more. */
#include "ops/ops.h"
#include "pass/rewrite.h"

/* c as a product's bias, one number a column; NULL: it is none. */
static QnValue *column_bias(QnGraph *g, QnValue *c, const QnShape *y)
{
    const QnShape *s = &c->type.shape;
    if (s->rank < 1 || s->rank > y->rank || s->dim[s->rank - 1] != y->dim[y->rank - 1])
        return NULL;
    for (int k = 2; k <= s->rank; k++) {
        if (s->dim[s->rank - k] != 1)
            return NULL;
    }
    return qn_reshape(g, c, &QN_SHAPE(y->dim[y->rank - 1]));
}

/* c as a convolution's bias (M); NULL: it is none. c is (M,1,1) or (1,M,1,1), y (N,M,H,W). */
static QnValue *channel_bias(QnGraph *g, QnValue *c, const QnShape *y)
{
    const QnShape *s = &c->type.shape;
    for (int k = 1; k <= s->rank; k++) {
        QnDim want = k == y->rank - 1 ? y->dim[1] : 1;
        if (k > y->rank || s->dim[s->rank - k] != want)
            return NULL;
    }
    return s->rank >= y->rank - 1 ? qn_reshape(g, c, &QN_SHAPE(y->dim[1])) : NULL;
}

static bool is_product(const QnValue *v, const QnNode *n, const int32_t *uses)
{
    const QnNode *p = v->node;
    return (p->op == &qn_op_matmul || p->op == &qn_op_conv || p->op == &qn_op_matmul_f8) &&
           uses[v->id] == 1 && qn_type_is_equal(&v->type, &n->out[0].type);
}

/* A product of 8 bits is here because the device has a kernel for it, which must take the bias. */
static QnValue *f8_with_bias(QnGraph *g, QnNode *p, QnValue *c, const QnPipelineOptions *o)
{
    const QnType *y = &p->out[0].type;
    c = p->n_in == 4 && c->type.dtype == y->dtype ? column_bias(g, c, &y->shape) : NULL;
    QnValue *v = c ? qn_matmul_f8(g, p->in[0], p->in[1], p->in[2], p->in[3], c, y->dtype) : NULL;
    if (!v || qn_value_is_poison(v) || (o->keep && o->keep(o->keep_ctx, v->node)))
        return v;
    qn_graph_remove(g, v->node);
    return NULL;
}

static QnValue *with_bias(QnGraph *g, QnNode *p, QnValue *c, const QnPipelineOptions *o)
{
    const QnShape *y = &p->out[0].type.shape;
    if (p->op == &qn_op_matmul_f8)
        return f8_with_bias(g, p, c, o);
    c = p->op == &qn_op_conv ? channel_bias(g, c, y) : column_bias(g, c, y);
    if (c && p->n_in > 2 && p->in[2]) /* sums of few numbers instead of sums of all */
        c = qn_shape_is_equal(&p->in[2]->type.shape, &c->type.shape) ? qn_add(g, p->in[2], c)
                                                                     : NULL;
    return c ? qn_emit3(g, p->op, p->attr, p->in[0], p->in[1], c) : NULL;
}

QnStatus qn_pass_epilogue(QnGraph *g, const QnPipelineOptions *o)
{
    qn_graph_number(g);
    const int32_t *uses = qn_graph_uses(g);
    if (!uses)
        return QN_ENOMEM;
    int64_t known = g->n_values;
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        if (n->op != &qn_op_add || n->out[0].type.layout != QN_LAYOUT_PLAIN)
            continue;
        for (int i = 0; i < 2; i++) {
            QnValue *v = qn_value_resolve(n->in[i]), *c = qn_value_resolve(n->in[1 - i]);
            if (v->id >= known || !is_product(v, n, uses))
                continue;
            qn_graph_set_cursor(g, n);
            QnValue *y = with_bias(g, v->node, c, o);
            if (!y)
                continue;
            y->node->name = n->name ? n->name : v->node->name;
            qn_rewrite_to(g, n, y);
            break;
        }
    }
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

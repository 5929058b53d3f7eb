/* Constant factors go into constant weights: conv(x, w) * s, with one number of s a channel, is
 * conv(x, w * s). So a batch norm by given statistics, which is a multiply-add by then, costs
 * nothing after a convolution. The product is rounded to the weight's dtype once more. */
#include "ops/ops.h"
#include "pass/rewrite.h"

#include <string.h>

static bool is_constant(const QnValue *v)
{
    return v && v->type.dtype == QN_DTYPE_F32 && qn_constant_data(v);
}

/* c as one number a channel of y (N,M,spatial...): its data, or NULL. */
static const float *channel_factor(const QnValue *c, const QnShape *y)
{
    const QnShape *s = &c->type.shape;
    if (!is_constant(c) || qn_shape_count(s) != y->dim[1])
        return NULL;
    for (int k = 1; k <= s->rank; k++)
        if (k > y->rank || (k != y->rank - 1 && s->dim[s->rank - k] != 1))
            return NULL;
    return s->rank >= y->rank - 1 ? qn_constant_data(c) : NULL;
}

/* w (M,...) with row m times s[m]. */
static QnValue *scaled(QnGraph *g, const QnValue *w, const float *s)
{
    const float *from = qn_constant_data(w);
    int64_t rows = w->type.shape.dim[0], count = qn_shape_count(&w->type.shape);
    float *to = qn_arena_array(g->arena, (size_t)count + 1, sizeof *to);
    if (!to)
        return qn_graph_poison(g);
    for (int64_t m = 0; m < rows; m++)
        for (int64_t i = m * (count / rows); i < (m + 1) * (count / rows); i++)
            to[i] = from[i] * s[m];
    return qn_constant_of_arena(g, QN_DTYPE_F32, &w->type.shape, to);
}

static bool takes_scale(const QnNode *conv, const int32_t *uses)
{
    return conv->op == &qn_op_conv && uses[conv->out[0].id] == 1 && is_constant(conv->in[1]) &&
           (conv->n_in < 3 || !conv->in[2] || is_constant(conv->in[2])) &&
           qn_shape_count(&conv->in[1]->type.shape) > 0;
}

/* The product n = conv * c; NULL: it stays. */
static QnValue *fold(QnGraph *g, const QnNode *n, const int32_t *uses, int64_t known)
{
    for (int i = 0; i < 2; i++) {
        const QnValue *v = qn_value_resolve(n->in[i]), *c = n->in[1 - i];
        if (v->id >= known || !takes_scale(v->node, uses) ||
            !qn_shape_is_equal(&v->type.shape, &n->out[0].type.shape))
            continue;
        const QnNode *p = v->node;
        const float *s = channel_factor(c, &v->type.shape);
        if (!s)
            continue;
        QnValue *bias = p->n_in > 2 && p->in[2] ? scaled(g, p->in[2], s) : NULL;
        return qn_conv(g, p->in[0], scaled(g, p->in[1], s), bias, p->attr);
    }
    return NULL;
}

QnStatus qn_pass_fold_scale(QnGraph *g, const QnPipelineOptions *o)
{
    qn_graph_number(g);
    const int32_t *uses = qn_graph_uses(g);
    int64_t known = g->n_values;
    if (!uses)
        return QN_ENOMEM;
    for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
        if (n->op != &qn_op_mul || n->out[0].type.layout != QN_LAYOUT_PLAIN)
            continue;
        qn_graph_set_cursor(g, n);
        QnValue *y = fold(g, n, uses, known);
        if (!y)
            continue;
        y->node->name = n->name;
        qn_rewrite_to(g, n, y);
    }
    qn_graph_set_cursor(g, NULL);
    QN_TRY(qn_graph_check(g));
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}

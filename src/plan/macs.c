#include "plan/macs.h"

#include "ops/ops.h"

/* The operators' costs count two operations a multiply-add and one more for each element that gets
 * a bias. */
static double of_product(const QnNode *n)
{
    bool bias = n->n_in > 2 && n->in[2];
    double added = bias ? (double)qn_shape_count(&n->out[0].type.shape) : 0;
    return (n->op->cost(n).flops - added) / 2;
}

/* Each element that goes in meets all weights of its channel. */
static double of_transposed(const QnNode *n)
{
    const QnShape *x = &n->in[0]->type.shape, *w = &n->in[1]->type.shape;
    return (double)qn_shape_count(x) * (double)qn_shape_count(w) / (double)w->dim[0];
}

/* Over what flops of a pair of query and key are beside its two products, see attention's cost. */
static double of_attention(const QnNode *n)
{
    const QnShape *q = &n->in[0]->type.shape, *v = &n->in[2]->type.shape;
    double products = (double)(q->dim[3] + v->dim[3]);
    return n->op->cost(n).flops * products / (2 * products + 14);
}

double qn_macs(const QnGraph *g)
{
    double macs = 0;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op == &qn_op_conv || n->op == &qn_op_matmul)
            macs += of_product(n);
        else if (n->op == &qn_op_conv_transpose)
            macs += of_transposed(n);
        else if (n->op == &qn_op_attention)
            macs += of_attention(n);
    }
    return macs;
}

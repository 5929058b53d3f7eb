/* Sum or mean over axes of what a body of maps computes, which is never stored: made by the fusion
 * pass, never by models. The inputs broadcast to one shape, whose axes are folded. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/body.h"
#include "ops/util.h"

typedef struct Attr {
    QnReduceAttr reduce;
    const QnBody *body;
    bool mean;
} Attr;

static const QnAttrField fused_sum_fields[] = {
    QN_REDUCE_FIELDS,
    { .name = "body",
      .kind = QN_ATTR_BODY,
      .offset = offsetof(Attr, body),
      .doc = "the maps, in order; one output" },
    { .name = "mean",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, mean),
      .doc = "divide by the number of elements folded into each" },
};

static QnStatus fused_sum_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QN_TRY(qn_body_check("fused_sum", c->graph, a->body, c->in, c->n_in));
    if (a->body->n_out != 1)
        return qn_fail(QN_EARG, "fused_sum: the body has %d outputs, not one", a->body->n_out);
    QnDtype d = qn_body_dtype(a->body, 0);
    if (!qn_dtype_is_float(d))
        return qn_fail(QN_EDTYPE, "fused_sum: adds floating-point numbers, not %s",
                       qn_dtype_name(d));
    QN_TRY(qn_infer_broadcast(c, "fused_sum"));
    QnShape whole = c->out[0].shape;
    c->out[0].dtype = d;
    return qn_util_reduce_shape("fused_sum", &whole, &a->reduce, &c->out[0].shape);
}

/* What the inputs of a concrete node broadcast to: the shape whose axes are folded. */
QN_API QnShape qn_fused_sum_shape(const QnNode *n)
{
    QnShape s = { 0 };
    for (int i = 0; i < n->n_in; i++)
        s.rank = QN_MAX(s.rank, n->in[i]->type.shape.rank);
    for (int d = 0; d < s.rank; d++) {
        s.dim[d] = 1;
        for (int i = 0; i < n->n_in; i++) {
            const QnShape *x = &n->in[i]->type.shape;
            int axis = d - (s.rank - x->rank);
            if (axis >= 0 && x->dim[axis] != 1)
                s.dim[d] = x->dim[axis];
        }
    }
    return s;
}

static QnCost fused_sum_cost(const QnNode *n)
{
    QnShape whole = qn_fused_sum_shape(n);
    QnCost c = { .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    c.flops = (qn_body_flops(((const Attr *)n->attr)->body) + 1) * (double)qn_shape_count(&whole);
    return c;
}

static void fused_sum_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnValue *y = NULL;
    qn_body_emit(g, a->body, n->in, &y);
    out[0] = a->mean ? qn_mean(g, y, a->reduce.axes, a->reduce.keepdims)
                     : qn_sum(g, y, a->reduce.axes, a->reduce.keepdims);
}

static const QnBody fused_sum_square = {
    .n_in = 1,
    .n_instr = 1,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_square, .arg = { 0 } } },
    .out = (const int[]){ 0 },
};

static const QnBody fused_sum_gate = {
    .n_in = 3,
    .n_instr = 3,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_mul, .arg = { 0, 1 } },
                                    { .op = &qn_op_sigmoid, .arg = { 3 } },
                                    { .op = &qn_op_sub, .arg = { 4, 2 } } },
    .out = (const int[]){ 2 },
};

static const QnSample fused_sum_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ .body = &fused_sum_square } },
    { .in = { { 2, { 5, 130 } }, { 1, { 130 } }, { 2, { 5, 1 } } },
      .n_in = 3,
      .attr = &(Attr){ { { 1, { 1 } }, false }, &fused_sum_gate, false } },
    { .in = { { 2, { 130, 6 } }, { 1, { 6 } }, { 0 } },
      .n_in = 3,
      .attr = &(Attr){ { { 1, { 0 } }, true }, &fused_sum_gate, true } },
    { .in = { { 4, { 2, 3, 4, 5 } }, { 3, { 3, 1, 1 } }, { 1, { 5 } } },
      .n_in = 3,
      .attr = &(Attr){ { { 2, { 2, -1 } }, true }, &fused_sum_gate, false } },
};

QN_API QnValue *qn_fused_sum(QnGraph *g, const QnBody *body, QnValue *const *in, QnInts axes,
                             bool keepdims, bool mean)
{
    return qn_emitn(g, &qn_op_fused_sum, &(Attr){ { axes, keepdims }, body, mean }, in, body->n_in);
}

const QnOp qn_op_fused_sum = {
    .name = "fused_sum",
    .version = 1,
    .doc = "sum or mean over axes of maps that are not stored",
    .n_in = 1,
    .n_in_max = QN_MAX_IN,
    QN_ATTRS(Attr, fused_sum_fields),
    .infer = fused_sum_infer,
    .cost = fused_sum_cost,
    .lower = fused_sum_lower,
    QN_SAMPLES(fused_sum_samples),
};
#endif

/* A group of maps in one pass over memory: made by the fusion pass, never by models. The inputs
 * broadcast to one shape, which all outputs have. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/body.h"

typedef struct Attr {
    const QnBody *body;
} Attr;

static const QnAttrField fused_fields[] = {
    { .name = "body",
      .kind = QN_ATTR_BODY,
      .offset = offsetof(Attr, body),
      .doc = "the maps, in order" },
};

static QnStatus fused_infer(QnInfer *c)
{
    const QnBody *b = ((const Attr *)c->attr)->body;
    QN_TRY(qn_body_check("fused", c->graph, b, c->in, c->n_in));
    QN_TRY(qn_infer_broadcast(c, "fused"));
    c->n_out = b->n_out;
    for (int i = b->n_out - 1; i >= 0; i--) {
        c->out[i].shape = c->out[0].shape;
        c->out[i].dtype = qn_body_dtype(b, i);
    }
    return QN_OK;
}

static QnCost fused_cost(const QnNode *n)
{
    QnCost c = { 0 };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    c.flops = qn_body_flops(((const Attr *)n->attr)->body) *
              (double)qn_shape_count(&n->out[0].type.shape);
    return c;
}

static void fused_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnBody *b = ((const Attr *)n->attr)->body;
    qn_body_emit(g, b, n->in, out);
    for (int i = 0; i < b->n_out && !g->error.code; i++)
        out[i] = qn_expand(g, out[i], &n->out[0].type.shape);
}

static const QnBody fused_silu = {
    .n_in = 2,
    .n_instr = 2,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_add, .arg = { 0, 1 } },
                                    { .op = &qn_op_silu, .arg = { 2 } } },
    .out = (const int[]){ 1 },
};

static const QnBody fused_gate = {
    .n_in = 3,
    .n_instr = 3,
    .n_out = 2,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_mul, .arg = { 0, 1 } },
                                    { .op = &qn_op_sigmoid, .arg = { 3 } },
                                    { .op = &qn_op_sub, .arg = { 4, 2 } } },
    .out = (const int[]){ 2, 0 },
};

static const QnSample fused_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 1, { 7 } } }, .n_in = 2, .attr = &(Attr){ &fused_silu } },
    { .in = { { 1, { 130 } }, { 0 }, { 1, { 130 } } }, .n_in = 3, .attr = &(Attr){ &fused_gate } },
};

QN_API QnNode *qn_fused(QnGraph *g, const QnBody *body, QnValue *const *in)
{
    return qn_emit(g, &qn_op_fused, &(Attr){ body }, in, body->n_in);
}

/* The body of a fused node; NULL: another operator. */
QN_API const QnBody *qn_fused_body(const QnNode *n)
{
    return n->op == &qn_op_fused ? ((const Attr *)n->attr)->body : NULL;
}

const QnOp qn_op_fused = {
    .name = "fused",
    .version = 1,
    .doc = "maps in one pass over memory",
    .n_in = 1,
    .n_in_max = QN_MAX_IN,
    .n_out = -1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, fused_fields),
    .infer = fused_infer,
    .cost = fused_cost,
    .lower = fused_lower,
    QN_SAMPLES(fused_samples),
};
#endif

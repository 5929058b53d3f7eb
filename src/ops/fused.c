/* A group of maps in one pass over memory: made by the fusion pass, never by models. The inputs
 * broadcast to one shape, which all outputs have. */
#include "ops/dialect.h"

#ifdef QN_HOST

typedef struct Attr {
    const QnBody *body;
} Attr;

static const QnAttrField fused_fields[] = {
    { .name = "body",
      .kind = QN_ATTR_BODY,
      .offset = offsetof(Attr, body),
      .doc = "the maps, in order" },
};

static QnStatus check_body(const QnBody *b, int n_in)
{
    if (!b || b->n_in != n_in || b->n_instr < 1 || b->n_out < 1 || b->n_out > QN_MAX_OUT)
        return qn_fail(QN_EARG, "fused: the body does not fit %d inputs", n_in);
    for (int i = 0; i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        if (!x->op->map)
            return qn_fail(QN_EARG, "fused: %s is no map", x->op->name);
        for (int k = 0; k < x->op->n_in; k++) {
            if (x->arg[k] < 0 || x->arg[k] >= n_in + i)
                return qn_fail(QN_EARG, "fused: instruction %d reads operand %d", i, x->arg[k]);
        }
    }
    for (int i = 0; i < b->n_out; i++) {
        if (b->out[i] < 0 || b->out[i] >= b->n_instr)
            return qn_fail(QN_EARG, "fused: output %d is instruction %d", i, b->out[i]);
        for (int k = 0; k < i; k++) {
            if (b->out[k] == b->out[i])
                return qn_fail(QN_EARG, "fused: outputs %d and %d are the same", k, i);
        }
    }
    return QN_OK;
}

/* Each instruction's dtype is what its operator makes of its operands'. */
static QnStatus check_dtypes(const QnInfer *c, const QnBody *b)
{
    QnType *t = qn_alloc_array((size_t)(b->n_in + b->n_instr) + 1, sizeof *t);
    QnStatus st = t ? QN_OK : QN_ENOMEM;
    for (int i = 0; !st && i < b->n_in; i++)
        t[i].dtype = c->in[i]->dtype;
    for (int i = 0; !st && i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        const QnType *in[QN_MAP_MAX_IN];
        for (int k = 0; k < x->op->n_in; k++)
            in[k] = &t[x->arg[k]];
        QnInfer one = {
            .graph = c->graph, .attr = x->attr, .n_in = x->op->n_in, .in = in, .n_out = 1
        };
        st = x->op->infer ? x->op->infer(&one) : qn_infer_map(&one, x->op);
        if (!st && one.out[0].dtype != x->dtype)
            st = qn_fail(QN_EDTYPE, "fused: instruction %d, %s, gives %s, not %s", i, x->op->name,
                         qn_dtype_name(one.out[0].dtype), qn_dtype_name(x->dtype));
        t[b->n_in + i].dtype = x->dtype;
    }
    qn_free(t);
    return st;
}

static QnStatus fused_infer(QnInfer *c)
{
    const QnBody *b = ((const Attr *)c->attr)->body;
    QN_TRY(check_body(b, c->n_in));
    for (int i = 0; i < c->n_in; i++) {
        if (c->in[i]->dtype == QN_DTYPE_COUNT)
            return qn_fail(QN_EARG, "fused: input %d is missing", i);
    }
    QN_TRY(check_dtypes(c, b));
    QN_TRY(qn_infer_broadcast(c, "fused"));
    c->n_out = b->n_out;
    for (int i = b->n_out - 1; i >= 0; i--) {
        c->out[i].shape = c->out[0].shape;
        c->out[i].dtype = b->instr[b->out[i]].dtype;
    }
    return QN_OK;
}

static QnCost fused_cost(const QnNode *n)
{
    const QnBody *b = ((const Attr *)n->attr)->body;
    QnCost c = { 0 };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    for (int i = 0; i < b->n_instr; i++)
        c.flops += b->instr[i].op->map->flops * (double)qn_shape_count(&n->out[0].type.shape);
    return c;
}

/* The maps as nodes again. */
static void fused_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnBody *b = ((const Attr *)n->attr)->body;
    QnValue **v = qn_arena_array(g->arena, (size_t)(b->n_in + b->n_instr), sizeof *v);
    if (!v) {
        qn_graph_poison(g);
        return;
    }
    memcpy(v, n->in, (size_t)b->n_in * sizeof *v);
    for (int i = 0; i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        QnValue *in[QN_MAP_MAX_IN] = { 0 };
        for (int k = 0; k < x->op->n_in; k++)
            in[k] = v[x->arg[k]];
        v[b->n_in + i] = qn_emitn(g, x->op, x->attr, in, x->op->n_in);
    }
    for (int i = 0; i < b->n_out; i++)
        out[i] = qn_expand(g, v[b->n_in + b->out[i]], &n->out[0].type.shape);
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

#include "ops/body.h"
#include "ops/ops.h"

#include <string.h>

static QnStatus check_form(const char *op, const QnBody *b, int n_in)
{
    if (!b || b->n_in != n_in || b->n_instr < 1 || b->n_out < 1 || b->n_out > QN_MAX_OUT)
        return qn_fail(QN_EARG, "%s: the body does not fit %d inputs", op, n_in);
    for (int i = 0; i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        if (!x->op->map)
            return qn_fail(QN_EARG, "%s: %s is no map", op, x->op->name);
        for (int k = 0; k < x->op->n_in; k++) {
            if (x->arg[k] < 0 || x->arg[k] >= n_in + i)
                return qn_fail(QN_EARG, "%s: instruction %d reads operand %d", op, i, x->arg[k]);
        }
    }
    for (int i = 0; i < b->n_out; i++) {
        if (b->out[i] < 0 || b->out[i] >= b->n_instr)
            return qn_fail(QN_EARG, "%s: output %d is instruction %d", op, i, b->out[i]);
        for (int k = 0; k < i; k++) {
            if (b->out[k] == b->out[i])
                return qn_fail(QN_EARG, "%s: outputs %d and %d are the same", op, k, i);
        }
    }
    return QN_OK;
}

/* Each instruction's dtype is what its operator makes of its operands'. */
static QnStatus check_dtypes(const char *op, QnGraph *g, const QnBody *b, const QnType *const *ins)
{
    QnType *t = qn_alloc_array((size_t)(b->n_in + b->n_instr) + 1, sizeof *t);
    QnStatus st = t ? QN_OK : QN_ENOMEM;
    for (int i = 0; !st && i < b->n_in; i++)
        t[i].dtype = ins[i]->dtype;
    for (int i = 0; !st && i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        const QnType *in[QN_MAP_MAX_IN];
        for (int k = 0; k < x->op->n_in; k++)
            in[k] = &t[x->arg[k]];
        QnInfer one = { .graph = g, .attr = x->attr, .n_in = x->op->n_in, .in = in, .n_out = 1 };
        st = x->op->infer ? x->op->infer(&one) : qn_infer_map(&one, x->op);
        if (!st && one.out[0].dtype != x->dtype)
            st = qn_fail(QN_EDTYPE, "%s: instruction %d, %s, gives %s, not %s", op, i, x->op->name,
                         qn_dtype_name(one.out[0].dtype), qn_dtype_name(x->dtype));
        t[b->n_in + i].dtype = x->dtype;
    }
    qn_free(t);
    return st;
}

QnStatus qn_body_check(const char *op, QnGraph *g, const QnBody *b, const QnType *const *in,
                       int n_in)
{
    QN_TRY(check_form(op, b, n_in));
    for (int i = 0; i < n_in; i++) {
        if (in[i]->dtype == QN_DTYPE_COUNT)
            return qn_fail(QN_EARG, "%s: input %d is missing", op, i);
    }
    return check_dtypes(op, g, b, in);
}

QnDtype qn_body_dtype(const QnBody *b, int i)
{
    return b->instr[b->out[i]].dtype;
}

double qn_body_flops(const QnBody *b)
{
    double flops = 0;
    for (int i = 0; i < b->n_instr; i++)
        flops += b->instr[i].op->map->flops;
    return flops;
}

void qn_body_emit(QnGraph *g, const QnBody *b, QnValue *const *in, QnValue **out)
{
    QnValue **v = qn_arena_array(g->arena, (size_t)(b->n_in + b->n_instr), sizeof *v);
    if (!v) {
        qn_graph_poison(g);
        return;
    }
    memcpy(v, in, (size_t)b->n_in * sizeof *v);
    for (int i = 0; i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        QnValue *args[QN_MAP_MAX_IN] = { 0 };
        for (int k = 0; k < x->op->n_in; k++)
            args[k] = v[x->arg[k]];
        v[b->n_in + i] = qn_emitn(g, x->op, x->attr, args, x->op->n_in);
    }
    for (int i = 0; i < b->n_out; i++)
        out[i] = v[b->n_in + b->out[i]];
}

const QnBody *qn_body_of(const QnNode *n)
{
    for (int i = 0; i < n->op->n_fields; i++) {
        const QnAttrField *f = &n->op->fields[i];
        if (f->kind == QN_ATTR_BODY)
            return *(const QnBody *const *)(const void *)((const char *)n->attr + f->offset);
    }
    return NULL;
}

const QnBody *qn_body_of_maps(const QnNode *n, QnBodyOne *one)
{
    if (!n->op->map)
        return qn_fused_body(n);
    one->instr = (QnBodyInstr){ n->op, n->attr, { 0, 1, 2 }, n->out[0].type.dtype };
    one->out = 0;
    one->body = (QnBody){ n->n_in, 1, 1, &one->instr, &one->out };
    return &one->body;
}

const QnBody *qn_body_with_first(QnArena *arena, const QnBody *b, int first)
{
    QnBody *to = qn_arena_copy(arena, b, sizeof *b);
    QnBodyInstr *instr = qn_arena_copy(arena, b->instr, (size_t)b->n_instr * sizeof *instr);
    if (!to || !instr)
        return NULL;
    for (int i = 0; i < b->n_instr; i++)
        for (int k = 0; k < instr[i].op->n_in; k++) {
            int a = instr[i].arg[k];
            instr[i].arg[k] = a >= b->n_in ? a : a == first ? 0 : a + (a < first);
        }
    to->instr = instr;
    return to;
}

/* Emission: attributes checked and copied, types inferred, the node linked. */
#include "ir/graph.h"

#include <stdio.h>
#include <string.h>

static bool dims_agree(QnDim a, QnDim b, QnDim *out)
{
    if (a == b || b == 1) {
        *out = a;
        return true;
    }
    *out = b;
    return a == 1;
}

QnStatus qn_infer_broadcast(QnInfer *c, const char *op_name)
{
    QnShape s = c->in[0]->shape;
    for (int i = 1; i < c->n_in; i++) {
        const QnShape *t = &c->in[i]->shape;
        QnShape r = { .rank = QN_MAX(s.rank, t->rank) };
        for (int k = 1; k <= r.rank; k++) { /* aligned at the last axis */
            QnDim a = k <= s.rank ? s.dim[s.rank - k] : 1;
            QnDim b = k <= t->rank ? t->dim[t->rank - k] : 1;
            if (!dims_agree(a, b, &r.dim[r.rank - k])) {
                char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
                return qn_fail(QN_ESHAPE, "%s: shapes %s and %s do not broadcast (axis %d)",
                               op_name, qn_shape_text(&s, x), qn_shape_text(t, y), -k);
            }
        }
        s = r;
    }
    c->out[0].shape = s;
    return QN_OK;
}

QnStatus qn_infer_map(QnInfer *c, const QnOp *op)
{
    QnDtype dtype = c->in[0]->dtype;
    for (int i = 1; i < c->n_in; i++) {
        if (c->in[i]->dtype != dtype)
            return qn_fail(QN_EDTYPE, "%s: operands are %s and %s; cast one of them", op->name,
                           qn_dtype_name(dtype), qn_dtype_name(c->in[i]->dtype));
    }
    if ((op->traits & QN_FLOAT_ONLY) && !qn_dtype_is_float(dtype))
        return qn_fail(QN_EDTYPE, "%s: needs a floating-point operand, not %s", op->name,
                       qn_dtype_name(dtype));
    c->out[0].dtype = dtype;
    return qn_infer_broadcast(c, op->name);
}

/* Dtypes for storage alone: only what moves data takes them. */
static QnStatus check_storage(const QnOp *op, const QnInfer *c)
{
    if (op->traits & (QN_MOVES_DATA | QN_VIEW | QN_LEAF | QN_ANY_DTYPE))
        return QN_OK;
    for (int i = 0; i < c->n_in + c->n_out; i++) {
        QnDtype dtype = i < c->n_in ? c->in[i]->dtype : c->out[i - c->n_in].dtype;
        if (qn_dtype_is_storage(dtype))
            return qn_fail(QN_EDTYPE, "%s: does not compute with %s, which is for storage: cast",
                           op->name, qn_dtype_name(dtype));
    }
    return QN_OK;
}

static QnStatus check_arity(const QnOp *op, QnValue *const *in, int n_in)
{
    int most = op->n_in_max ? op->n_in_max : op->n_in;
    if (n_in < op->n_in || n_in > most)
        return qn_fail(QN_EARG, "%s: takes %d%s inputs, not %d", op->name, op->n_in,
                       most > op->n_in ? " or more" : "", n_in);
    for (int i = 0; i < n_in; i++) {
        if (!in[i] && i < op->n_in)
            return qn_fail(QN_EARG, "%s: input %d is missing", op->name, i);
    }
    return QN_OK;
}

QnStatus qn_graph_infer(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in,
                        QnInfer *c)
{
    static const QnType none = { .dtype = QN_DTYPE_COUNT }; /* an absent optional input */
    QN_TRY(check_arity(op, in, n_in));
    const QnType *small[16], **types = small;
    if (n_in > QN_COUNT(small) && !(types = qn_arena_array(g->arena, (size_t)n_in, sizeof *types)))
        return QN_ENOMEM;
    for (int i = 0; i < n_in; i++)
        types[i] = in[i] ? &in[i]->type : &none;
    int n_out = op->n_out ? op->n_out : 1;
    *c = (QnInfer){ .graph = g, .attr = attr, .n_in = n_in, .in = types, .n_out = n_out };
    QN_TRY(op->infer ? op->infer(c) : qn_infer_map(c, op));
    QN_TRY(qn_graph_check(g)); /* arithmetic on dims */
    if (c->n_out < 0 || c->n_out > QN_MAX_OUT)
        return qn_fail(QN_EARG, "%s: %d outputs, at most %d", op->name, c->n_out, QN_MAX_OUT);
    QN_TRY(check_storage(op, c));
    for (int i = 0; i < c->n_out; i++) {
        const QnShape *s = &c->out[i].shape;
        c->out[i].layout = QN_LAYOUT_PLAIN;
        for (int d = 0; d < s->rank; d++) {
            if (!qn_dim_is_valid(g, s->dim[d]))
                return qn_fail(QN_ESHAPE, "%s: axis %d of output %d has the negative length %lld",
                               op->name, d, i, (long long)s->dim[d]);
        }
        if (qn_shape_is_concrete(s) && qn_type_bytes(&c->out[i]) < 0) {
            char text[QN_TYPE_TEXT_BYTES];
            return qn_fail(QN_ESHAPE, "%s: output %s exceeds 2^63 bytes", op->name,
                           qn_shape_text(s, text));
        }
    }
    c->in = NULL;
    return QN_OK;
}

/* Says which node failed, with its inputs' types. */
static void add_place(QnGraph *g, const QnOp *op, QnValue *const *in, int n_in)
{
    char text[512] = "";
    size_t used = 0;
    for (int i = 0; i < n_in && used < sizeof text - 1; i++) {
        char type[QN_TYPE_TEXT_BYTES];
        int n = snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
                         in[i] ? qn_type_text(&in[i]->type, type) : "none");
        used += QN_MIN((size_t)n, sizeof text - used);
    }
    qn_fail_prefix("node %s%s%s(%s)", g->scope, g->scope[0] ? ": " : "", op->name, text);
}

static const void *attr_or_defaults(QnGraph *g, const QnOp *op, const void *attr)
{
    if (op->attr_bytes == 0)
        return NULL;
    if (!attr) {
        void *def = qn_arena_alloc(g->arena, op->attr_bytes);
        if (def)
            qn_attr_defaults(op, def);
        return def;
    }
    if (qn_attr_check(op, attr) != QN_OK)
        return NULL;
    return qn_attr_copy(g->arena, op, attr, NULL, NULL);
}

/* Arithmetic on dims that the graph does not know would make expressions of themselves. */
static QnStatus check_dims(QnGraph *g, const QnOp *op, const void *attr)
{
    for (int f = 0; attr && f < op->n_fields; f++) {
        if (op->fields[f].kind != QN_ATTR_DIMS)
            continue;
        const QnDims *dims = (const void *)((const char *)attr + op->fields[f].offset);
        for (int i = 0; i < dims->n; i++) {
            if (!qn_dim_is_valid(g, dims->d[i]))
                return qn_fail(QN_ESHAPE,
                               "%s: entry %d of %s is %lld: negative, and no "
                               "symbol of this graph",
                               op->name, i, op->fields[f].name, (long long)dims->d[i]);
        }
    }
    return QN_OK;
}

static QnStatus emit(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in,
                     QnNode **out)
{
    const void *copy = attr_or_defaults(g, op, attr);
    if (!copy && op->attr_bytes)
        return qn_error_last()->code;
    QnInfer c;
    QN_TRY(check_dims(g, op, copy));
    QN_TRY(qn_graph_infer(g, op, copy, in, n_in, &c));
    QnNode *n = qn_arena_alloc(g->arena, sizeof *n);
    QnValue **ins = qn_arena_copy(g->arena, in, (size_t)n_in * sizeof *in);
    QnValue *outs = qn_arena_array(g->arena, (size_t)QN_MAX(c.n_out, 1), sizeof *outs);
    if (!n || !ins || !outs)
        return QN_ENOMEM;
    for (int i = 0; i < c.n_out; i++)
        outs[i] = (QnValue){ .node = n, .index = i, .type = c.out[i] };
    *n = (QnNode){ .op = op, .attr = copy, .n_in = n_in, .n_out = c.n_out, .in = ins, .out = outs };
    if (g->scope[0] && !(n->name = qn_arena_strdup(g->arena, g->scope)))
        return QN_ENOMEM;
    qn_graph_link(g, n);
    *out = n;
    return QN_OK;
}

QnNode *qn_emit(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in)
{
    if (g->error.code)
        return NULL;
    for (int i = 0; i < n_in; i++) {
        if (in[i] && !in[i]->node)
            return NULL; /* poison of this or another graph: the cause is recorded there */
    }
    QnNode *n = NULL;
    qn_error_clear();
    if (emit(g, op, attr, in, n_in, &n) != QN_OK) {
        add_place(g, op, in, n_in);
        qn_graph_poison(g);
        return NULL;
    }
    return n;
}

QnValue *qn_node_out(QnGraph *g, QnNode *n, int i)
{
    if (n && i >= 0 && i < n->n_out)
        return &n->out[i];
    if (n)
        qn_fail(QN_EARG, "%s has no output %d", n->op->name, i);
    return qn_graph_poison(g);
}

QnValue *qn_emitn(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in)
{
    return qn_node_out(g, qn_emit(g, op, attr, in, n_in), 0);
}

QnValue *qn_emit0(QnGraph *g, const QnOp *op, const void *attr)
{
    return qn_emitn(g, op, attr, NULL, 0);
}

QnValue *qn_emit1(QnGraph *g, const QnOp *op, const void *attr, QnValue *a)
{
    return qn_emitn(g, op, attr, (QnValue *[]){ a }, 1);
}

QnValue *qn_emit2(QnGraph *g, const QnOp *op, const void *attr, QnValue *a, QnValue *b)
{
    return qn_emitn(g, op, attr, (QnValue *[]){ a, b }, 2);
}

QnValue *qn_emit3(QnGraph *g, const QnOp *op, const void *attr, QnValue *a, QnValue *b, QnValue *c)
{
    return qn_emitn(g, op, attr, (QnValue *[]){ a, b, c }, 3);
}

QnNode *qn_graph_copy_node(QnGraph *g, const QnNode *n, QnValue *const *in)
{
    QnNode *copy = qn_emit(g, n->op, n->attr, in, n->n_in);
    for (int i = 0; copy && i < copy->n_out; i++)
        copy->out[i].type.layout = n->out[i].type.layout;
    if (copy && n->name && n->name != copy->name) {
        copy->name = qn_arena_strdup(g->arena, n->name);
        if (!copy->name) {
            qn_graph_poison(g);
            return NULL;
        }
    }
    return copy;
}

QnCost qn_cost_of(const QnNode *n)
{
    if (n->op->cost)
        return n->op->cost(n);
    QnCost c = { 0 };
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i])
            c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    }
    for (int i = 0; i < n->n_out; i++) {
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
        if (n->op->map)
            c.flops += n->op->map->flops * (double)qn_shape_count(&n->out[i].type.shape);
    }
    return c;
}

void qn_device_int(QnDeviceCall *c, int64_t v)
{
    if (c->n_arg < QN_DEVICE_MAX_ARG)
        c->arg[c->n_arg++].i = v;
}

void qn_device_float(QnDeviceCall *c, double v)
{
    if (c->n_arg < QN_DEVICE_MAX_ARG) {
        c->arg[c->n_arg].is_float = true;
        c->arg[c->n_arg++].f = v;
    }
}

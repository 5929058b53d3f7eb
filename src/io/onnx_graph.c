/* GraphProto, NodeProto, AttributeProto, TypeProto as plain structs. */
#include "base/compiler.h"
#include "base/mem.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_order.h"
#include "io/onnx_read.h"

#include <string.h>

enum { ATTRS_MOST = 256 };

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static const char *const *names(QnOnnxReader *r, char *const *p, size_t n)
{
    const char **out = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        out[i] = or_empty(p[i]);
    return out;
}

/* ---- types ----------------------------------------------------------------------------------- */

static QnStatus read_dims(QnOnnxReader *r, const Onnx__TensorShapeProto *p, QnOnnxType *t)
{
    t->rank = -1;
    if (!p)
        return QN_OK;
    if (p->n_dim > QN_MAX_RANK)
        return qn_fail(QN_EUNSUPPORTED, "%s: a tensor of %zu dims, at most %d are supported",
                       r->file, p->n_dim, QN_MAX_RANK);
    t->rank = (int)p->n_dim;
    for (int i = 0; i < t->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = p->dim[i];
        bool number = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        t->dim[i] = number && d->dim_value >= 0 ? d->dim_value : -1;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
            t->dim_name[i] = d->dim_param;
    }
    return QN_OK;
}

QnStatus qn_onnx_read_type(QnOnnxReader *r, const Onnx__TypeProto *p, const QnOnnxType **out)
{
    QnOnnxType *t = qn_arena_alloc(r->arena, sizeof *t);
    if (!t)
        return QN_ENOMEM;
    t->rank = -1;
    *out = t;
    switch (p ? p->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        t->kind = QN_ONNX_TYPE_TENSOR;
        t->elem = p->tensor_type->elem_type;
        return read_dims(r, p->tensor_type->shape, t);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        t->kind = QN_ONNX_TYPE_SPARSE;
        t->elem = p->sparse_tensor_type->elem_type;
        return read_dims(r, p->sparse_tensor_type->shape, t);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        t->kind = QN_ONNX_TYPE_SEQUENCE;
        return qn_onnx_read_type(r, p->sequence_type->elem_type, &t->of);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        t->kind = QN_ONNX_TYPE_OPTIONAL;
        return qn_onnx_read_type(r, p->optional_type->elem_type, &t->of);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: t->kind = QN_ONNX_TYPE_MAP; return QN_OK;
    default: return QN_OK;
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

static QnStatus read_tensors(QnOnnxReader *r, Onnx__TensorProto *const *p, size_t n,
                             const char *what, QnOnnxAttr *a)
{
    QnTensor *all = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *all);
    if (!all)
        return QN_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const QnTensor *t;
        QN_TRY(qn_onnx_read_tensor(r, p[i], what, &t));
        all[i] = *t;
    }
    a->tensor = all;
    a->n = (int64_t)n;
    return QN_OK;
}

static QnStatus read_strings(QnOnnxReader *r, const ProtobufCBinaryData *p, size_t n, QnOnnxAttr *a)
{
    QnText *text = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *text);
    if (!text)
        return QN_ENOMEM;
    for (size_t i = 0; i < n; i++)
        text[i] = (QnText){ (const char *)p[i].data, p[i].len };
    a->strings = text;
    a->n = (int64_t)n;
    return QN_OK;
}

/* Files of IR version 1 and careless writers leave the type out. */
static QnOnnxAttrKind guess_kind(const Onnx__AttributeProto *p)
{
    return p->type        ? (QnOnnxAttrKind)p->type
           : p->has_f     ? QN_ONNX_FLOAT
           : p->has_i     ? QN_ONNX_INT
           : p->has_s     ? QN_ONNX_STRING
           : p->t         ? QN_ONNX_TENSOR
           : p->g         ? QN_ONNX_GRAPH
           : p->n_floats  ? QN_ONNX_FLOATS
           : p->n_strings ? QN_ONNX_STRINGS
           : p->n_tensors ? QN_ONNX_TENSORS
                          : QN_ONNX_INTS;
}

/* With a NUL behind: some strings are names. */
static QnStatus read_string(QnOnnxReader *r, const Onnx__AttributeProto *p, QnOnnxAttr *a)
{
    size_t n = p->has_s && p->s.data ? p->s.len : 0;
    char *s = qn_arena_alloc(r->arena, n + 1);
    if (!s)
        return QN_ENOMEM;
    if (n)
        memcpy(s, p->s.data, n);
    a->s = (QnText){ s, n };
    return QN_OK;
}

static QnStatus read_attr(QnOnnxReader *r, const Onnx__AttributeProto *p, const char *node,
                          QnOnnxAttr *a)
{
    QnOnnxGraph *graph;
    if (!p->name || !p->name[0])
        return qn_fail(QN_EFORMAT, "%s: node '%s': an attribute has no name", r->file, node);
    *a = (QnOnnxAttr){ .name = p->name, .ref = p->ref_attr_name, .kind = guess_kind(p) };
    if (p->ref_attr_name)
        return QN_OK;
    switch ((int)a->kind) {
    case QN_ONNX_FLOAT: a->f = p->f; return QN_OK;
    case QN_ONNX_INT: a->i = p->i; return QN_OK;
    case QN_ONNX_STRING: return read_string(r, p, a);
    case QN_ONNX_FLOATS: a->n = (int64_t)p->n_floats, a->floats = p->floats; return QN_OK;
    case QN_ONNX_INTS: a->n = (int64_t)p->n_ints, a->ints = p->ints; return QN_OK;
    case QN_ONNX_STRINGS: return read_strings(r, p->strings, p->n_strings, a);
    case QN_ONNX_TENSORS: return read_tensors(r, p->tensors, p->n_tensors, a->name, a);
    case QN_ONNX_TENSOR:
        a->n = 1;
        return p->t ? qn_onnx_read_tensor(r, p->t, node, &a->tensor)
                    : qn_fail(QN_EFORMAT, "%s: node '%s': attribute '%s' has no tensor", r->file,
                              node, a->name);
    case QN_ONNX_SPARSE:
        a->n = 1;
        return p->sparse_tensor ? qn_onnx_read_sparse(r, p->sparse_tensor, node, &a->tensor)
                                : qn_fail(QN_EFORMAT, "%s: node '%s': attribute '%s' has no tensor",
                                          r->file, node, a->name);
    case QN_ONNX_GRAPH:
        if (!p->g)
            return qn_fail(QN_EFORMAT, "%s: node '%s': attribute '%s' has no graph", r->file, node,
                           a->name);
        QN_TRY(qn_onnx_read_graph(r, p->g, &graph));
        a->graph = graph;
        a->n = 1;
        return QN_OK;
    case QN_ONNX_TYPE: return qn_onnx_read_type(r, p->tp, &a->type);
    default:
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: node '%s': attribute '%s' is of kind %d, which is not "
                       "supported",
                       r->file, node, a->name, (int)a->kind);
    }
}

QnStatus qn_onnx_read_attrs(QnOnnxReader *r, Onnx__AttributeProto *const *p, size_t n,
                            const char *node, const QnOnnxAttr **out)
{
    if (n > ATTRS_MOST)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: node '%s' has %zu attributes; at most %d are supported", r->file, node,
                       n, ATTRS_MOST);
    QnOnnxAttr *a = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *a);
    if (!a)
        return QN_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        QN_TRY(read_attr(r, p[i], node, &a[i]));
        for (size_t k = 0; k < i; k++)
            if (!strcmp(a[k].name, a[i].name))
                return qn_fail(QN_EFORMAT, "%s: node '%s' has two attributes '%s'", r->file, node,
                               a[i].name);
    }
    *out = a;
    return QN_OK;
}

/* ---- nodes and graphs ------------------------------------------------------------------------ */

static QnStatus read_node(QnOnnxReader *r, const Onnx__NodeProto *p, QnOnnxDef *d)
{
    if (!p->op_type || !p->op_type[0])
        return qn_fail(QN_EFORMAT, "%s: node '%s' names no operator", r->file, or_empty(p->name));
    *d = (QnOnnxDef){ .op = p->op_type,
                      .domain = or_empty(p->domain),
                      .n_in = (int)p->n_input,
                      .n_out = (int)p->n_output,
                      .n_attr = (int)p->n_attribute };
    if (!strcmp(d->domain, "ai.onnx"))
        d->domain = "";
    d->name = p->name && p->name[0]                 ? p->name
              : p->n_output && p->output[0][0] != 0 ? p->output[0]
                                                    : p->op_type;
    if (p->n_input > QN_MAX_IN || p->n_output > QN_MAX_IN)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: node '%s' has %zu inputs and %zu outputs; at most %d "
                       "are supported",
                       r->file, d->name, p->n_input, p->n_output, QN_MAX_IN);
    d->in = names(r, p->input, p->n_input);
    d->out = names(r, p->output, p->n_output);
    if (!d->in || !d->out)
        return QN_ENOMEM;
    return qn_onnx_read_attrs(r, p->attribute, p->n_attribute, d->name, &d->attr);
}

QnStatus qn_onnx_read_nodes(QnOnnxReader *r, Onnx__NodeProto *const *p, size_t n, QnOnnxGraph *g)
{
    g->node = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *g->node);
    if (!g->node)
        return QN_ENOMEM;
    g->n_nodes = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        QN_TRY(read_node(r, p[i], &g->node[i]));
    return QN_OK;
}

static QnStatus read_infos(QnOnnxReader *r, Onnx__ValueInfoProto *const *p, size_t n,
                           const char *what, const QnOnnxInfo **out)
{
    QnOnnxInfo *info = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *info);
    if (!info)
        return QN_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        info[i].name = or_empty(p[i]->name);
        if (!info[i].name[0])
            return qn_fail(QN_EFORMAT, "%s: %s %zu has no name", r->file, what, i);
        QN_TRY(qn_onnx_read_type(r, p[i]->type, &info[i].type));
    }
    *out = info;
    return QN_OK;
}

static QnStatus read_inits(QnOnnxReader *r, const Onnx__GraphProto *p, QnOnnxGraph *g)
{
    size_t n = p->n_initializer, sparse = p->n_sparse_initializer;
    QnOnnxInit *init = qn_arena_array(r->arena, QN_MAX(n + sparse, 1), sizeof *init);
    if (!init)
        return QN_ENOMEM;
    for (size_t i = 0; i < n + sparse; i++) {
        const Onnx__TensorProto *t =
            i < n ? p->initializer[i] : p->sparse_initializer[i - n]->values;
        init[i].name = t ? or_empty(t->name) : "";
        if (!init[i].name[0])
            return qn_fail(QN_EFORMAT, "%s: initialiser %zu has no name", r->file, i);
        QN_TRY(i < n ? qn_onnx_read_tensor(r, t, init[i].name, &init[i].tensor)
                     : qn_onnx_read_sparse(r, p->sparse_initializer[i - n], init[i].name,
                                           &init[i].tensor));
    }
    g->init = init;
    g->n_inits = (int64_t)(n + sparse);
    return QN_OK;
}

QnStatus qn_onnx_read_graph(QnOnnxReader *r, const Onnx__GraphProto *p, QnOnnxGraph **out)
{
    QnOnnxGraph *g = qn_arena_alloc(r->arena, sizeof *g);
    if (!g)
        return QN_ENOMEM;
    g->name = or_empty(p->name);
    QN_TRY(read_inits(r, p, g));
    QN_TRY(read_infos(r, p->input, p->n_input, "input", &g->input));
    QN_TRY(read_infos(r, p->output, p->n_output, "output", &g->output));
    QN_TRY(read_infos(r, p->value_info, p->n_value_info, "value info", &g->info));
    g->n_inputs = (int64_t)p->n_input;
    g->n_outputs = (int64_t)p->n_output;
    g->n_infos = (int64_t)p->n_value_info;
    QN_TRY(qn_onnx_read_nodes(r, p->node, p->n_node, g));
    *out = g;
    return qn_onnx_order(r->arena, r->file, g);
}
#endif

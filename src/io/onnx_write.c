/* Plain structs as ModelProto. The message tree lives in an arena and points into the model, so
 * that weights are not copied; it is packed straight into the file. */
#include "io/onnx.h"

#include "base/file.h"

#include <string.h>

#ifdef QN_HAVE_ONNX
#include "io/onnx.pb-c.h"
#include "io/onnx_data.h"

/* Protobuf's limit, less room for everything that is not weights. */
#define INSIDE_MOST (((int64_t)1 << 31) - ((int64_t)64 << 20))
enum { OUTSIDE_LEAST = 1024, OUTSIDE_ALIGN = 4096 };

typedef struct Writer {
    QnArena *arena;
    QnFileOut *outside; /* NULL: all weights stay inside */
    const char *location;
    QnStatus st;
} Writer;

static void *take(Writer *w, size_t bytes)
{
    void *p = w->st == QN_OK ? qn_arena_alloc(w->arena, QN_MAX(bytes, 1)) : NULL;
    if (!p && w->st == QN_OK)
        w->st = QN_ENOMEM;
    return p;
}

/* An array of n pointers to new messages, initialised by `init`. */
#define NEW_LIST(w, Type, init, n, list, count)                                                    \
    do {                                                                                           \
        (list) = take((w), (size_t)(n) * sizeof *(list));                                          \
        for (int64_t i_ = 0; (list) && i_ < (int64_t)(n); i_++)                                    \
            if (((list)[i_] = take((w), sizeof(Type))))                                            \
                init((list)[i_]);                                                                  \
        (count) = (w)->st == QN_OK ? (size_t)(n) : 0;                                              \
    } while (0)

static char *text(const char *s) /* protobuf-c's fields are not const; packing only reads them */
{
    return (char *)(uintptr_t)s;
}

static char **texts(const char *const *s)
{
    return (char **)(uintptr_t)s;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static ProtobufCBinaryData pack4(Writer *w, const unsigned char *v, int64_t n)
{
    unsigned char *p = take(w, (size_t)(n + 1) / 2);
    for (int64_t i = 0; p && i < n; i++)
        p[i / 2] |= (unsigned char)((v[i] & 15) << (i % 2 ? 4 : 0));
    return (ProtobufCBinaryData){ (size_t)(n + 1) / 2, p };
}

static void set_strings(Writer *w, Onnx__TensorProto *p, const QnTensor *t, int64_t n)
{
    p->data_type = QN_ONNX_DTYPE_STRING;
    p->string_data = take(w, (size_t)n * sizeof *p->string_data);
    for (int64_t i = 0; p->string_data && i < n; i++)
        p->string_data[i] =
            (ProtobufCBinaryData){ t->text[i].n, (uint8_t *)(uintptr_t)t->text[i].s };
    p->n_string_data = p->string_data ? (size_t)n : 0;
}

static void put_outside(Writer *w, Onnx__TensorProto *p, const ProtobufCBinaryData *raw)
{
    static const char zeros[OUTSIDE_ALIGN];
    static const char *const keys[] = { "location", "offset", "length" };
    uint64_t pad = (OUTSIDE_ALIGN - w->outside->bytes % OUTSIDE_ALIGN) % OUTSIDE_ALIGN;
    w->st = qn_file_write(w->outside, zeros, (size_t)pad);
    uint64_t offset = w->outside->bytes;
    if (w->st == QN_OK)
        w->st = qn_file_write(w->outside, raw->data, raw->len);
    const char *values[] = { w->location,
                             qn_arena_printf(w->arena, "%llu", (unsigned long long)offset),
                             qn_arena_printf(w->arena, "%zu", raw->len) };
    NEW_LIST(w, Onnx__StringStringEntryProto, onnx__string_string_entry_proto__init, 3,
             p->external_data, p->n_external_data);
    for (size_t i = 0; i < p->n_external_data; i++) {
        p->external_data[i]->key = text(keys[i]);
        p->external_data[i]->value = text(values[i]);
        if (!values[i])
            w->st = QN_ENOMEM;
    }
    p->has_data_location = 1;
    p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static void set_tensor(Writer *w, Onnx__TensorProto *p, const char *name, const QnTensor *t)
{
    int64_t n = qn_shape_count(&t->type.shape);
    p->name = text(name);
    p->n_dims = (size_t)t->type.shape.rank;
    p->dims = (int64_t *)(uintptr_t)t->type.shape.dim;
    p->has_data_type = 1;
    if (t->text) {
        set_strings(w, p, t, n);
        return;
    }
    p->data_type = qn_onnx_dtype_number(t->type.dtype);
    ProtobufCBinaryData raw = { (size_t)qn_type_bytes(&t->type), (uint8_t *)(uintptr_t)t->data };
    if (qn_onnx_is_packed(t->type.dtype))
        raw = pack4(w, t->data, n);
    if (w->outside && raw.len >= OUTSIDE_LEAST && w->st == QN_OK) {
        put_outside(w, p, &raw);
        return;
    }
    p->has_raw_data = 1;
    p->raw_data = raw;
}

/* ---- types ----------------------------------------------------------------------------------- */

static Onnx__TensorShapeProto *new_shape(Writer *w, const QnOnnxType *t)
{
    Onnx__TensorShapeProto *s = take(w, sizeof *s);
    if (!s)
        return NULL;
    onnx__tensor_shape_proto__init(s);
    NEW_LIST(w, Onnx__TensorShapeProto__Dimension, onnx__tensor_shape_proto__dimension__init,
             t->rank, s->dim, s->n_dim);
    for (size_t i = 0; i < s->n_dim; i++) {
        if (t->dim_name[i]) {
            s->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            s->dim[i]->dim_param = text(t->dim_name[i]);
        } else if (t->dim[i] >= 0) {
            s->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            s->dim[i]->dim_value = t->dim[i];
        }
    }
    return s;
}

static Onnx__TypeProto *new_type(Writer *w, const QnOnnxType *t);

static void set_type(Writer *w, Onnx__TypeProto *p, const QnOnnxType *t)
{
    switch (t->kind) {
    case QN_ONNX_TYPE_TENSOR:
        if (!(p->tensor_type = take(w, sizeof *p->tensor_type)))
            return;
        onnx__type_proto__tensor__init(p->tensor_type);
        p->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        p->tensor_type->has_elem_type = 1;
        p->tensor_type->elem_type = (int32_t)t->elem;
        if (t->rank >= 0)
            p->tensor_type->shape = new_shape(w, t);
        return;
    case QN_ONNX_TYPE_SEQUENCE:
        if (!(p->sequence_type = take(w, sizeof *p->sequence_type)))
            return;
        onnx__type_proto__sequence__init(p->sequence_type);
        p->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        p->sequence_type->elem_type = t->of ? new_type(w, t->of) : NULL;
        return;
    case QN_ONNX_TYPE_OPTIONAL:
        if (!(p->optional_type = take(w, sizeof *p->optional_type)))
            return;
        onnx__type_proto__optional__init(p->optional_type);
        p->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
        p->optional_type->elem_type = t->of ? new_type(w, t->of) : NULL;
        return;
    case QN_ONNX_TYPE_NONE: return;
    default: w->st = qn_fail(QN_EUNSUPPORTED, "maps and sparse tensors are not written");
    }
}

static Onnx__TypeProto *new_type(Writer *w, const QnOnnxType *t)
{
    Onnx__TypeProto *p = take(w, sizeof *p);
    if (p) {
        onnx__type_proto__init(p);
        set_type(w, p, t);
    }
    return p;
}

static void set_infos(Writer *w, const QnOnnxInfo *info, int64_t n, Onnx__ValueInfoProto ***list,
                      size_t *count)
{
    NEW_LIST(w, Onnx__ValueInfoProto, onnx__value_info_proto__init, n, *list, *count);
    for (size_t i = 0; i < *count; i++) {
        (*list)[i]->name = text(info[i].name);
        (*list)[i]->type = new_type(w, info[i].type);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static Onnx__GraphProto *new_graph(Writer *w, const QnOnnxGraph *g);

static void set_list(Writer *w, Onnx__AttributeProto *p, const QnOnnxAttr *a)
{
    size_t n = (size_t)a->n;
    switch (a->kind) {
    case QN_ONNX_FLOATS: p->n_floats = n, p->floats = (float *)(uintptr_t)a->floats; return;
    case QN_ONNX_INTS: p->n_ints = n, p->ints = (int64_t *)(uintptr_t)a->ints; return;
    case QN_ONNX_STRINGS:
        p->strings = take(w, n * sizeof *p->strings);
        p->n_strings = p->strings ? n : 0;
        for (size_t i = 0; i < p->n_strings; i++)
            p->strings[i] =
                (ProtobufCBinaryData){ a->strings[i].n, (uint8_t *)(uintptr_t)a->strings[i].s };
        return;
    case QN_ONNX_TENSORS:
        NEW_LIST(w, Onnx__TensorProto, onnx__tensor_proto__init, n, p->tensors, p->n_tensors);
        for (size_t i = 0; i < p->n_tensors; i++)
            set_tensor(w, p->tensors[i], NULL, &a->tensor[i]);
        return;
    default: w->st = qn_fail(QN_EUNSUPPORTED, "attribute '%s' cannot be written", a->name);
    }
}

static void set_attr(Writer *w, Onnx__AttributeProto *p, const QnOnnxAttr *a)
{
    p->name = text(a->name);
    p->has_type = 1;
    p->type = (Onnx__AttributeProto__AttributeType)a->kind;
    if (a->ref) {
        p->ref_attr_name = text(a->ref);
        return;
    }
    switch (a->kind) {
    case QN_ONNX_FLOAT: p->has_f = 1, p->f = a->f; return;
    case QN_ONNX_INT: p->has_i = 1, p->i = a->i; return;
    case QN_ONNX_STRING:
        p->has_s = 1;
        p->s = (ProtobufCBinaryData){ a->s.n, (uint8_t *)(uintptr_t)a->s.s };
        return;
    case QN_ONNX_SPARSE: /* it was read as a dense one */
    case QN_ONNX_TENSOR:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
        if ((p->t = take(w, sizeof *p->t))) {
            onnx__tensor_proto__init(p->t);
            set_tensor(w, p->t, NULL, a->tensor);
        }
        return;
    case QN_ONNX_GRAPH: p->g = new_graph(w, a->graph); return;
    case QN_ONNX_TYPE: p->tp = new_type(w, a->type); return;
    default: set_list(w, p, a);
    }
}

static void set_node(Writer *w, Onnx__NodeProto *p, const QnOnnxDef *d)
{
    p->name = text(d->name);
    p->op_type = text(d->op);
    p->domain = d->domain[0] ? text(d->domain) : NULL;
    p->n_input = (size_t)d->n_in;
    p->input = texts(d->in);
    p->n_output = (size_t)d->n_out;
    p->output = texts(d->out);
    NEW_LIST(w, Onnx__AttributeProto, onnx__attribute_proto__init, d->n_attr, p->attribute,
             p->n_attribute);
    for (size_t i = 0; i < p->n_attribute; i++)
        set_attr(w, p->attribute[i], &d->attr[i]);
}

static Onnx__GraphProto *new_graph(Writer *w, const QnOnnxGraph *g)
{
    Onnx__GraphProto *p = take(w, sizeof *p);
    if (!p)
        return NULL;
    onnx__graph_proto__init(p);
    p->name = text(g->name[0] ? g->name : "graph");
    NEW_LIST(w, Onnx__NodeProto, onnx__node_proto__init, g->n_nodes, p->node, p->n_node);
    for (size_t i = 0; i < p->n_node; i++)
        set_node(w, p->node[i], &g->node[i]);
    NEW_LIST(w, Onnx__TensorProto, onnx__tensor_proto__init, g->n_inits, p->initializer,
             p->n_initializer);
    for (size_t i = 0; i < p->n_initializer; i++)
        set_tensor(w, p->initializer[i], g->init[i].name, g->init[i].tensor);
    set_infos(w, g->input, g->n_inputs, &p->input, &p->n_input);
    set_infos(w, g->output, g->n_outputs, &p->output, &p->n_output);
    set_infos(w, g->info, g->n_infos, &p->value_info, &p->n_value_info);
    return p;
}

/* ---- models ---------------------------------------------------------------------------------- */

static void set_opsets(Writer *w, const QnOnnxOpset *o, int n, Onnx__OperatorSetIdProto ***list,
                       size_t *count)
{
    NEW_LIST(w, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init, n, *list, *count);
    for (size_t i = 0; i < *count; i++) {
        (*list)[i]->domain = text(o[i].domain);
        (*list)[i]->has_version = 1;
        (*list)[i]->version = o[i].version;
    }
}

static void set_functions(Writer *w, const QnOnnxModel *m, Onnx__ModelProto *p)
{
    NEW_LIST(w, Onnx__FunctionProto, onnx__function_proto__init, m->n_functions, p->functions,
             p->n_functions);
    for (size_t i = 0; i < p->n_functions; i++) {
        const QnOnnxFunction *f = &m->function[i];
        Onnx__FunctionProto *q = p->functions[i];
        if (f->n_default) /* their field is newer than the schema */
            w->st = qn_fail(QN_EUNSUPPORTED,
                            "function '%s' has attributes with defaults, which "
                            "are not written",
                            f->name);
        q->name = text(f->name);
        q->domain = text(f->domain);
        q->n_input = (size_t)f->n_in, q->input = texts(f->in);
        q->n_output = (size_t)f->n_out, q->output = texts(f->out);
        q->n_attribute = (size_t)f->n_attr, q->attribute = texts(f->attr);
        set_opsets(w, f->opset, f->n_opset, &q->opset_import, &q->n_opset_import);
        NEW_LIST(w, Onnx__NodeProto, onnx__node_proto__init, f->body.n_nodes, q->node, q->n_node);
        for (size_t k = 0; k < q->n_node; k++)
            set_node(w, q->node[k], &f->body.node[k]);
    }
}

static Onnx__ModelProto *new_model(Writer *w, const QnOnnxModel *m)
{
    Onnx__ModelProto *p = take(w, sizeof *p);
    if (!p)
        return NULL;
    onnx__model_proto__init(p);
    p->has_ir_version = 1;
    p->ir_version = m->ir_version;
    p->has_model_version = m->model_version != 0;
    p->model_version = m->model_version;
    p->producer_name = text(m->producer);
    p->producer_version = text(m->producer_version);
    set_opsets(w, m->opset, m->n_opset, &p->opset_import, &p->n_opset_import);
    NEW_LIST(w, Onnx__StringStringEntryProto, onnx__string_string_entry_proto__init, m->n_meta,
             p->metadata_props, p->n_metadata_props);
    for (size_t i = 0; i < p->n_metadata_props; i++) {
        p->metadata_props[i]->key = text(m->meta[2 * i]);
        p->metadata_props[i]->value = text(m->meta[2 * i + 1]);
    }
    set_functions(w, m, p);
    p->graph = new_graph(w, m->graph);
    return p;
}

typedef struct FileBuffer {
    ProtobufCBuffer base;
    QnFileOut *out;
    QnStatus st;
} FileBuffer;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
    FileBuffer *b = (FileBuffer *)buffer;
    if (b->st == QN_OK)
        b->st = qn_file_write(b->out, data, n);
}

static QnStatus write_message(const ProtobufCMessage *p, const char *path)
{
    QnFileOut out = { 0 };
    QN_TRY(qn_file_create(&out, path));
    FileBuffer b = { .base = { append }, .out = &out };
    protobuf_c_message_pack_to_buffer(p, &b.base);
    if (b.st == QN_OK)
        b.st = qn_file_commit(&out);
    else
        qn_file_discard(&out);
    return b.st;
}

static int64_t weight_bytes(const QnOnnxGraph *g)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!g->init[i].tensor->text)
            sum += qn_type_bytes(&g->init[i].tensor->type);
    return sum;
}

static QnStatus write_with(Writer *w, const QnOnnxModel *m, const char *path)
{
    Onnx__ModelProto *p = new_model(w, m);
    QN_TRY(w->st);
    if (w->outside)
        QN_TRY(qn_file_commit(w->outside));
    return write_message(&p->base, path);
}

QnStatus qn_onnx_write(const QnOnnxModel *m, const char *path, bool outside)
{
    QnOnnxData data = { 0 };
    Writer w = { .arena = qn_arena_new() };
    QN_TRY(w.arena ? QN_OK : QN_ENOMEM);
    if (outside || weight_bytes(m->graph) > INSIDE_MOST) {
        w.st = qn_onnx_data_create(&data, path);
        w.outside = &data.out;
        w.location = data.location;
    }
    QnStatus st = w.st == QN_OK ? write_with(&w, m, path) : w.st;
    qn_onnx_data_finish(&data, st == QN_OK);
    qn_arena_free(w.arena);
    return st;
}

QnStatus qn_onnx_write_tensor(const char *path, const char *name, const QnTensor *t)
{
    Writer w = { .arena = qn_arena_new() };
    QN_TRY(w.arena ? QN_OK : QN_ENOMEM);
    Onnx__TensorProto p;
    onnx__tensor_proto__init(&p);
    set_tensor(&w, &p, name, t);
    QnStatus st = w.st == QN_OK ? write_message(&p.base, path) : w.st;
    qn_arena_free(w.arena);
    return st;
}
#else
QnStatus qn_onnx_write(const QnOnnxModel *m, const char *path, bool outside)
{
    QnOnnxModel *none = NULL;
    (void)m, (void)outside;
    return qn_onnx_read(path, &none); /* says what is missing */
}

QnStatus qn_onnx_write_tensor(const char *path, const char *name, const QnTensor *t)
{
    (void)name, (void)t;
    return qn_onnx_write(NULL, path, false);
}
#endif

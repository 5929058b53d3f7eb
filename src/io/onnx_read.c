/* ModelProto. */
#include "io/onnx.h"

#include "base/file.h"

#include <string.h>

#ifndef QN_HAVE_ONNX
static QnStatus absent(void)
{
    return qn_fail(QN_EUNSUPPORTED, "Quern was built without protobuf-c and ONNX's schema: install "
                                    "libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, then "
                                    "build again");
}

QnStatus qn_onnx_read(const char *path, QnOnnxModel **out)
{
    (void)path, (void)out;
    return absent();
}

QnStatus qn_onnx_read_bytes(const void *data, size_t bytes, const char *name, const char *folder,
                            QnOnnxModel **out)
{
    (void)data, (void)bytes, (void)name, (void)folder, (void)out;
    return absent();
}

void qn_onnx_free(QnOnnxModel *m)
{
    (void)m;
}
#else
#include "io/onnx_file.h"
#include "io/onnx_read.h"

#include <sys/mman.h>

enum { IR_OLDEST = 3, IR_NEWEST = 14, OPSET_NEWEST = 28, OPSETS_MOST = 64, PARAMS_MOST = 4096 };

static QnStatus read_opsets(QnOnnxReader *r, Onnx__OperatorSetIdProto *const *p, size_t n,
                            const QnOnnxOpset **out)
{
    QnOnnxOpset *o = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *o);
    if (!o)
        return QN_ENOMEM;
    if (n > OPSETS_MOST)
        return qn_fail(QN_EUNSUPPORTED, "%s: %zu opsets; at most %d are supported", r->file, n,
                       OPSETS_MOST);
    for (size_t i = 0; i < n; i++) {
        o[i] = (QnOnnxOpset){ p[i]->domain ? p[i]->domain : "", p[i]->version };
        if (!strcmp(o[i].domain, "ai.onnx"))
            o[i].domain = "";
        if (o[i].version < 1)
            return qn_fail(QN_EFORMAT, "%s: opset %lld of domain '%s'", r->file,
                           (long long)o[i].version, o[i].domain);
        if (!o[i].domain[0] && o[i].version > OPSET_NEWEST)
            return qn_fail(QN_EUNSUPPORTED, "%s: opset %lld; 1 to %d are supported", r->file,
                           (long long)o[i].version, OPSET_NEWEST);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(o[k].domain, o[i].domain) && o[k].version != o[i].version)
                return qn_fail(QN_EFORMAT, "%s: opsets %lld and %lld of domain '%s'", r->file,
                               (long long)o[k].version, (long long)o[i].version, o[i].domain);
    }
    *out = o;
    return QN_OK;
}

static const char *const *strings(QnOnnxReader *r, char *const *p, size_t n)
{
    const char **out = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        out[i] = p[i];
    return out;
}

/* Field 11 of FunctionProto, attributes with defaults, came after Debian's schema. */
static QnStatus read_defaults(QnOnnxReader *r, const Onnx__FunctionProto *p, QnOnnxFunction *f)
{
    unsigned n = 0, k = 0;
    for (unsigned i = 0; i < p->base.n_unknown_fields; i++)
        n += p->base.unknown_fields[i].tag == 11;
    if (n > PARAMS_MOST)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: function '%s' has %u attributes; at most %d are "
                       "supported",
                       r->file, f->name, n, PARAMS_MOST);
    QnOnnxAttr *all = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *all);
    if (!all)
        return QN_ENOMEM;
    for (unsigned i = 0; i < p->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *u = &p->base.unknown_fields[i];
        if (u->tag != 11 || u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        size_t skip = 0;
        while (skip < u->len && u->data[skip] & 0x80)
            skip++;
        skip++;
        if (skip > u->len)
            continue;
        Onnx__AttributeProto *a = (Onnx__AttributeProto *)qn_onnx_unpack(
            &onnx__attribute_proto__descriptor, u->data + skip, u->len - skip, r->file);
        const QnOnnxAttr *one = NULL;
        if (!a)
            return qn_error_last()->code;
        QnStatus st = QN_GROW(r->owner->extra, r->owner->cap_extra, r->owner->n_extra);
        if (st != QN_OK) {
            ProtobufCAllocator give = qn_onnx_allocator();
            onnx__attribute_proto__free_unpacked(a, &give);
            return st;
        }
        r->owner->extra[r->owner->n_extra++] = a;
        QN_TRY(qn_onnx_read_attrs(r, &a, 1, f->name, &one));
        if (one->ref)
            return qn_fail(QN_EFORMAT,
                           "%s: function '%s': the default of attribute '%s' refers to "
                           "another",
                           r->file, f->name, one->name);
        all[k++] = *one;
    }
    f->fallback = all;
    f->n_default = (int)k;
    return QN_OK;
}

/* As inputs of the body, whose order is checked with them. */
static QnStatus read_params(QnOnnxReader *r, QnOnnxFunction *f)
{
    QnOnnxInfo *info = qn_arena_array(r->arena, (size_t)f->n_in + 1, sizeof *info);
    QnOnnxType *none = qn_arena_alloc(r->arena, sizeof *none);
    if (!info || !none)
        return QN_ENOMEM;
    none->rank = -1;
    for (int i = 0; i < f->n_in; i++) {
        info[i] = (QnOnnxInfo){ f->in[i], none };
        if (!f->in[i][0])
            return qn_fail(QN_EFORMAT, "%s: function '%s': input %d has no name", r->file, f->name,
                           i);
    }
    f->body.input = info;
    f->body.n_inputs = f->n_in;
    return QN_OK;
}

static QnStatus read_function(QnOnnxReader *r, const Onnx__FunctionProto *p, QnOnnxFunction *f)
{
    if (!p->name || !p->name[0])
        return qn_fail(QN_EFORMAT, "%s: a function has no name", r->file);
    if (p->n_input > PARAMS_MOST || p->n_output > PARAMS_MOST || p->n_attribute > PARAMS_MOST)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: function '%s' has %zu inputs, %zu outputs and %zu attributes; at most "
                       "%d are supported",
                       r->file, p->name, p->n_input, p->n_output, p->n_attribute, PARAMS_MOST);
    *f = (QnOnnxFunction){ .name = p->name,
                           .domain = p->domain ? p->domain : "",
                           .n_in = (int)p->n_input,
                           .n_out = (int)p->n_output,
                           .n_attr = (int)p->n_attribute,
                           .n_opset = (int)p->n_opset_import };
    f->in = strings(r, p->input, p->n_input);
    f->out = strings(r, p->output, p->n_output);
    f->attr = strings(r, p->attribute, p->n_attribute);
    if (!f->in || !f->out || !f->attr)
        return QN_ENOMEM;
    QN_TRY(read_opsets(r, p->opset_import, p->n_opset_import, &f->opset));
    QN_TRY(read_defaults(r, p, f));
    f->body.name = f->name;
    QN_TRY(read_params(r, f));
    QN_TRY(qn_onnx_read_nodes(r, p->node, p->n_node, &f->body));
    return qn_onnx_order(r->arena, r->file, &f->body);
}

static QnStatus read_functions(QnOnnxReader *r, const Onnx__ModelProto *p, QnOnnxModel *m,
                               QnOnnxFunction **out)
{
    QnOnnxFunction *f = qn_arena_array(r->arena, QN_MAX(p->n_functions, 1), sizeof *f);
    if (!f)
        return QN_ENOMEM;
    for (size_t i = 0; i < p->n_functions; i++)
        QN_TRY(read_function(r, p->functions[i], &f[i]));
    *out = f;
    m->function = f;
    m->n_functions = (int64_t)p->n_functions;
    return QN_OK;
}

static QnStatus read_meta(QnOnnxReader *r, const Onnx__ModelProto *p, QnOnnxModel *m)
{
    const char **meta = qn_arena_array(r->arena, 2 * p->n_metadata_props + 1, sizeof *meta);
    if (!meta)
        return QN_ENOMEM;
    for (size_t i = 0; i < p->n_metadata_props; i++) {
        meta[2 * i] = p->metadata_props[i]->key ? p->metadata_props[i]->key : "";
        meta[2 * i + 1] = p->metadata_props[i]->value ? p->metadata_props[i]->value : "";
    }
    m->meta = meta;
    m->n_meta = (int64_t)p->n_metadata_props;
    return QN_OK;
}

static QnStatus read_model(QnOnnxReader *r, const Onnx__ModelProto *p, QnOnnxModel *m)
{
    QnOnnxGraph *graph;
    QnOnnxFunction *function;
    m->ir_version = p->ir_version;
    m->model_version = p->model_version;
    m->producer = p->producer_name ? p->producer_name : "";
    m->producer_version = p->producer_version ? p->producer_version : "";
    if (!p->graph)
        return qn_fail(QN_EFORMAT, "%s: the model has no graph", r->file);
    if (p->ir_version < IR_OLDEST || p->ir_version > IR_NEWEST)
        return qn_fail(p->ir_version < 1 ? QN_EFORMAT : QN_EUNSUPPORTED,
                       "%s: IR version %lld; %d to %d are supported", r->file,
                       (long long)p->ir_version, IR_OLDEST, IR_NEWEST);
    if (p->n_opset_import == 0)
        return qn_fail(QN_EFORMAT, "%s: the model does not say its opset", r->file);
    QN_TRY(read_opsets(r, p->opset_import, p->n_opset_import, &m->opset));
    m->n_opset = (int)p->n_opset_import;
    QN_TRY(read_meta(r, p, m));
    QN_TRY(read_functions(r, p, m, &function));
    QN_TRY(qn_onnx_read_graph(r, p->graph, &graph));
    m->graph = graph;
    return qn_onnx_check_calls(r->arena, r->file, m, function);
}

QnStatus qn_onnx_read_bytes(const void *data, size_t bytes, const char *name, const char *folder,
                            QnOnnxModel **out)
{
    QnOnnxModel *m = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    m->path = qn_strdup(name);
    m->arena = qn_arena_new();
    m->file = qn_alloc(sizeof *m->file);
    QnStatus st = m->path && m->arena && m->file ? QN_OK : QN_ENOMEM;
    if (st == QN_OK) {
        m->file->message = qn_onnx_unpack(&onnx__model_proto__descriptor, data, bytes, name);
        st = m->file->message ? QN_OK : qn_error_last()->code;
    }
    if (st == QN_OK) {
        QnOnnxReader r = {
            .arena = m->arena, .file = m->path, .folder = folder, .owner = m->file, .bytes = bytes
        };
        st = read_model(&r, m->file->message, m);
    }
    if (st != QN_OK) {
        qn_onnx_free(m);
        return st;
    }
    *out = m;
    return QN_OK;
}

QnStatus qn_onnx_read(const char *path, QnOnnxModel **out)
{
    QnFileMap map;
    QN_TRY(qn_file_map(path, &map));
    const char *slash = strrchr(path, '/');
    char *folder = qn_strdup(slash ? path : ".");
    QnStatus st = folder ? QN_OK : QN_ENOMEM;
    if (st == QN_OK) {
        if (slash)
            folder[slash == path ? 1 : slash - path] = 0;
        st = qn_onnx_read_bytes(map.data, map.bytes, path, folder, out);
    }
    qn_free(folder);
    qn_file_unmap(&map);
    return st;
}

void qn_onnx_free(QnOnnxModel *m)
{
    if (!m)
        return;
    if (m->file) {
        ProtobufCAllocator a = qn_onnx_allocator();
        if (m->file->message)
            protobuf_c_message_free_unpacked(m->file->message, &a);
        for (int64_t i = 0; i < m->file->n_extra; i++)
            protobuf_c_message_free_unpacked(m->file->extra[i], &a);
        for (int64_t i = 0; i < m->file->n_mapped; i++)
            if (m->file->mapped[i].data)
                munmap((void *)m->file->mapped[i].data, m->file->mapped[i].bytes);
        qn_free(m->file->mapped);
        qn_free(m->file->extra);
    }
    qn_free(m->file);
    qn_arena_free(m->arena);
    qn_free(m->path);
    qn_free(m);
}
#endif

int64_t qn_onnx_opset(const QnOnnxOpset *opset, int n, const char *domain)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(opset[i].domain, domain))
            return opset[i].version;
    return 0;
}

const QnOnnxFunction *qn_onnx_function(const QnOnnxModel *m, const char *domain, const char *name)
{
    int64_t lo = 0, hi = m->n_functions;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const QnOnnxFunction *f = &m->function[mid];
        int c = strcmp(domain, f->domain);
        c = c ? c : strcmp(name, f->name);
        if (c == 0)
            return f;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const QnTensor *qn_onnx_find_init(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!strcmp(g->init[i].name, name))
            return g->init[i].tensor;
    return NULL;
}

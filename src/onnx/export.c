/* Our graphs as ONNX models. */
#include "onnx/onnx.h"

#include "onnx/mapping.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "quern/quern.h"
#include "rt/store.h"

#include <ctype.h>
#include <string.h>

/* IR version and opset go together: onnx's Versioning.md. */
static int64_t ir_version(int64_t opset)
{
    return opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

typedef struct Export {
    const QnOnnxExportOptions *o;
    const QnStore *store;
    QnArena *arena;
    QnOnnxPut put;
} Export;

/* ---- which row writes a node ----------------------------------------------------------------- */

/* A row that can be written as it is read. */
static const QnOnnxMap *row_for(const QnOp *op, int64_t opset)
{
    for (int i = 0; i < op->n_onnx; i++) {
        const QnOnnxMap *m = &op->onnx[i];
        if (opset >= m->since && (!m->until || opset <= m->until) && !m->import && !m->domain)
            return m;
    }
    return NULL;
}

static bool is_leaf(const QnNode *n)
{
    return n->op->traits & (QN_INPUT | QN_STATE);
}

static bool has_row(void *opset, const QnNode *n)
{
    return is_leaf(n) || n->op->onnx_put || row_for(n->op, *(int64_t *)opset);
}

/* "onnx=field" backwards. */
static const char *onnx_name(const QnOnnxMap *m, const char *field, QnArena *arena)
{
    size_t n = strlen(field);
    for (const char *p = m->rename; p && *p; p += strcspn(p, ","), p += *p == ',') {
        size_t len = strcspn(p, ",");
        const char *equals = memchr(p, '=', len);
        if (!equals || (size_t)(p + len - equals - 1) != n || strncmp(equals + 1, field, n))
            continue;
        char *name = qn_arena_alloc(arena, (size_t)(equals - p) + 1);
        if (name)
            memcpy(name, p, (size_t)(equals - p));
        return name;
    }
    return field;
}

static void put_field(QnOnnxPut *p, QnOnnxDef *d, const QnAttrField *f, const char *name,
                      const void *v)
{
    const QnInts *ints = v;
    switch (f->kind) {
    case QN_ATTR_INT: qn_put_attr_int(p, d, name, *(const int64_t *)v); return;
    case QN_ATTR_BOOL: qn_put_attr_int(p, d, name, *(const bool *)v); return;
    case QN_ATTR_FLOAT: qn_put_attr_float(p, d, name, *(const double *)v); return;
    case QN_ATTR_ENUM: qn_put_attr_text(p, d, name, f->names[*(const int *)v]); return;
    case QN_ATTR_DTYPE:
        qn_put_attr_int(p, d, name, qn_onnx_dtype_number(*(const QnDtype *)v));
        return;
    case QN_ATTR_INTS:
        if (ints->n)
            qn_put_attr_ints(p, d, name, ints->v, ints->n);
        return;
    default: qn_put_fail(p, qn_fail(QN_EUNSUPPORTED, "attribute '%s' has no ONNX form", f->name));
    }
}

/* A row without functions, backwards. */
static QnStatus put_plain(QnOnnxPut *p, const QnNode *n, const QnOnnxMap *m)
{
    QnOnnxDef *d = qn_put_same(p, n, m->name);
    for (int i = 0; i < n->op->n_fields; i++) {
        const QnAttrField *f = &n->op->fields[i];
        put_field(p, d, f, onnx_name(m, f->name, p->arena), (const char *)n->attr + f->offset);
    }
    return qn_put_status(p);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static QnStatus read_state(Export *e, const QnNode *n, const QnTensor **out)
{
    const char *name = qn_node_label(n);
    const QnSlot *slot = e->store ? qn_store_find(e->store, name) : NULL;
    QnTensor *t = qn_arena_alloc(e->arena, sizeof *t);
    if (!slot)
        return qn_fail(QN_ENOTFOUND, "the weight '%s' has no value", name);
    if (!t)
        return QN_ENOMEM;
    t->type = n->out[0].type;
    void *data = qn_arena_alloc(e->arena, (size_t)QN_MAX(qn_type_bytes(&t->type), 1));
    if (!data)
        return QN_ENOMEM;
    QN_TRY(qn_store_read(e->store, slot, data));
    t->data = data;
    *out = t;
    return QN_OK;
}

static QnStatus put_state(Export *e, const QnNode *n)
{
    const QnTensor *t = NULL;
    QN_TRY(read_state(e, n, &t));
    qn_put_tensor(&e->put, qn_node_label(n), t);
    return qn_put_status(&e->put);
}

static QnStatus put_node(Export *e, const QnNode *n)
{
    if (n->op->traits & QN_INPUT)
        return QN_OK;
    if (n->op->traits & QN_STATE)
        return put_state(e, n);
    const QnOnnxMap *m = row_for(n->op, e->put.opset);
    e->put.writes = n->op->onnx_put ? n->op->onnx_writes : NULL;
    if (n->op->onnx_put) {
        QN_TRY(n->op->onnx_put(&e->put, n));
        return qn_put_status(&e->put);
    }
    if (!m)
        return qn_fail(QN_EUNSUPPORTED, "Quern does not write operator %s yet", n->op->name);
    QN_TRY(put_plain(&e->put, n, m));
    return qn_put_status(&e->put);
}

static QnOnnxType *type_of(Export *e, const QnGraph *g, const QnType *t)
{
    QnOnnxType *out = qn_arena_alloc(e->arena, sizeof *out);
    char text[64];
    if (!out)
        return NULL;
    out->kind = QN_ONNX_TYPE_TENSOR;
    out->elem = qn_onnx_dtype_number(t->dtype);
    out->rank = t->shape.rank;
    for (int i = 0; i < t->shape.rank; i++) {
        out->dim[i] = t->shape.dim[i];
        if (t->shape.dim[i] < 0)
            out->dim_name[i] = qn_arena_strdup(e->arena, qn_dim_text(g, t->shape.dim[i], text));
    }
    return out;
}

/* Names that callers see come first; an output that is an input, a weight, or has two names, gets
 * an Identity. */
static QnStatus name_ends(Export *e, QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    if (is_leaf(n))
        e->put.name[n->out[0].id] = qn_node_label(n);
    for (int64_t i = 0; i < g->n_outputs; i++)
        if (!e->put.name[g->outputs[i].value->id])
            e->put.name[g->outputs[i].value->id] = g->outputs[i].name;
    return QN_OK;
}

static QnStatus put_ends(Export *e, QnGraph *g, QnOnnxGraph *out)
{
    int64_t n_inputs = 0;
    QN_GRAPH_EACH(g, n)
    n_inputs += (n->op->traits & QN_INPUT) != 0;
    QnOnnxInfo *in = qn_arena_array(e->arena, (size_t)n_inputs + 1, sizeof *in);
    QnOnnxInfo *to = qn_arena_array(e->arena, (size_t)g->n_outputs + 1, sizeof *to);
    if (!in || !to)
        return QN_ENOMEM;
    out->input = in;
    out->output = to;
    QN_GRAPH_EACH(g, n)
    if (n->op->traits & QN_INPUT)
        in[out->n_inputs++] = (QnOnnxInfo){ qn_node_label(n), type_of(e, g, &n->out[0].type) };
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnOutput *o = &g->outputs[i];
        const char *made = qn_put_value(&e->put, o->value);
        if (strcmp(made, o->name))
            qn_put_node(&e->put, "Identity", &made, 1, &o->name, 1);
        to[out->n_outputs++] = (QnOnnxInfo){ o->name, type_of(e, g, &o->value->type) };
    }
    for (int64_t i = 0; i < out->n_inputs; i++)
        QN_TRY(in[i].type ? QN_OK : QN_ENOMEM);
    for (int64_t i = 0; i < out->n_outputs; i++)
        QN_TRY(to[i].type ? QN_OK : QN_ENOMEM);
    return qn_put_status(&e->put);
}

static QnStatus put_graph(Export *e, QnGraph *g, QnOnnxGraph *out)
{
    qn_graph_number(g);
    e->put.n_names = g->n_values;
    e->put.name = qn_arena_array(e->arena, (size_t)g->n_values + 1, sizeof *e->put.name);
    if (!e->put.name)
        return QN_ENOMEM;
    QN_TRY(name_ends(e, g));
    QN_GRAPH_EACH(g, n)
    if (put_node(e, n) != QN_OK)
        return qn_fail_prefix("node %%%lld (%s)%s%s", (long long)n->id, n->op->name,
                              n->name ? " " : "", n->name ? n->name : "");
    QN_TRY(put_ends(e, g, out));
    out->name = e->o->name ? e->o->name : "quern";
    out->n_nodes = e->put.n_node;
    out->node = qn_arena_array(e->arena, (size_t)e->put.n_node + 1, sizeof *out->node);
    if (!out->node)
        return QN_ENOMEM;
    for (int64_t i = 0; i < out->n_nodes; i++)
        out->node[i] = *e->put.node[i];
    out->init = e->put.init;
    out->n_inits = e->put.n_init;
    return QN_OK;
}

/* Composites that have no row become what they are made of; nothing else is changed. */
static QnStatus lower(QnGraph *g, int64_t *opset)
{
    QnPipelineOptions o = { .level = QN_O0, .keep = has_row, .keep_ctx = opset };
    return qn_pipeline_run(g, &o);
}

static bool has_row_but_norm(void *opset, const QnNode *n)
{
    return n->op != &qn_op_batch_norm_inference && has_row(opset, n);
}

/* Batch norms go into the convolutions before them, constants are computed. */
static QnStatus fold(Export *e, QnGraph *g)
{
    QnPipelineOptions o = { .level = QN_O1,
                            .off = "fuse,fuse_sum,recompute",
                            .keep = has_row_but_norm,
                            .keep_ctx = &e->put.opset };
    QN_TRY(qn_graph_freeze(g, e->store));
    return qn_pipeline_run(g, &o);
}

static QnStatus write_model(Export *e, QnGraph *g, const char *path)
{
    QnOnnxGraph graph = { 0 };
    QnOnnxOpset opset = { "", e->put.opset };
    QN_TRY(e->o->fold ? fold(e, g) : lower(g, &e->put.opset));
    QN_TRY(put_graph(e, g, &graph));
    QnOnnxModel m = { .ir_version = ir_version(e->put.opset),
                      .producer = "quern",
                      .producer_version = QN_VERSION,
                      .n_opset = 1,
                      .opset = &opset,
                      .graph = &graph };
    return qn_onnx_write(&m, path, e->o->outside);
}

QnStatus qn_onnx_export(QnGraph *g, const QnStore *store, const QnOnnxExportOptions *o,
                        const char *path)
{
    static const QnOnnxExportOptions none;
    Export e = { .o = o ? o : &none, .store = store, .arena = qn_arena_new() };
    QN_TRY(e.arena ? QN_OK : QN_ENOMEM);
    e.put.arena = e.arena;
    e.put.opset = e.o->opset ? e.o->opset : QN_ONNX_OPSET_NEWEST;
    QnStatus st = e.put.opset < QN_ONNX_OPSET_LEAST || e.put.opset > QN_ONNX_OPSET_NEWEST
                      ? qn_fail(QN_EUSAGE, "opset %lld; %d to %d can be written",
                                (long long)e.put.opset, QN_ONNX_OPSET_LEAST, QN_ONNX_OPSET_NEWEST)
                      : QN_OK;
    QnGraph *copy = st == QN_OK ? qn_graph_clone(g, NULL) : NULL;
    if (st == QN_OK)
        st = copy ? write_model(&e, copy, path) : QN_ENOMEM;
    qn_graph_free(copy);
    qn_free(e.put.node);
    qn_free(e.put.init);
    qn_arena_free(e.arena);
    return st;
}

/* A model as one fixed graph: its inputs stay inputs, its weights are constants or states. */
#include "onnx/importer.h"
#include "ops/ops.h"
#include "rt/store.h"

#include <stdio.h>
#include <string.h>

const char *qn_onnx_dim_name(const QnOnnxInfo *input, int axis, char buf[QN_ONNX_DIM_NAME_BYTES])
{
    const char *name = input->type->dim_name[axis];
    if (name && name[0])
        return name;
    snprintf(buf, QN_ONNX_DIM_NAME_BYTES, "%s:%d", input->name, axis);
    return buf;
}

QnStatus qn_onnx_input_type(const QnOnnxModel *m, int64_t input, const QnOnnxImportOptions *o,
                            QnType *out)
{
    const QnOnnxInfo *info = &m->graph->input[input];
    const QnOnnxType *t = info->type;
    *out = (QnType){ 0 };
    if (t->kind != QN_ONNX_TYPE_TENSOR || t->rank < 0 || !qn_onnx_dtype(t->elem, &out->dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: input '%s' is no tensor of numbers with known dims",
                       m->path, info->name);
    out->shape.rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        char text[QN_ONNX_DIM_NAME_BYTES];
        const char *name = qn_onnx_dim_name(info, i, text);
        out->shape.dim[i] = t->dim[i];
        for (int k = 0; k < o->n_dim && t->dim[i] < 0; k++)
            if (!strcmp(o->dim[k], name))
                out->shape.dim[i] = o->length[k];
        if (i == 0 && o->batch > 0)
            out->shape.dim[i] = o->batch;
        if (out->shape.dim[i] < 0)
            return qn_fail(QN_EUSAGE,
                           "%s: dim %d of input '%s' has no number; it is called '%s', and --dim "
                           "NAME=N or, of a first dim, --batch N gives it one",
                           m->path, i, info->name, name);
    }
    return QN_OK;
}

static QnStatus place_inputs(QnImporter *m, const QnOnnxImportOptions *o)
{
    const QnOnnxGraph *g = m->model->graph;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        QnType type = { 0 };
        const char *name = g->input[i].name;
        if (qn_onnx_find_init(g, name))
            continue;
        const QnTensor *given = o->given ? o->given[i] : NULL;
        if (given)
            type = given->type;
        else
            QN_TRY(qn_onnx_input_type(m->model, i, o, &type));
        QnItem *item = qn_importer_item(m, name, given && given->data ? given : NULL);
        QN_TRY(item ? QN_OK : QN_ENOMEM);
        if (!item->known) {
            item->value = qn_input(m->graph, name, type.dtype, &type.shape);
            item->epoch = m->epoch;
        }
        QN_TRY(qn_scope_set(m->scope, name, item));
    }
    for (int64_t i = 0; o->states && i < g->n_inits; i++) {
        QnItem *item = NULL;
        if (g->init[i].tensor->text || !qn_dtype_is_float(g->init[i].tensor->type.dtype))
            continue;
        if (qn_scope_find(m->scope, g->init[i].name, &item) && item)
            item->is_state = true;
    }
    return qn_graph_check(m->graph);
}

static QnStatus build_graph(QnImporter *m, const QnOnnxImportOptions *o, QnOnnxProblems *problems)
{
    const QnOnnxGraph *g = m->model->graph;
    QN_TRY(place_inputs(m, o));
    QN_TRY(qn_importer_nodes(m, g));
    if (m->n_problems)
        return qn_importer_refuse(m, problems);
    for (int64_t i = 0; i < g->n_outputs; i++) {
        QnItem *item = NULL;
        if (!qn_scope_find(m->scope, g->output[i].name, &item) || !item)
            return qn_fail(QN_EFORMAT, "nothing makes output '%s'", g->output[i].name);
        if (item->kind != QN_ITEM_TENSOR)
            return qn_fail(QN_EUNSUPPORTED, "output '%s' is a sequence", g->output[i].name);
        QnValue *v = qn_item_value(m->graph, m->epoch, item);
        QN_TRY(qn_graph_check(m->graph));
        QN_TRY(qn_graph_output(m->graph, g->output[i].name, v));
    }
    return QN_OK;
}

QnStatus qn_onnx_import(const QnOnnxModel *model, QnDevice *d, const QnOnnxImportOptions *o,
                        QnGraph **out, QnOnnxProblems *problems)
{
    static const QnOnnxImportOptions none;
    QnImporter m;
    QnScope s = { 0 };
    QnStatus st = qn_importer_open(&m, &s, model, d, o ? &o->limits : NULL);
    m.training = o && o->training;
    m.options = o;
    if (st == QN_OK)
        st = build_graph(&m, o ? o : &none, problems);
    if (st == QN_OK) {
        qn_arena_limit(m.graph->arena, 0);
        *out = m.graph;
        m.graph = NULL;
    } else if (st != QN_EUNSUPPORTED) {
        qn_fail_prefix("%s", model->path);
    }
    qn_importer_close(&m, &s);
    return st;
}

QnStatus qn_onnx_fill(const QnOnnxModel *m, QnStore *store)
{
    for (int64_t i = 0; i < m->graph->n_inits; i++) {
        const QnOnnxInit *init = &m->graph->init[i];
        const QnSlot *slot = qn_store_find(store, init->name);
        if (!slot || init->tensor->text)
            continue;
        QnType type = *qn_slot_type(slot);
        type.layout = init->tensor->type.layout; /* the store sees to it */
        if (!qn_type_is_equal(&type, &init->tensor->type))
            return qn_fail(QN_ESHAPE, "%s: weight '%s' is not of the state's type", m->path,
                           init->name);
        QN_TRY(qn_store_write(store, slot, init->tensor->data));
    }
    return QN_OK;
}

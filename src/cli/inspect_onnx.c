#include "cli/inspect_onnx.h"

#include "cli/model_dims.h"
#include "cli/model_values.h"
#include "onnx/mapping.h"
#include "ops/ops.h"
#include "pass/pipeline.h"

#include <stdio.h>
#include <string.h>

/* A model begins with its IR version (field 1) and one of the fields that follow; safetensors with
 * a length and '{'. */
bool qn_inspect_is_onnx(const char *path, const void *data, size_t size)
{
    static const char next[] = "\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2\xca";
    size_t n = strlen(path);
    const char *d = data;
    if (n > 5 && !strcmp(path + n - 5, ".onnx"))
        return true;
    return size > 16 && d[0] == 8 && d[1] >= 3 && d[1] < 64 && strchr(next, d[2]) && d[2] &&
           d[8] != '{';
}

/* ---- costs ----------------------------------------------------------------------------------- */

static bool has_cost(void *ctx, const QnNode *n)
{
    (void)ctx;
    return n->op->cost != NULL;
}

/* A composite without a cost of its own: what it is lowered to costs as much. */
static QnStatus lower_alone(QnGraph *g, const QnNode *n)
{
    QnValue *in[QN_MAX_IN] = { NULL };
    QnPipelineOptions o = { .level = QN_O0, .keep = has_cost };
    char name[32];
    for (int i = 0; i < n->n_in; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (n->in[i])
            in[i] = qn_input(g, name, n->in[i]->type.dtype, &n->in[i]->type.shape);
    }
    QnNode *copy = qn_graph_copy_node(g, n, in);
    QN_TRY(qn_graph_check(g));
    for (int i = 0; i < copy->n_out; i++) {
        snprintf(name, sizeof name, "%d", i);
        QN_TRY(qn_graph_output(g, name, &copy->out[i]));
    }
    return qn_pipeline_run(g, &o);
}

static double flops_of(const QnNode *n)
{
    double flops = qn_cost_of(n).flops;
    if (n->op->cost || !n->op->lower)
        return flops;
    QnGraph *g = qn_graph_new();
    if (g && lower_alone(g, n) == QN_OK) {
        flops = 0;
        QN_GRAPH_EACH(g, part)
        flops += part->op->traits & QN_LEAF ? 0 : qn_cost_of(part).flops;
    }
    qn_graph_free(g);
    return flops;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static const QnType *item_type(const QnItem *item)
{
    return !item || item->kind != QN_ITEM_TENSOR ? NULL
           : item->value                         ? qn_value_type(item->value)
           : item->known                         ? &item->known->type
                                                 : NULL;
}

static const char *item_text(const QnItem *item, QnArena *arena)
{
    char text[QN_TYPE_TEXT_BYTES];
    const QnType *t = item_type(item);
    if (item && item->kind != QN_ITEM_TENSOR)
        return qn_arena_printf(arena, "%s of %lld",
                               item->kind == QN_ITEM_SEQUENCE ? "sequence" : "optional",
                               (long long)item->n);
    if (t && item->known && item->known->text)
        return qn_arena_printf(arena, "strings%s", qn_shape_text(&t->shape, text));
    return t ? qn_arena_strdup(arena, qn_type_text(t, text)) : "";
}

static QnStatus see_node(void *ctx, const QnOnnxSeen *s)
{
    QnInspectOnnx *v = ctx;
    QnLayer *l = &v->layer[s->number];
    l->fate = s->fate;
    v->n_reached = s->number + 1;
    if (s->fate == QN_ONNX_REFUSED) {
        const char *why = strstr(s->why, ": "); /* the node's name is told beside it */
        why = why ? strstr(why + 2, ": ") : NULL;
        l->why = qn_arena_strdup(v->arena, why ? why + 2 : s->why);
        if (!l->why)
            return QN_ENOMEM;
        ((char *)(uintptr_t)l->why)[strcspn(l->why, "\n")] = '\0';
    }
    if (s->fate != QN_ONNX_MADE)
        return QN_OK;
    l->is_constant = true;
    for (const QnNode *n = s->first; n; n = n->next) {
        if (n->op->traits & QN_LEAF)
            continue;
        QnCost c = qn_cost_of(n);
        l->flops += flops_of(n);
        l->moved += c.bytes_read + c.bytes_written;
    }
    for (int i = 0; i < l->def->n_out; i++) {
        const QnType *t = item_type(s->out[i]);
        l->memory += t ? QN_MAX(qn_type_bytes(t), 0) : 0;
        l->is_constant &= s->out[i] && s->out[i]->known && !s->out[i]->value;
    }
    l->type = l->def->n_out ? item_text(s->out[0], v->arena) : "";
    return l->type ? QN_OK : QN_ENOMEM;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_weight(const QnTensor *t)
{
    QnDtype d = t->type.dtype;
    bool index = d == QN_DTYPE_I64 || d == QN_DTYPE_I32 || d == QN_DTYPE_BOOL;
    return !t->text && !index;
}

static void count_tensor(QnLayer *l, const QnTensor *t)
{
    if (!is_weight(t))
        return;
    l->parameters += qn_shape_count(&t->type.shape);
    l->weights_bytes += QN_MAX(qn_type_bytes(&t->type), 0);
}

/* Also where graphs inside the node read them. */
static void count_graph(QnLayer *l, const QnOnnxGraph *top, const QnOnnxDef *d, bool *is_counted)
{
    for (int i = 0; i < d->n_in; i++)
        for (int64_t k = 0; k < top->n_inits; k++)
            if (!is_counted[k] && !strcmp(top->init[k].name, d->in[i])) {
                is_counted[k] = true;
                count_tensor(l, top->init[k].tensor);
            }
    for (int i = 0; i < d->n_attr; i++) {
        const QnOnnxAttr *a = &d->attr[i];
        if (a->kind == QN_ONNX_TENSOR && a->tensor && !strcmp(d->op, "Constant"))
            count_tensor(l, a->tensor);
        for (int64_t k = 0; a->kind == QN_ONNX_GRAPH && a->graph && k < a->graph->n_inits; k++)
            count_tensor(l, a->graph->init[k].tensor);
        for (int64_t k = 0; a->kind == QN_ONNX_GRAPH && a->graph && k < a->graph->n_nodes; k++)
            count_graph(l, top, &a->graph->node[k], is_counted);
    }
}

static QnStatus begin(QnInspectOnnx *v)
{
    const QnOnnxGraph *g = v->model->graph;
    bool *is_counted = qn_arena_array(v->arena, (size_t)g->n_inits + 1, sizeof *is_counted);
    v->layer = qn_arena_array(v->arena, (size_t)g->n_nodes + 1, sizeof *v->layer);
    if (!v->layer || !is_counted)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        v->layer[i] = (QnLayer){ .def = &g->node[i], .fate = QN_ONNX_PASSED, .type = "" };
        count_graph(&v->layer[i], g, &g->node[i], is_counted);
    }
    return QN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Nodes that import has not come to may still be told to be unknown. */
static QnStatus check_passed(QnInspectOnnx *v)
{
    QnMapping map;
    const QnOnnxModel *m = v->model;
    for (int64_t i = 0; i < m->graph->n_nodes; i++) {
        QnLayer *l = &v->layer[i];
        const QnOnnxDef *d = l->def;
        v->n_open += l->fate == QN_ONNX_OPEN;
        if (l->fate == QN_ONNX_PASSED && !qn_onnx_function(m, d->domain, d->op) &&
            !qn_mapping_find(d->domain, d->op, qn_onnx_opset(m->opset, m->n_opset, d->domain), &map,
                             NULL)) {
            l->fate = QN_ONNX_REFUSED;
            l->why = "not supported";
        }
        v->n_refused += l->fate == QN_ONNX_REFUSED;
        v->parameters += l->parameters;
        v->weights_bytes += l->weights_bytes;
        v->flops += l->flops;
        v->moved += l->moved;
    }
    return QN_OK;
}

static QnStatus plan(QnInspectOnnx *v, QnGraph *g, QnDevice *d)
{
    QnPlan *p = NULL;
    QnPipelineOptions o = qn_device_passes(d);
    o.keep_inputs = true;
    QN_TRY(qn_pipeline_run(g, &o));
    QN_TRY(qn_plan_new(g, d, NULL, NULL, &p));
    v->memory = qn_plan_memory(p);
    qn_plan_free(p);
    return QN_OK;
}

static QnStatus import(QnInspectOnnx *v, const QnArgs *a, const QnInspectOnnxOptions *o,
                       QnDevice *d)
{
    QnCliDims dims;
    QnGraph *g = NULL;
    QnOnnxProblems problems = { 0 };
    QnOnnxImportOptions i = { .seen = see_node, .seen_ctx = v };
    const QnTensor **given;
    QnItem **in = qn_arena_array(v->arena, (size_t)v->model->graph->n_inputs + 1, sizeof *in);
    QN_TRY(in ? begin(v) : QN_ENOMEM);
    QN_TRY(qn_cli_dims(a, o->dim_option, v->model, &dims));
    QN_TRY(qn_cli_some_inputs(a, o->input_option, v->model, v->arena, in));
    QN_TRY(qn_cli_dims_types(v->model, in, &dims, o->batch, v->arena, &given, &v->assumed));
    i.given = given;
    QnStatus st = qn_onnx_import(v->model, d, &i, &g, &problems);
    if (st == QN_OK)
        st = plan(v, g, d);
    if (st == QN_EUNSUPPORTED) {
        QnStr line = { 0 };
        qn_onnx_join_problems(problems.n ? qn_str_text(&problems.text) : qn_error_last()->text,
                              &line);
        v->unplanned = qn_arena_strdup(v->arena, qn_str_text(&line));
        qn_str_fini(&line);
        st = v->unplanned ? QN_OK : QN_ENOMEM;
    }
    if (st != QN_OK && v->assumed[0])
        st = qn_fail_prefix("with 1 for open dims such as '%s' (--dim NAME=N gives others)",
                            v->assumed);
    qn_graph_free(g);
    qn_str_fini(&problems.text);
    QN_TRY(st);
    return check_passed(v);
}

QnStatus qn_inspect_onnx(const QnArgs *a, const char *path, const QnInspectOnnxOptions *o,
                         int *code)
{
    QnInspectOnnx v = { .arena = qn_arena_new() };
    QnOnnxModel *m = NULL;
    QnDevice *d = NULL;
    QnStatus st = v.arena ? qn_onnx_read(path, &m) : QN_ENOMEM;
    v.model = m;
    if (st == QN_OK)
        st = qn_cli_device(NULL, 0, false, &d);
    if (st == QN_OK)
        st = import(&v, a, o, d);
    if (st == QN_OK)
        st = a->json ? qn_inspect_onnx_print_json(&v) : qn_inspect_onnx_print(&v, o->all);
    if (st == QN_OK && v.n_refused)
        *code = QN_EXIT_UNSUPPORTED;
    qn_device_close(d);
    qn_onnx_free(m);
    qn_arena_free(v.arena);
    return st;
}

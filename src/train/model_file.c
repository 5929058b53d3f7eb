#include "train/model_file.h"

#include "ops/ops.h"
#include "rt/store.h"

#include <stdio.h>
#include <string.h>

/* ---- what the recipe says -------------------------------------------------------------------- */

static QnStatus read_freeze(QnModelFile *f, const QnYaml *map)
{
    const QnYaml *node = qn_yaml_find(map, "freeze");
    if (!node)
        return QN_OK;
    if (node->kind == QN_YAML_MAP)
        return qn_yaml_fail(node, "expected a pattern of names, or a list of them");
    bool is_list = node->kind == QN_YAML_LIST;
    int64_t n = is_list ? node->count : 1;
    const char **pattern = qn_arena_array(f->model->arena, (size_t)n + 1, sizeof *pattern);
    QN_TRY(pattern ? QN_OK : QN_ENOMEM);
    for (const QnYaml *k = is_list ? node->first : node; k; k = is_list ? k->next : NULL) {
        const QnOnnxGraph *g = f->model->graph;
        const char **p = &pattern[is_list ? k->index : 0];
        QnOnnxNetOptions one = { .freeze = p, .n_freeze = 1 };
        bool found = false;
        QN_TRY(qn_yaml_as_string(k, p));
        for (int64_t i = 0; !found && i < g->n_inits; i++)
            found = qn_onnx_is_frozen(&one, g->init[i].name);
        if (!found) /* a slip would go unheard */
            return qn_yaml_fail(k, "no weight of %s is called so: '%s'%s%s", f->model->path, *p,
                                g->n_inits ? "; the first is " : "",
                                g->n_inits ? g->init[0].name : "");
    }
    f->options.freeze = pattern;
    f->options.n_freeze = n;
    return QN_OK;
}

static bool has_init(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!strcmp(g->init[i].name, name))
            return true;
    return false;
}

/* Inputs that are no weights. */
static void list_inputs(const QnOnnxGraph *g, QnStr *text, int64_t *n, const char **first)
{
    *n = 0;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        if (has_init(g, g->input[i].name))
            continue;
        qn_str_printf(text, "%s%s", *n ? ", " : "", g->input[i].name);
        if (!(*n)++)
            *first = g->input[i].name;
    }
}

static QnStatus choose_input(QnModelFile *f, const QnYaml *place, const QnYaml *map)
{
    const QnOnnxGraph *g = f->model->graph;
    QnStr names = { 0 };
    int64_t n;
    const char *wanted = NULL, *first = NULL;
    QN_TRY(qn_yaml_string(map, "input", false, &wanted));
    list_inputs(g, &names, &n, &first);
    QnStatus st = names.st;
    bool found = false;
    for (int64_t i = 0; wanted && i < g->n_inputs; i++)
        found |= !strcmp(g->input[i].name, wanted) && !has_init(g, wanted);
    if (st == QN_OK && wanted && !found)
        st = qn_yaml_fail(qn_yaml_find(map, "input"), "%s has no input '%s'; it has: %s",
                          f->model->path, wanted, qn_str_text(&names));
    else if (st == QN_OK && !wanted && n != 1)
        st = qn_yaml_fail(place, "%s has %lld inputs (%s): say which takes the data by input: NAME",
                          f->model->path, (long long)n, qn_str_text(&names));
    f->options.input = wanted ? wanted : first;
    qn_str_fini(&names);
    return st;
}

static QnStatus choose_output(QnModelFile *f, const QnYaml *place, const QnYaml *map)
{
    const QnOnnxGraph *g = f->model->graph;
    const char *wanted = NULL;
    QN_TRY(qn_yaml_string(map, "output", false, &wanted));
    if (!wanted && g->n_outputs != 1)
        return qn_yaml_fail(place,
                            "%s has %lld outputs: say which gives the logits by output: NAME, the "
                            "first is '%s'",
                            f->model->path, (long long)g->n_outputs,
                            g->n_outputs ? g->output[0].name : "");
    f->options.output = wanted ? wanted : g->output[0].name;
    for (int64_t i = 0; wanted && i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_out; k++)
            if (!strcmp(g->node[i].out[k], wanted))
                return QN_OK;
    return wanted ? qn_yaml_fail(qn_yaml_find(map, "output"), "no node of %s makes '%s'",
                                 f->model->path, wanted)
                  : QN_OK;
}

/* The loss has its own softmax. */
static void strip_activation(QnModelFile *f)
{
    const QnOnnxDef *last;
    if (f->recipe->task == QN_TASK_REGRESS)
        return;
    f->options.output = qn_onnx_logits(f->model, f->options.output, &last);
    if (last)
        qn_str_printf(&f->notes, "%s: its last %s is left out: the loss takes logits\n",
                      f->model->path, last->op);
}

static QnStatus replace_head(QnModelFile *f, const QnYaml *map, int64_t outputs)
{
    const QnYaml *node = qn_yaml_find(map, "head");
    int64_t n = outputs;
    if (!node)
        return QN_OK;
    if (node->kind != QN_YAML_SCALAR || strcmp(node->text, "outputs"))
        QN_TRY(qn_yaml_as_int(node, 1, 1 << 24, &n));
    if (n != outputs)
        return qn_yaml_fail(node, "a head of %lld, but the data asks for %lld: say head: outputs",
                            (long long)n, (long long)outputs);
    const char *was = f->options.output;
    if (qn_onnx_new_head(f->model, &f->options, n, (uint64_t)f->recipe->seed) != QN_OK) {
        char text[QN_ERROR_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", qn_error_last()->text);
        return qn_yaml_fail(node, "%s", text);
    }
    qn_str_printf(&f->notes, "%s: a new head of %lld outputs before '%s'\n", f->model->path,
                  (long long)n, was);
    return QN_OK;
}

static QnStatus read_keys(QnModelFile *f, int64_t outputs)
{
    const QnYaml *place = f->recipe->model;
    const QnYaml *map = place->kind == QN_YAML_MAP ? place : NULL;
    static const char *const known[] = { "onnx", "freeze", "head", "input", "output" };
    QN_TRY(qn_yaml_check_keys(map, known, QN_COUNT(known)));
    QN_TRY(choose_input(f, place, map));
    QN_TRY(choose_output(f, place, map));
    strip_activation(f);
    QN_TRY(replace_head(f, map, outputs));
    QN_TRY(read_freeze(f, map));
    return f->notes.st;
}

QnStatus qn_model_file_open(const QnRecipe *r, const char *path, QnDevice *d, int64_t outputs,
                            QnModelFile **out)
{
    *out = NULL;
    if (!r->onnx)
        return QN_OK;
    QnModelFile *f = qn_alloc(sizeof *f);
    QN_TRY(f ? QN_OK : QN_ENOMEM);
    *f = (QnModelFile){ .recipe = r, .device = d };
    QnStatus st = qn_onnx_read(path ? path : r->onnx, &f->model);
    if (st == QN_OK) {
        f->original = f->model->graph;
        st = read_keys(f, outputs);
    }
    if (st == QN_OK)
        *out = f;
    else
        qn_model_file_free(f);
    return st;
}

void qn_model_file_free(QnModelFile *f)
{
    if (!f)
        return;
    qn_onnx_free(f->model);
    qn_str_fini(&f->notes);
    qn_free(f);
}

/* ---- building -------------------------------------------------------------------------------- */

static const char *file_type_text(const QnOnnxType *t, char *out, size_t bytes)
{
    size_t n = (size_t)snprintf(out, bytes, "[");
    for (int i = 0; i < t->rank && n < bytes; i++)
        n += t->dim[i] >= 0 ? (size_t)snprintf(out + n, bytes - n, "%s%lld", i ? "," : "",
                                               (long long)t->dim[i])
                            : (size_t)snprintf(out + n, bytes - n, "%s%s", i ? "," : "",
                                               t->dim_name[i] ? t->dim_name[i] : "?");
    if (n < bytes)
        snprintf(out + n, bytes - n, "]");
    return out;
}

/* All dims but the batch. */
static QnStatus check_input(const QnModelFile *f, const QnType *x)
{
    const QnOnnxGraph *g = f->model->graph;
    const QnOnnxType *t = NULL;
    char data[QN_TYPE_TEXT_BYTES], file[256];
    QnDtype dtype;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (!strcmp(g->input[i].name, f->options.input))
            t = g->input[i].type;
    if (!t || t->kind != QN_ONNX_TYPE_TENSOR || !qn_onnx_dtype(t->elem, &dtype) ||
        dtype != x->dtype)
        return qn_yaml_fail(f->recipe->model, "input '%s' of %s is %s, the data is %s",
                            f->options.input, f->model->path,
                            t && t->kind == QN_ONNX_TYPE_TENSOR && qn_onnx_dtype(t->elem, &dtype)
                                ? qn_dtype_name(dtype)
                                : "no tensor of numbers",
                            qn_dtype_name(x->dtype));
    bool fits = t->rank < 0 || t->rank == x->shape.rank;
    for (int i = 1; fits && i < t->rank; i++)
        fits = t->dim[i] < 0 || t->dim[i] == x->shape.dim[i];
    return fits ? QN_OK
                : qn_yaml_fail(f->recipe->model,
                               "the data is %s, input '%s' of %s takes %s, the batch aside",
                               qn_shape_text(&x->shape, data), f->options.input, f->model->path,
                               file_type_text(t, file, sizeof file));
}

/* (N, outputs), whether the file gives it with further axes of length one or, for text, by token.
 */
static QnStatus shape_logits(const QnModelFile *f, const QnModelIo *io, QnGraph *g,
                             const QnValue *x, QnValue **y)
{
    const QnShape *s = &(*y)->type.shape;
    char text[QN_TYPE_TEXT_BYTES];
    int64_t rows = x->type.shape.dim[0] * (io->window ? io->window : 1);
    int axis = io->window && s->rank > 2 ? 2 : 1; /* Quern's own give (N*T, outputs) */
    bool fits = s->rank > axis && s->dim[axis] == io->outputs &&
                qn_shape_count(s) == rows * io->outputs &&
                s->dim[0] == (axis == 1 ? rows : x->type.shape.dim[0]);
    if (fits && (*y)->type.dtype == QN_DTYPE_F32) {
        *y = qn_reshape(g, *y, &QN_SHAPE(rows, io->outputs));
        return QN_OK;
    }
    return qn_yaml_fail(f->recipe->model, "%s gives %s %s at '%s', the data needs (N%s, %lld)%s",
                        f->model->path, qn_dtype_name((*y)->type.dtype), qn_shape_text(s, text),
                        f->options.output, io->window ? ",T" : "", (long long)io->outputs,
                        qn_yaml_find(f->recipe->model, "head")
                            ? ""
                            : "; head: outputs gives the model a new classifier");
}

QnStatus qn_model_file_build(const QnModelFile *f, QnNet *net, const QnModelIo *io, QnValue *x,
                             QnValue **y)
{
    QN_TRY(qn_graph_check(net->g));
    QN_TRY(check_input(f, &x->type));
    int64_t before = net->n_params;
    QN_TRY(qn_onnx_net(net, f->model, f->device, &f->options, x, y, f->problems));
    if (net->n_params == before)
        return qn_yaml_fail(f->recipe->model,
                            "nothing of %s would be trained: no weight that is not frozen takes "
                            "part in '%s'",
                            f->model->path, f->options.output);
    return shape_logits(f, io, net->g, x, y);
}

/* ---- weights --------------------------------------------------------------------------------- */

static QnStatus fill_average(const QnModelFile *f, QnStore *store, const QnOnnxInit *init)
{
    char name[1024];
    int n = snprintf(name, sizeof name, "ema.%s", init->name);
    const QnSlot *slot = n < (int)sizeof name ? qn_store_find(store, name) : NULL;
    if (!slot)
        return QN_OK;
    if (qn_type_bytes(qn_slot_type(slot)) != qn_type_bytes(&init->tensor->type))
        return qn_fail(QN_ESHAPE, "%s: weight '%s' is not of the average's type", f->model->path,
                       init->name);
    return qn_store_write(store, slot, init->tensor->data);
}

QnStatus qn_model_file_fill(const QnModelFile *f, QnStore *store)
{
    const QnOnnxGraph *g = f->model->graph;
    QN_TRY(qn_onnx_fill(f->model, store));
    for (int64_t i = 0; i < g->n_inits; i++)
        QN_TRY(fill_average(f, store, &g->init[i]));
    return QN_OK;
}

QnStatus qn_model_file_copy(const QnModelFile *f, const char *path)
{
    QnOnnxModel m = *f->model;
    m.graph = f->original;
    return qn_onnx_write(&m, path, false);
}

int64_t qn_model_file_count(const QnModelFile *f)
{
    const QnOnnxGraph *g = f->model->graph;
    int64_t n = 0;
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!g->init[i].tensor->text && qn_dtype_is_float(g->init[i].tensor->type.dtype))
            n += qn_shape_count(&g->init[i].tensor->type.shape);
    return n;
}

QnStatus qn_model_file_write(const QnModelFile *f, const QnStore *store, const char *path,
                             bool outside)
{
    QnOnnxModel m = *f->model;
    QN_TRY(qn_onnx_take(&m, store));
    return qn_onnx_write(&m, path, outside);
}

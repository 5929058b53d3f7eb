#include "cli/model_dims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The i-th name of an open dim, each once, in the order of the inputs; NULL: there are no more. */
static const char *open_dim(const QnOnnxModel *m, int64_t i, char text[QN_ONNX_DIM_NAME_BYTES])
{
    const QnOnnxGraph *g = m->graph;
    const char *seen[QN_CLI_DIMS_MOST];
    int n = 0;
    for (int64_t k = 0; k < g->n_inputs; k++) {
        const QnOnnxType *t = g->input[k].type;
        for (int d = 0; t->kind == QN_ONNX_TYPE_TENSOR && d < t->rank; d++) {
            const char *name = t->dim_name[d] ? t->dim_name[d] : "";
            bool is_new = t->dim[d] < 0 && n < QN_CLI_DIMS_MOST;
            for (int s = 0; is_new && name[0] && s < n; s++)
                is_new = strcmp(seen[s], name) != 0;
            if (!is_new)
                continue;
            if (n == i)
                return qn_onnx_dim_name(&g->input[k], d, text);
            seen[n++] = name;
        }
    }
    return NULL;
}

static QnStatus unknown_dim(const QnOnnxModel *m, const char *setting, size_t n)
{
    QnStr names = { 0 };
    char text[QN_ONNX_DIM_NAME_BYTES];
    const char *name;
    for (int64_t i = 0; (name = open_dim(m, i, text)); i++)
        qn_str_printf(&names, "%s%s", i ? ", " : "", name);
    QnStatus st = qn_fail(
        QN_EUSAGE, "--dim: no open dim of the model is called '%.*s'; %s%s", (int)QN_MIN(n, 100),
        setting, names.n ? "there are: " : "all of its dims are numbers", qn_str_text(&names));
    qn_str_fini(&names);
    return st;
}

static int find(const QnCliDims *dims, const char *name)
{
    for (int i = 0; i < dims->n; i++)
        if (!strcmp(dims->name[i], name))
            return i;
    return -1;
}

static QnStatus take(const QnOnnxModel *m, const char *setting, QnCliDims *out)
{
    /* The last one: names are expressions at times ("past+n=total"). */
    const char *equals = strrchr(setting, '='), *name = NULL;
    size_t n = (size_t)(equals - setting);
    char *end;
    for (int64_t i = 0; out->n < QN_CLI_DIMS_MOST && (name = open_dim(m, i, out->text[out->n]));
         i++)
        if (strlen(name) == n && !strncmp(name, setting, n))
            break;
    if (!name)
        return unknown_dim(m, setting, n);
    errno = 0;
    long long length = strtoll(equals + 1, &end, 10);
    if (end == equals + 1 || *end || errno || length < 1)
        return qn_fail(QN_EUSAGE, "--dim %s: expected a whole number of at least 1, found '%s'",
                       name, equals + 1);
    if (find(out, name) >= 0)
        return qn_fail(QN_EUSAGE, "--dim %s is given twice", name);
    out->name[out->n] = name;
    out->length[out->n++] = length;
    return QN_OK;
}

QnStatus qn_cli_dims(const QnArgs *a, int option, const QnOnnxModel *m, QnCliDims *out)
{
    out->n = 0;
    for (int i = 0; i < a->n_many; i++)
        if (a->many_of[i] == option)
            QN_TRY(take(m, a->many[i], out));
    return QN_OK;
}

/* *known false: what it is, only a run can tell. */
static QnStatus set_type(const QnOnnxInfo *info, const QnCliDims *dims, int64_t batch,
                         QnArena *arena, QnType *out, bool *known, const char **assumed)
{
    const QnOnnxType *t = info->type;
    char text[QN_ONNX_DIM_NAME_BYTES];
    *known = t->kind == QN_ONNX_TYPE_TENSOR && t->rank >= 0 && qn_onnx_dtype(t->elem, &out->dtype);
    out->shape.rank = *known ? t->rank : 0;
    for (int d = 0; d < out->shape.rank; d++) {
        const char *name = qn_onnx_dim_name(info, d, text);
        int k = t->dim[d] < 0 ? find(dims, name) : -1;
        int64_t length = d == 0 && batch ? batch : k >= 0 ? dims->length[k] : t->dim[d];
        if (length < 0 && !(*assumed)[0])
            *assumed = qn_arena_strdup(arena, name);
        if (!*assumed)
            return QN_ENOMEM;
        out->shape.dim[d] = length < 0 ? 1 : length;
    }
    return QN_OK;
}

QnStatus qn_cli_dims_types(const QnOnnxModel *m, QnItem *const *in, const QnCliDims *dims,
                           int64_t batch, QnArena *arena, const QnTensor ***given,
                           const char **assumed)
{
    const QnOnnxGraph *g = m->graph;
    const QnTensor **list = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *list);
    QnTensor *t = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *t);
    if (!list || !t)
        return QN_ENOMEM;
    *assumed = "";
    for (int64_t i = 0; i < g->n_inputs; i++) {
        bool known;
        list[i] = in[i] && in[i]->kind == QN_ITEM_TENSOR ? in[i]->known : NULL;
        if (list[i] || qn_onnx_find_init(g, g->input[i].name))
            continue;
        QN_TRY(set_type(&g->input[i], dims, batch, arena, &t[i].type, &known, assumed));
        list[i] = known ? &t[i] : NULL;
    }
    *given = list;
    return QN_OK;
}

QnStatus qn_cli_dims_check(const QnOnnxModel *m, QnItem *const *in, const QnCliDims *dims)
{
    char text[QN_TYPE_TEXT_BYTES], called[QN_ONNX_DIM_NAME_BYTES];
    for (int64_t i = 0; i < m->graph->n_inputs; i++) {
        const QnOnnxInfo *info = &m->graph->input[i];
        if (!in[i] || in[i]->kind != QN_ITEM_TENSOR || info->type->rank < 0)
            continue;
        const QnType *t = &in[i]->known->type;
        for (int d = 0; d < info->type->rank && d < t->shape.rank; d++) {
            const char *name = qn_onnx_dim_name(info, d, called);
            int k = info->type->dim[d] < 0 ? find(dims, name) : -1;
            if (k >= 0 && t->shape.dim[d] != dims->length[k])
                return qn_fail(QN_ESHAPE, "input '%s' is %s: its dim %d is not %s=%lld", info->name,
                               qn_type_text(t, text), d, name, (long long)dims->length[k]);
        }
    }
    return QN_OK;
}

/* A model with all its values as outputs. */
#include "onnx/onnx.h"

#include <string.h>

static int64_t find_output(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_outputs; i++)
        if (!strcmp(g->output[i].name, name))
            return i;
    return -1;
}

QnStatus qn_onnx_expose(const QnOnnxModel *m, QnArena *arena, QnOnnxExposed *out)
{
    static const QnOnnxType unknown = { .kind = QN_ONNX_TYPE_NONE, .rank = -1 };
    const QnOnnxGraph *g = m->graph;
    size_t most = (size_t)g->n_outputs + 1;
    for (int64_t i = 0; i < g->n_nodes; i++)
        most += (size_t)g->node[i].n_out;
    QnOnnxInfo *info = qn_arena_array(arena, most, sizeof *info);
    int64_t *node = qn_arena_array(arena, most, sizeof *node), n = 0;
    bool *is_made = qn_arena_array(arena, (size_t)g->n_outputs + 1, sizeof *is_made);
    if (!info || !node || !is_made)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_out; k++) {
            const char *name = g->node[i].out[k];
            int64_t o = find_output(g, name);
            if (!name[0])
                continue;
            if (o >= 0)
                is_made[o] = true;
            info[n] = (QnOnnxInfo){ name, o >= 0 ? g->output[o].type : &unknown };
            node[n++] = i;
        }
    for (int64_t i = 0; i < g->n_outputs; i++)
        if (!is_made[i]) {
            info[n] = g->output[i];
            node[n++] = -1;
        }
    out->model = *m;
    out->graph = *g;
    out->graph.output = info;
    out->graph.n_outputs = n;
    out->model.graph = &out->graph;
    out->node = node;
    return QN_OK;
}

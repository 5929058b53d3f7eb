/* Files that were made for one batch, imported for another. */
#include "onnx/importer.h"
#include "ops/ops.h"

#include <string.h>

/* Whether v hangs on an input of the graph; not so what is computed from weights alone. */
static bool hangs_on_input(QnGraph *g, const QnValue *v)
{
    QN_GRAPH_EACH(g, n)
    n->mark = 0;
    v->node->mark = 1;
    for (QnNode *n = v->node; n; n = n->prev) {
        if (n->mark && (n->op->traits & QN_INPUT))
            return true;
        for (int i = 0; n->mark && i < n->n_in; i++)
            if (n->in[i])
                n->in[i]->node->mark = 1;
    }
    return false;
}

static QnStatus set_front(QnImporter *m, QnOnnxNode *n, const QnTensor *was)
{
    QnTensor *t = qn_arena_copy(m->arena, was, sizeof *was);
    QnItem *item = t ? qn_importer_item(m, n->in[1]->name, t) : NULL;
    size_t count = (size_t)qn_shape_count(&was->type.shape);
    int64_t *dims = item ? qn_arena_copy(m->arena, was->data, count * sizeof *dims) : NULL;
    if (!dims)
        return QN_ENOMEM;
    dims[0] = m->batch_to;
    t->data = dims;
    n->in[1] = item;
    return QN_OK;
}

QnStatus qn_importer_rebatch(QnImporter *m, QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0);
    const QnTensor *to = qn_onnx_has(n, 1) ? n->in[1]->known : NULL;
    if (!x || !to || to->text || to->type.dtype != QN_DTYPE_I64 ||
        qn_shape_count(&to->type.shape) < 1 || *(const int64_t *)to->data != m->batch_from)
        return QN_OK;
    const QnValue *v = n->in[0]->epoch == m->epoch ? n->in[0]->value : NULL;
    bool in_front = x->shape.rank > 0 && x->shape.dim[0] == m->batch_to;
    if (!v || qn_value_is_poison(v) || !in_front || !hangs_on_input(m->graph, v))
        return QN_OK;
    return set_front(m, n, to);
}

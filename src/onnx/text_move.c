/* Operators that only move elements move strings too: each string stands as its number, the node
 * runs as on any integers, and the numbers that come out become strings again. */
#include "onnx/importer.h"

#include <string.h>

/* Bit i: input i holds the elements that are moved; all of these must then be strings. */
static const struct {
    const char *name;
    unsigned data;
} moves[] = {
    { "Compress", 1 },       { "Concat", ~0u },        { "DepthToSpace", 1 },
    { "Expand", 1 },         { "Flatten", 1 },         { "Gather", 1 },
    { "GatherElements", 1 }, { "GatherND", 1 },        { "OneHot", 4 },
    { "Reshape", 1 },        { "ReverseSequence", 1 }, { "Scatter", 5 },
    { "ScatterND", 5 },      { "ScatterElements", 5 }, { "Slice", 1 },
    { "SpaceToDepth", 1 },   { "Split", 1 },           { "Squeeze", 1 },
    { "Tile", 1 },           { "Transpose", 1 },       { "Unsqueeze", 1 },
    { "Where", 6 },
};

static unsigned data_of(const QnOnnxNode *n)
{
    for (size_t i = 0; i < QN_COUNT(moves) && !n->domain[0]; i++)
        if (!strcmp(n->op, moves[i].name))
            return moves[i].data;
    return 0;
}

static const QnTensor *text_at(const QnOnnxNode *n, int i)
{
    const QnTensor *t = n->in[i] && n->in[i]->kind == QN_ITEM_TENSOR ? n->in[i]->known : NULL;
    return t && t->text ? t : NULL;
}

bool qn_text_is_move(const QnOnnxNode *n)
{
    if (data_of(n))
        for (int i = 0; i < n->n_in; i++)
            if (text_at(n, i))
                return true;
    return false;
}

QnStatus qn_text_number(QnOnnxNode *n, QnTextPool *out)
{
    unsigned data = data_of(n);
    int64_t total = 0;
    for (int i = 0; i < n->n_in; i++) {
        bool is_data = i >= 32 || data >> i & 1;
        const QnTensor *t = text_at(n, i);
        if (n->in[i] && !t == is_data)
            return qn_fail(QN_EDTYPE, "input %d, '%s', is %s strings", i, n->in[i]->name,
                           t ? "of" : "not of");
        total += t ? qn_shape_count(&t->type.shape) : 0;
    }
    QnText *pool = qn_arena_array(n->arena, (size_t)total + 1, sizeof *pool);
    if (!pool)
        return QN_ENOMEM;
    *out = (QnTextPool){ pool, 0 };
    for (int i = 0; i < n->n_in; i++) {
        const QnTensor *t = text_at(n, i);
        if (!t)
            continue;
        QnTensor *number = qn_onnx_tensor(n, QN_DTYPE_I64, &t->type.shape);
        QnItem *item = number ? qn_importer_item(n->importer, n->in[i]->name, number) : NULL;
        if (!item)
            return QN_ENOMEM;
        for (int64_t k = 0, count = qn_shape_count(&t->type.shape); k < count; k++) {
            ((int64_t *)number->data)[k] = out->n;
            pool[out->n++] = t->text[k];
        }
        n->in[i] = item;
    }
    return QN_OK;
}

QnStatus qn_text_name(QnOnnxNode *n, const QnTextPool *pool)
{
    for (int i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        QN_TRY(qn_importer_force(n->importer, n->out[i], "a node on strings"));
        const QnTensor *number = n->out[i]->known;
        QnTensor *t = number ? qn_onnx_tensor_text(n, &number->type.shape) : NULL;
        QnItem *item = t ? qn_importer_item(n->importer, n->out[i]->name, t) : NULL;
        if (!item)
            return QN_ENOMEM;
        for (int64_t k = 0, count = qn_shape_count(&t->type.shape); k < count; k++) {
            int64_t at = ((const int64_t *)number->data)[k];
            if (at < 0 || at >= pool->n)
                return qn_fail(QN_EINTERNAL, "output %d has no string of number %lld", i,
                               (long long)at);
            ((QnText *)t->text)[k] = pool->text[at];
        }
        n->out[i] = item;
    }
    return QN_OK;
}

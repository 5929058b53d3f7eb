#include "onnx/ml.h"

#include "onnx/importer.h"
#include "ops/ops.h"

#include <math.h>

QnStatus qn_ml_after(const QnOnnxNode *n, QnMlAfter *out)
{
    static const char *const names[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO" };
    for (int i = 0; i < (int)QN_COUNT(names); i++)
        if (qn_onnx_is(n, "post_transform", names[i], "NONE")) {
            *out = (QnMlAfter)i;
            return QN_OK;
        }
    return qn_onnx_refuse(n, "post_transform other than NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO");
}

QnValue *qn_ml_transform(QnGraph *g, QnValue *scores, QnMlAfter after)
{
    switch (after) {
    case QN_ML_SOFTMAX: return qn_softmax(g, scores, -1);
    case QN_ML_LOGISTIC: return qn_sigmoid(g, scores);
    case QN_ML_SOFTMAX_ZERO: {
        QnValue *none = qn_scalar_like(g, scores, 0), *is_zero = qn_equal(g, scores, none);
        QnValue *low = qn_scalar_like(g, scores, -INFINITY);
        QnValue *all = qn_softmax(g, qn_where(g, is_zero, low, scores), -1);
        return qn_where(g, is_zero, none, all);
    }
    default: return scores;
    }
}

QnStatus qn_ml_labels(const QnOnnxNode *n, const char *ints, const char *strings, QnMlLabels *out)
{
    const QnOnnxAttr *i = qn_onnx_attr(n, ints), *s = qn_onnx_attr(n, strings);
    *out = (QnMlLabels){ 0 };
    if (s && s->kind == QN_ONNX_STRINGS && s->n)
        *out = (QnMlLabels){ .text = s->strings, .n = s->n };
    else if (i && i->kind == QN_ONNX_INTS && i->n)
        *out = (QnMlLabels){ .number = i->ints, .n = i->n };
    else
        return qn_fail(QN_EFORMAT, "neither '%s' nor '%s' gives labels", ints, strings);
    return QN_OK;
}

static QnItem *item_of(QnOnnxNode *n, QnValue *v)
{
    QnItem *item = qn_arena_alloc(n->arena, sizeof *item);
    if (item)
        *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = n->epoch, .name = n->name, .value = v };
    return item;
}

/* The scores are held, so that they are kept where the graph ends here. */
static QnStatus classify_text(QnOnnxNode *n, const QnMlLabels *labels, QnValue *best,
                              QnValue *scores)
{
    QnImporter *m = n->importer;
    QN_TRY(qn_graph_check(n->g));
    QnItem *items[] = { item_of(n, best), item_of(n, scores) };
    if (!items[0] || !items[1])
        return QN_ENOMEM;
    QnHeld held = { items, 2, m->held };
    m->held = &held;
    QnStatus st = qn_importer_force(m, items[0], "labels that are strings");
    m->held = held.outer;
    QN_TRY(st);
    const QnTensor *index = items[0]->known;
    QnTensor *t = qn_onnx_tensor_text(n, &index->type.shape);
    if (!t)
        return QN_ENOMEM;
    QnText *text = (QnText *)(uintptr_t)t->text;
    for (int64_t i = 0; i < qn_shape_count(&index->type.shape); i++)
        text[i] = labels->text[((const int64_t *)index->data)[i]];
    QN_TRY(qn_onnx_out_known(n, 0, t));
    return qn_onnx_out_item(n, 1, items[1]);
}

QnStatus qn_ml_classify(QnOnnxNode *n, const QnMlLabels *labels, QnValue *scores)
{
    QnGraph *g = n->g;
    QnValue *best = qn_cast(g, qn_argmax(g, scores, -1, false), QN_DTYPE_I64);
    if (labels->text && n->out_used[0])
        return classify_text(n, labels, best, scores);
    QN_TRY(qn_onnx_out(n, 1, scores));
    if (labels->text)
        return QN_OK;
    QnValue *all = qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(labels->n), labels->number);
    return qn_onnx_out0(n, qn_gather(g, all, best, 0));
}

/* What is still needed of what has been imported: what scopes, control-flow nodes and nodes under
 * way reach. The rest is freed whenever a new graph begins. */
#include "onnx/importer.h"

typedef struct Live {
    QnImporter *m;
    QnItem **item; /* whose elements only the graph can tell */
    int64_t n, cap;
} Live;

/* Each item once: sequences may stand in many names. */
static QnStatus visit(Live *l, QnItem *item)
{
    QnImporter *m = l->m;
    if (!item || item->round == m->round)
        return QN_OK;
    item->round = m->round;
    if (item->item)
        qn_onnx_blocks_mark(&m->blocks, item->item);
    for (int64_t i = 0; i < item->n; i++)
        QN_TRY(visit(l, item->item[i]));
    if (item->known && item->known->data)
        qn_onnx_blocks_mark(&m->blocks, item->known->data);
    if (item->known && item->known->text)
        qn_onnx_blocks_mark(&m->blocks, item->known->text);
    if (item->kind != QN_ITEM_TENSOR || item->known || !item->value || item->epoch != m->epoch)
        return QN_OK;
    QN_TRY(QN_GROW(l->item, l->cap, l->n));
    l->item[l->n++] = item;
    return QN_OK;
}

static QnStatus visit_scopes(Live *l, const QnScope *s)
{
    for (; s; s = s->outer) {
        for (int64_t i = 0; i < s->cap; i++)
            if (s->entry[i].name && s->entry[i].item)
                QN_TRY(visit(l, s->entry[i].item));
        if (s->caller)
            QN_TRY(visit_scopes(l, s->caller));
    }
    return QN_OK;
}

static QnStatus visit_all(Live *l, QnItem *also)
{
    l->m->round++;
    qn_onnx_blocks_begin(&l->m->blocks);
    QN_TRY(visit(l, also));
    QN_TRY(visit_scopes(l, l->m->scope));
    for (QnHeld *h = l->m->held; h; h = h->outer)
        for (int64_t i = 0; i < h->n; i++)
            QN_TRY(visit(l, h->item[i]));
    return QN_OK;
}

QnStatus qn_importer_cut(QnImporter *m, QnItem *also)
{
    Live l = { .m = m };
    QnStatus st = visit_all(&l, also);
    if (st == QN_OK)
        qn_onnx_blocks_sweep(&m->blocks); /* before the run takes more */
    if (st == QN_OK)
        st = qn_compute(m, l.item, l.n);
    qn_free(l.item);
    return st;
}

#include "plan/order.h"

#include "base/mem.h"

#include <stdlib.h>

typedef struct QnPlace {
    const QnNode *node;
    int64_t at;
} QnPlace;

static int by_address(const void *pa, const void *pb)
{
    const QnPlace *a = pa, *b = pb;
    return (a->node > b->node) - (a->node < b->node);
}

QnStatus qn_order_init(QnOrder *o, const QnGraph *g)
{
    int64_t n = 0;
    *o = (QnOrder){ .place = qn_alloc_array((size_t)g->n_nodes + 1, sizeof *o->place) };
    if (!o->place)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, node)
    {
        if (n < g->n_nodes)
            o->place[n] = (QnPlace){ node, n };
        n++;
    }
    o->n = QN_MIN(n, g->n_nodes);
    qsort(o->place, (size_t)o->n, sizeof *o->place, by_address);
    return QN_OK;
}

void qn_order_fini(QnOrder *o)
{
    qn_free(o->place);
    *o = (QnOrder){ 0 };
}

/* Steps by their places; nodes that came later stand at the end. */
typedef struct Step {
    int64_t at, step;
} Step;

static int by_place(const void *pa, const void *pb)
{
    const Step *a = pa, *b = pb;
    int64_t by = a->at != b->at ? a->at - b->at : a->step - b->step;
    return (by > 0) - (by < 0);
}

QnStatus qn_order_steps(const QnOrder *o, const QnPlan *p, int64_t **steps)
{
    int64_t n = qn_plan_n_steps(p);
    Step *all = qn_alloc_array((size_t)n + 1, sizeof *all);
    int64_t *out = qn_alloc_array((size_t)n + 1, sizeof *out);
    if (!all || !out) {
        qn_free(all);
        qn_free(out);
        return QN_ENOMEM;
    }
    for (int64_t i = 0; i < n; i++) {
        QnPlace key = { .node = qn_plan_step(p, i).node };
        const QnPlace *found = bsearch(&key, o->place, (size_t)o->n, sizeof key, by_address);
        all[i] = (Step){ found ? found->at : o->n, i };
    }
    qsort(all, (size_t)n, sizeof *all, by_place);
    for (int64_t i = 0; i < n; i++)
        out[i] = all[i].step;
    qn_free(all);
    *steps = out;
    return QN_OK;
}

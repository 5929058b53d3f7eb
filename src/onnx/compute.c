/* Runs pieces of the graph while a model is imported. */
#include "onnx/importer.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include <stdio.h>
#include <string.h>

/* The device's result of an output as a tensor of the arena. */
static QnStatus read_output(QnImporter *m, const QnPlan *p, const char *name, QnItem *item)
{
    QnType type;
    QnTensor *t = qn_arena_alloc(m->arena, sizeof *t);
    if (!t)
        return QN_ENOMEM;
    if (!qn_plan_output(p, name, &type))
        return qn_fail(QN_EINTERNAL, "output '%s' is missing", name);
    type.layout = QN_LAYOUT_PLAIN;
    int64_t bytes = qn_type_bytes(&type);
    void *data = qn_onnx_blocks_take(&m->blocks, (size_t)QN_MAX(bytes, 1));
    if (!data)
        return QN_ENOMEM;
    if (bytes > 0)
        QN_TRY(qn_plan_read(p, name, data, (size_t)bytes));
    t->type = type;
    t->data = data;
    item->known = t;
    return QN_OK;
}

static const QnItem *fed_item(const QnImporter *m, const char *name)
{
    for (int64_t i = 0; i < m->n_fed; i++)
        if (m->fed[i] && !strcmp(m->fed[i]->name, name))
            return m->fed[i];
    return NULL;
}

static QnStatus write_inputs(QnImporter *m, const QnGraph *g, QnPlan *p)
{
    QN_GRAPH_EACH(g, n)
    {
        if (!(n->op->traits & QN_INPUT))
            continue;
        const char *name = qn_node_label(n);
        const QnItem *item = fed_item(m, name);
        QnType type;
        if (!item || !item->known)
            return qn_fail(QN_EINTERNAL, "input '%s' was not given", name);
        qn_plan_input(p, name, &type);
        int64_t bytes = qn_type_bytes(&type);
        if (bytes > 0)
            QN_TRY(qn_plan_write(p, name, item->known->data, (size_t)bytes));
    }
    return QN_OK;
}

static QnStatus run_graph(QnImporter *m, QnGraph *g, QnItem **items, int64_t n)
{
    char name[32];
    QnPipelineOptions o = qn_device_passes(m->device);
    o.level = m->plain ? QN_O0 : QN_O2;
    QnPlan *p = NULL;
    QN_TRY(qn_graph_check(g));
    QN_TRY(qn_pipeline_run(g, &o));
    QN_TRY(qn_plan_new(g, m->device, NULL, &(QnPlanOptions){ .choices = m->choices }, &p));
    QnStatus st = write_inputs(m, g, p);
    if (st == QN_OK)
        st = qn_plan_run(p);
    for (int64_t i = 0; st == QN_OK && i < n; i++) {
        snprintf(name, sizeof name, "%lld", (long long)i);
        st = read_output(m, p, name, items[i]);
    }
    qn_plan_free(p);
    return st;
}

QnStatus qn_compute(QnImporter *m, QnItem **items, int64_t n)
{
    char name[32];
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%lld", (long long)i);
        QN_TRY(qn_graph_output(m->graph, name, qn_value_resolve(items[i]->value)));
    }
    if (n)
        QN_TRY(run_graph(m, m->graph, items, n));
    QnGraph *next = qn_graph_new();
    if (!next)
        return QN_ENOMEM;
    qn_graph_free(m->graph);
    m->graph = next;
    qn_arena_limit(next->arena, (size_t)m->most_bytes);
    m->epoch++;
    return QN_OK;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Marks what v hangs on; false where that is an input or a state. Without recursion: models are
 * deep. */
static bool mark_needed(QnGraph *g, const QnValue *v)
{
    QN_GRAPH_EACH(g, n)
    n->mark = 0;
    v->node->mark = 1;
    for (QnNode *n = v->node; n; n = n->prev) {
        if (!n->mark)
            continue;
        if (n->op->traits & (QN_INPUT | QN_STATE | QN_RANDOM))
            return false;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i])
                n->in[i]->node->mark = 1;
    }
    return true;
}

static QnStatus copy_needed(QnGraph *from, QnGraph *to, const QnValue *v, QnArena *arena)
{
    QnValue **map = qn_arena_array(arena, (size_t)from->n_values, sizeof(QnValue *));
    if (!map)
        return QN_ENOMEM;
    QN_GRAPH_EACH(from, n)
    {
        QnValue *in[QN_MAX_IN];
        if (!n->mark)
            continue;
        for (int i = 0; i < n->n_in; i++)
            in[i] = n->in[i] ? map[n->in[i]->id] : NULL;
        QnNode *copy = qn_graph_copy_node(to, n, in);
        if (!copy)
            return qn_graph_check(to);
        for (int i = 0; i < n->n_out; i++)
            map[n->out[i].id] = &copy->out[i];
    }
    return qn_graph_output(to, "0", map[v->id]);
}

QnStatus qn_compute_constant(QnImporter *m, QnItem *item, bool *is_constant)
{
    QN_TRY(qn_graph_check(m->graph));
    qn_graph_number(m->graph);
    item->value = qn_value_resolve(item->value); /* a gradient may have lowered its node */
    *is_constant = mark_needed(m->graph, item->value);
    if (!*is_constant)
        return QN_OK;
    QnGraph *g = qn_graph_new();
    QnArena *scratch = qn_arena_new();
    QnStatus st = g && scratch ? copy_needed(m->graph, g, item->value, scratch) : QN_ENOMEM;
    if (st == QN_OK)
        st = run_graph(m, g, &item, 1);
    qn_graph_free(g);
    qn_arena_free(scratch);
    return st;
}

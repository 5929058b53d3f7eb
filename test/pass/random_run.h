/* Runs a random graph, optimised and planned, with poisoned memory; reads what it left. */
#ifndef QN_TEST_PASS_RANDOM_RUN_H
#define QN_TEST_PASS_RANDOM_RUN_H

#include "random_graph.h"
#include "backend/cpu/cpu.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

typedef struct Config {
    QnPipelineOptions o;
    QnDevice *device;
    bool optimise;
} Config;

static inline bool has_kernel(void *ctx, const QnNode *n)
{
    const QnKernel *k;
    return qn_select(ctx, n, NULL, &k) == QN_OK;
}

/* What is compared: outputs of the graph, then the values of assigns. */
static inline QnValue *target(const QnGraph *g, int i, char name[40])
{
    if (i < g->n_outputs) {
        snprintf(name, 40, "%s", g->outputs[i].name);
        return g->outputs[i].value;
    }
    i -= (int)g->n_outputs;
    QN_GRAPH_EACH(g, n)
    {
        if ((n->op->traits & QN_EFFECT) && i-- == 0) {
            snprintf(name, 40, "%s", qn_node_label(n->in[0]->node));
            return n->in[1];
        }
    }
    return NULL;
}

typedef struct Run {
    QnGraph *g;
    QnStore *store;
    QnPlan *plan;
} Run;

static inline void run_free(Run *r)
{
    qn_plan_free(r->plan);
    qn_store_free(r->store);
    qn_graph_free(r->g);
}

static inline QnStatus feed(const Case *c, const Run *r)
{
    QN_GRAPH_EACH(r->g, n)
    {
        if (!(n->op->traits & (QN_INPUT | QN_STATE)))
            continue;
        const Leaf *leaf = case_leaf(c, qn_node_label(n));
        if (!leaf)
            return qn_fail(QN_EINTERNAL, "no leaf %s", qn_node_label(n));
        const QnSlot *slot = qn_store_find(r->store, leaf->name);
        if (n->op->traits & QN_INPUT) {
            qn_dtype_from_f64(leaf->dtype, leaf->values, qn_plan_input(r->plan, leaf->name, NULL),
                              leaf->n);
        } else {
            void *p = qn_alloc_array((size_t)leaf->n + 1, 8);
            qn_dtype_from_f64(leaf->dtype, leaf->values, p, leaf->n);
            QnStatus st = qn_store_write(r->store, slot, p);
            qn_free(p);
            QN_TRY(st);
        }
    }
    return QN_OK;
}

static inline QnStatus run(const Case *c, const Config *k, Run *r)
{
    QnPlanOptions options = { .poison = true };
    r->g = qn_graph_clone(c->g, NULL);
    if (!r->g)
        return QN_ENOMEM;
    QnPipelineOptions o = k->o;
    if (!k->optimise)
        o.level = QN_O0;
    QN_TRY(qn_pipeline_run(r->g, &o));
    r->store = qn_store_new(k->device);
    QN_TRY(qn_store_add(r->store, r->g));
    QN_TRY(qn_store_alloc(r->store));
    QN_TRY(qn_plan_new(r->g, k->device, r->store, &options, &r->plan));
    QN_TRY(feed(c, r));
    return qn_plan_run(r->plan);
}

/* Elements of target i as the run left them; false: the run has no such target any more. */
static inline bool read_target(const Case *c, const Run *r, int i, double *out, int64_t n)
{
    char name[40];
    QnValue *v = target(c->g, i, name);
    if (i < c->g->n_outputs) {
        const void *p = qn_plan_output(r->plan, name, NULL);
        if (p)
            qn_dtype_to_f64(v->type.dtype, p, out, n);
        return p != NULL;
    }
    const QnSlot *slot = qn_store_find(r->store, name);
    void *p = qn_alloc_array((size_t)n + 1, 8);
    bool ok = slot && qn_store_read(r->store, slot, p) == QN_OK;
    if (ok)
        qn_dtype_to_f64(v->type.dtype, p, out, n);
    qn_free(p);
    return ok;
}

#endif

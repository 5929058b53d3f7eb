/* One graph without states on a device against the float64 reference, twice with the same bits:
 * for cases too large to be samples of their operators. */
#ifndef QN_TEST_BACKEND_DEVICE_NODE_H
#define QN_TEST_BACKEND_DEVICE_NODE_H

#include "test.h"

#include "base/rng.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "rt/plan.h"

#include <math.h>

/* Elements from -1 to 1, indices below `most`. */
static inline double node_element(QnRng *rng, QnDtype dtype, double most)
{
    if (dtype == QN_DTYPE_BOOL)
        return qn_rng_uniform(rng) < 0.5;
    return qn_dtype_is_float(dtype) ? 2 * qn_rng_uniform(rng) - 1
                                    : floor(most * qn_rng_uniform(rng));
}

static inline void node_feed(QnGraph *g, QnEval *e, QnPlan *p, double most)
{
    QnRng rng;
    qn_rng_init(&rng, 7, 0);
    QN_GRAPH_EACH(g, n)
    {
        if (!(n->op->traits & QN_INPUT))
            continue;
        const QnType *t = &n->out[0].type;
        int64_t count = qn_shape_count(&t->shape);
        double *x = calloc((size_t)count + 1, sizeof *x);
        void *narrow = calloc((size_t)count + 1, 8);
        assert_non_null(x);
        assert_non_null(narrow);
        for (int64_t i = 0; i < count; i++)
            x[i] = node_element(&rng, t->dtype, most);
        qn_dtype_from_f64(t->dtype, x, narrow, count);
        qn_dtype_to_f64(t->dtype, narrow, x, count);
        assert_ok(qn_eval_set(e, &n->out[0], x));
        assert_ok(qn_plan_write(p, qn_node_label(n), narrow, (size_t)qn_type_bytes(t)));
        free(narrow);
        free(x);
    }
}

static inline void *node_output(QnPlan *p, const QnType *t, const char *name)
{
    void *y = calloc((size_t)qn_shape_count(&t->shape) + 1, 8);
    assert_non_null(y);
    assert_ok(qn_plan_read(p, name, y, (size_t)qn_type_bytes(t)));
    return y;
}

static inline void node_compare(const char *what, const QnType *t, const void *got,
                                const double *want, double tol)
{
    int64_t n = qn_shape_count(&t->shape);
    double *x = calloc((size_t)n + 1, sizeof *x);
    qn_dtype_to_f64(t->dtype, got, x, n);
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(x[i] - want[i]) <= tol * (1 + fabs(want[i]))))
            fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)i, x[i], want[i]);
    }
    free(x);
}

/* All outputs of g, which is freed; no node runs on the host. Indices are below `most`. */
static inline void check_on_device(QnDevice *d, QnGraph *g, const char *what, double most,
                                   double tol)
{
    QnPlan *p;
    QnEval *e = qn_eval_new(g, false);
    assert_non_null(e);
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, i);
        if (strstr(s.kernel->name, ".host"))
            fail_msg("%s: %s runs on the host", what, s.node->op->name);
    }
    node_feed(g, e, p, most);
    assert_ok(qn_plan_run(p));
    void *first[8];
    assert_true(g->n_outputs <= QN_COUNT(first));
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnValue *v = g->outputs[i].value;
        const double *want;
        first[i] = node_output(p, &v->type, g->outputs[i].name);
        assert_ok(qn_eval_get(e, v, &want));
        node_compare(what, &v->type, first[i], want, tol);
    }
    node_feed(g, e, p, most);
    assert_ok(qn_plan_run(p));
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnType *t = &g->outputs[i].value->type;
        void *again = node_output(p, t, g->outputs[i].name);
        assert_memory_equal(again, first[i], (size_t)qn_type_bytes(t));
        free(again);
        free(first[i]);
    }
    qn_plan_free(p);
    qn_eval_free(e);
    qn_graph_free(g);
}

#endif

/* Compiled plans against the float64 evaluator. */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "rt/plan.h"

#include <math.h>
#include <string.h>

static QnDevice *device;

static int setup(void **state)
{
    (void)state;
    device = NULL;
    return qn_device_open(&qn_backend_cpu, NULL, &device) != QN_OK;
}

static int teardown(void **state)
{
    (void)state;
    int leaked = device->now_bytes != 0;
    qn_device_close(device);
    return leaked;
}

/* w <- w - 0.1 * d/dw sum(silu(x * w + b)); loss = that sum */
static QnGraph *training_graph(void)
{
    QnGraph *g = qn_graph_new();
    QnStateAttr w = { .name = "w", .dims = { 1, { 300 } }, .trainable = true };
    QnStateAttr b = { .name = "b", .dims = { 0 }, .trainable = true };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(70, 300));
    QnValue *p[2] = { qn_state(g, &w), qn_state(g, &b) }, *d[2];
    QnValue *y = qn_silu(g, qn_add(g, qn_mul(g, x, p[0]), p[1]));
    QnValue *loss = qn_sum(g, y, (QnInts){ 0 }, false);
    assert_int_equal(qn_grad(g, loss, p, 2, d), QN_OK);
    for (int i = 0; i < 2; i++) {
        QnValue *step = qn_mul(g, d[i], qn_scalar_like(g, d[i], 0.1));
        qn_assign(g, p[i], qn_sub(g, p[i], step));
    }
    assert_int_equal(qn_graph_output(g, "loss", loss), QN_OK);
    assert_int_equal(qn_graph_verify(g), QN_OK);
    return g;
}

static QnStore *store_of(QnGraph *g)
{
    QnStore *s = qn_store_new(device);
    assert_int_equal(qn_store_add(s, g), QN_OK);
    assert_int_equal(qn_store_alloc(s), QN_OK);
    return s;
}

static void fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

/* The same step by the evaluator: new w and b, and the loss. */
static double eval_step(QnGraph *g, const float *x, double *w, double *b)
{
    QnEval *e = qn_eval_new(g, false);
    double *wide = malloc(70 * 300 * sizeof *wide);
    double next[300];
    qn_dtype_to_f64(QN_DTYPE_F32, x, wide, 70 * 300);
    const double *got;
    QnValue *assigned[2];
    int n = 0;
    QN_GRAPH_EACH(g, node)
    {
        if (node->op == &qn_op_input)
            assert_int_equal(qn_eval_set(e, &node->out[0], wide), QN_OK);
        if (node->op == &qn_op_state)
            assert_int_equal(
                qn_eval_set(e, &node->out[0], !strcmp(qn_node_label(node), "w") ? w : b), QN_OK);
        if (node->op == &qn_op_assign)
            assigned[n++] = &node->out[0];
    }
    assert_int_equal(qn_eval_get(e, qn_graph_output_find(g, "loss"), &got), QN_OK);
    double loss = got[0];
    assert_int_equal(qn_eval_get(e, assigned[0], &got), QN_OK);
    memcpy(next, got, sizeof next);
    assert_int_equal(qn_eval_get(e, assigned[1], &got), QN_OK);
    *b = got[0];
    memcpy(w, next, sizeof next);
    qn_eval_free(e);
    free(wide);
    return loss;
}

static void test_steps_equal_evaluator(void **state)
{
    (void)state;
    QnGraph *g = training_graph();
    QnStore *s = store_of(g);
    QnPlan *p;
    assert_int_equal(qn_plan_new(g, device, s, &(QnPlanOptions){ .poison = true }, &p), QN_OK);
    double w[300] = { 0 }, b = 0;
    float x[70 * 300], got[300];
    for (uint32_t i = 0; i < 3; i++) {
        fill(x, QN_COUNT(x), i);
        memcpy(qn_plan_input(p, "x", NULL), x, sizeof x);
        assert_int_equal(qn_plan_run(p), QN_OK);
        double loss = eval_step(g, x, w, &b);
        assert_true(fabs(*(const float *)qn_plan_output(p, "loss", NULL) - loss) <
                    1e-4 * (1 + fabs(loss)));
        assert_int_equal(qn_store_read(s, qn_store_find(s, "w"), got), QN_OK);
        for (int k = 0; k < 300; k++)
            assert_true(fabs(got[k] - w[k]) < 1e-4 * (1 + fabs(w[k])));
    }
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
}

static void test_planned_is_allocated_and_runs_allocate_nothing(void **state)
{
    (void)state;
    QnGraph *g = training_graph();
    QnStore *s = store_of(g);
    QnPlan *p;
    assert_int_equal(qn_plan_new(g, device, s, NULL, &p), QN_OK);
    QnPlanMemory m = qn_plan_memory(p);
    assert_int_equal(m.planned_peak_bytes, (int64_t)device->peak_bytes);
    assert_true(m.arena_bytes >= m.bound_bytes && m.bound_bytes > 0);
    memset(qn_plan_input(p, "x", NULL), 0, 70 * 300 * sizeof(float));
    uint64_t before = qn_alloc_count();
    for (int i = 0; i < 10; i++)
        assert_int_equal(qn_plan_run(p), QN_OK);
    assert_int_equal(qn_alloc_count() - before, 0);
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
}

/* Both updates happen in the states' own memory: no copies, and the subtraction is in place. */
static void test_updates_are_placed(void **state)
{
    (void)state;
    QnGraph *g = training_graph();
    QnStore *s = store_of(g);
    QnPlan *p;
    int placed = 0;
    assert_int_equal(qn_plan_new(g, device, s, NULL, &p), QN_OK);
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++)
        placed += qn_plan_step(p, i).out_offset < 0 && qn_plan_step(p, i).inplace;
    assert_int_equal(placed, 2);
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
}

/* A later reader of the old content forces a copy after the last step. */
static void test_late_reader_sees_old_state(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new();
    QnStateAttr attr = { .name = "s", .dims = { 1, { 4 } } };
    QnValue *s = qn_state(g, &attr), *one = qn_scalar_like(g, s, 1);
    QnValue *next = qn_add(g, s, one);
    qn_assign(g, s, next);
    qn_graph_output(g, "old", qn_mul(g, s, qn_scalar_like(g, s, 10)));
    qn_graph_output(g, "new", qn_mul(g, next, qn_scalar_like(g, s, 10)));
    QnStore *store = store_of(g);
    QnPlan *p;
    assert_int_equal(qn_plan_new(g, device, store, &(QnPlanOptions){ .poison = true }, &p), QN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(qn_plan_run(p), QN_OK);
        assert_true(((const float *)qn_plan_output(p, "old", NULL))[3] == 10.0f * (float)i);
        assert_true(((const float *)qn_plan_output(p, "new", NULL))[3] == 10.0f * (float)(i + 1));
    }
    qn_plan_free(p);
    qn_store_free(store);
    qn_graph_free(g);
}

/* An output that is a state itself is its content before the assigns. */
static void test_output_is_old_state(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new();
    QnValue *s = qn_state(g, &(QnStateAttr){ .name = "s", .dims = { 1, { 4 } } });
    qn_assign(g, s, qn_add(g, s, qn_scalar_like(g, s, 1)));
    qn_graph_output(g, "old", qn_reshape(g, s, &QN_SHAPE(2, 2)));
    QnStore *store = store_of(g);
    QnPlan *p;
    assert_int_equal(qn_plan_new(g, device, store, &(QnPlanOptions){ .poison = true }, &p), QN_OK);
    for (int i = 0; i < 3; i++) {
        float now[4];
        assert_int_equal(qn_plan_run(p), QN_OK);
        assert_true(((const float *)qn_plan_output(p, "old", NULL))[3] == (float)i);
        assert_int_equal(qn_store_read(store, qn_store_find(store, "s"), now), QN_OK);
        assert_true(now[3] == (float)(i + 1));
    }
    qn_plan_free(p);
    qn_store_free(store);
    qn_graph_free(g);
}

/* Two states change places: both old contents are read before either is written. */
static void test_states_swap(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new();
    QnValue *a = qn_state(g, &(QnStateAttr){ .name = "a", .dims = { 1, { 4 } } });
    QnValue *b = qn_state(g, &(QnStateAttr){ .name = "b", .dims = { 1, { 4 } } });
    qn_assign(g, a, b);
    qn_assign(g, b, a);
    QnStore *store = store_of(g);
    const float one[4] = { 1, 1, 1, 1 };
    float now[4];
    QnPlan *p;
    assert_int_equal(qn_store_write(store, qn_store_find(store, "a"), one), QN_OK);
    assert_int_equal(qn_plan_new(g, device, store, &(QnPlanOptions){ .poison = true }, &p), QN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(qn_plan_run(p), QN_OK);
        assert_int_equal(qn_store_read(store, qn_store_find(store, "a"), now), QN_OK);
        assert_true(now[2] == (float)(i % 2));
        assert_int_equal(qn_store_read(store, qn_store_find(store, "b"), now), QN_OK);
        assert_true(now[2] == (float)(1 - i % 2));
    }
    qn_plan_free(p);
    qn_store_free(store);
    qn_graph_free(g);
}

static void test_null_device_plans_huge_graphs(void **state)
{
    (void)state;
    QnDevice *none;
    QnPlan *p;
    assert_int_equal(qn_device_open(&qn_backend_null, NULL, &none), QN_OK);
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(1 << 20, 1 << 20));
    qn_graph_output(g, "y", qn_silu(g, qn_mul(g, x, x)));
    assert_int_equal(qn_plan_new(g, none, NULL, NULL, &p), QN_OK);
    assert_true(qn_plan_memory(p).planned_peak_bytes >= (int64_t)1 << 42);
    assert_int_equal(qn_plan_run(p), QN_OK);
    qn_plan_free(p);
    qn_graph_free(g);
    qn_device_close(none);
}

static void test_first_not_finite_node_is_named(void **state)
{
    (void)state;
    QnPlan *p;
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(8));
    QnValue *bad = qn_log(g, x);
    qn_node_name(g, bad->node, "layer3.log");
    qn_graph_output(g, "y", qn_mul(g, bad, bad));
    assert_ok(qn_plan_new(g, device, NULL, &(QnPlanOptions){ .check_finite = true }, &p));
    float *in = qn_plan_input(p, "x", NULL);
    for (int i = 0; i < 8; i++)
        in[i] = 1;
    assert_ok(qn_plan_run(p));
    for (int i = 0; i < 8; i++) /* a run does not keep its inputs */
        in[i] = i == 5 ? 0 : 1;
    assert_fails(qn_plan_run(p), QN_ENUMERIC, "layer3.log");
    assert_contains(qn_error_last()->text, "element 5");
    qn_plan_free(p);
    qn_graph_free(g);
}

/* The layout pass: what it turns, and that results stay what they were. */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/layout.h"
#include "rt/plan.h"

#include <math.h>
#include "ir/reads.h"

static QnDevice *device;

static int setup(void **state)
{
    device = NULL;
    return qn_device_open(&qn_backend_cpu, NULL, &device) != QN_OK;
}

static int teardown(void **state)
{
    qn_device_close(device);
    return 0;
}

static bool is_tuned(void *ctx, const QnNode *n)
{
    const QnKernel *k;
    return qn_select(ctx, n, NULL, &k) == QN_OK && k->rank > 0;
}

static QnValue *weight(QnGraph *g, const char *name, const QnShape *s)
{
    QnStateAttr a = { .name = name, .dims = { s->rank, { 0 } }, .trainable = true };
    memcpy(a.dims.d, s->dim, sizeof a.dims.d);
    return qn_state(g, &a);
}

/* Two convolutions with batch norm, relu and pool; outputs: the scores, the images before them, and
 * every gradient. */
static QnGraph *network(void)
{
    QnGraph *g = qn_graph_new();
    QnConvAttr a = { .pads = { 4, { 1, 1, 1, 1 } } };
    QnConvAttr b = { .strides = { 2, { 2, 2 } }, .pads = { 4, { 1, 1, 1, 1 } } };
    QnPoolAttr pool = { .kernel = { 2, { 2, 2 } } };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4, 3, 12, 12)), *d[5];
    QnValue *w[5] = { weight(g, "w0", &QN_SHAPE(20, 3, 3, 3)), weight(g, "s0", &QN_SHAPE(20)),
                      weight(g, "b0", &QN_SHAPE(20)), weight(g, "w1", &QN_SHAPE(24, 20, 3, 3)),
                      weight(g, "w2", &QN_SHAPE(24 * 9, 5)) };
    QnValue *y = qn_conv(g, x, w[0], NULL, &a);
    y = qn_node_out(g, qn_batch_norm(g, y, w[1], w[2], 1e-5), 0);
    y = qn_max_pool(g, qn_relu(g, y), &pool);
    y = qn_relu(g, qn_conv(g, y, w[3], NULL, &b));
    assert_ok(qn_graph_output(g, "images", y));
    y = qn_matmul(g, qn_flatten(g, y, 1), w[4], NULL, false, false);
    assert_ok(qn_graph_output(g, "y", y));
    assert_ok(qn_grad(g, qn_sum(g, qn_square(g, y), (QnInts){ 0 }, false), w, 5, d));
    for (int i = 0; i < 5; i++)
        assert_ok(qn_graph_output(g, (const char *[]){ "d0", "d1", "d2", "d3", "d4" }[i], d[i]));
    assert_ok(qn_graph_verify(g));
    return g;
}

static void fill(void *data, int64_t bytes)
{
    uint32_t seed = 5;
    for (int64_t i = 0; i < bytes / 4; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)data)[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

static QnPlan *plan_of(QnGraph *g, QnStore **store)
{
    QnPlan *p;
    *store = qn_store_new(device);
    assert_ok(qn_store_add(*store, g));
    assert_ok(qn_store_alloc(*store));
    fill((*store)->base, (*store)->bytes);
    assert_ok(qn_plan_new(g, device, *store, &(QnPlanOptions){ .poison = true }, &p));
    QnType t;
    float *x = qn_plan_input(p, "x", &t);
    assert_int_equal(t.layout, QN_LAYOUT_PLAIN);
    fill(x, qn_type_bytes(&t));
    assert_ok(qn_plan_run(p));
    return p;
}

/* The convolution's bias: its gradient sums the channels-last dy as it lies. */
static void test_bias_gradients_need_no_turn(void **state)
{
    QnGraph *g = qn_graph_new();
    QnConvAttr a = { .groups = 1 };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4, 8, 12, 12)), *d;
    QnValue *b = weight(g, "b", &QN_SHAPE(16));
    QnValue *w0 = weight(g, "w0", &QN_SHAPE(16, 8, 3, 3)),
            *w1 = weight(g, "w1", &QN_SHAPE(1, 16, 1, 1));
    QnValue *y = qn_conv(g, qn_relu(g, qn_conv(g, x, w0, b, &a)), w1, NULL, &a);
    assert_ok(qn_grad(g, qn_sum(g, y, (QnInts){ 0 }, false), &b, 1, &d));
    assert_ok(qn_graph_output(g, "d", d));
    QnLayoutOptions o = { is_tuned, device };
    QnLayoutReport report;
    assert_ok(qn_layout_run(g, &o, &report));
    QN_GRAPH_EACH(g, n)
    {
        if (n->op == &qn_op_sum && n->out[0].type.shape.rank == 1)
            assert_int_equal(n->in[0]->type.layout, QN_LAYOUT_CHANNELS_LAST);
    }
    assert_ok(qn_graph_verify(g));
    qn_graph_free(g);
}

static void test_results_stay(void **state)
{
    QnGraph *g[2] = { network(), network() };
    QnStore *s[2];
    QnPlan *p[2];
    QnLayoutReport report;
    QnLayoutOptions o = { is_tuned, device };
    assert_ok(qn_layout_run(g[1], &o, &report));
    assert_ok(qn_graph_verify(g[1]));
    assert_true(report.n_groups == 1);
    for (int i = 0; i < 2; i++)
        p[i] = plan_of(g[i], &s[i]);
    for (int64_t i = 0; i < g[0]->n_outputs; i++) {
        QnType a, b;
        const char *name = g[0]->outputs[i].name;
        const float *want = qn_plan_output(p[0], name, &a), *got = qn_plan_output(p[1], name, &b);
        float most = 0; /* sums of both signs: errors are measured against the largest element */
        assert_int_equal(b.layout, QN_LAYOUT_PLAIN);
        for (int64_t k = 0; k < qn_shape_count(&a.shape); k++)
            most = fmaxf(most, fabsf(want[k]));
        assert_true(most > 0);
        for (int64_t k = 0; k < qn_shape_count(&a.shape); k++) {
            if (!(fabsf(got[k] - want[k]) <= 2e-5f * most))
                fail_msg("%s at %d: %g, not %g", name, (int)k, (double)got[k], (double)want[k]);
        }
    }
    for (int i = 0; i < 2; i++) {
        qn_plan_free(p[i]);
        qn_store_free(s[i]);
        qn_graph_free(g[i]);
    }
}

/* The input, the flattened images and their gradient are turned; all between stays as it is. */
static void test_only_borders_are_turned(void **state)
{
    QnGraph *g = network();
    QnLayoutReport report;
    assert_ok(qn_layout_run(g, NULL, &report));
    int turned = 0, relayouts = 0;
    QN_GRAPH_EACH(g, n)
    {
        relayouts += n->op == &qn_op_relayout;
        if (n->op == &qn_op_conv || n->op == &qn_op_batch_norm || n->op == &qn_op_max_pool_grad) {
            assert_int_equal(n->out[0].type.layout, QN_LAYOUT_CHANNELS_LAST);
            turned++;
        }
        if (n->op == &qn_op_conv_dw)
            assert_int_equal(n->out[0].type.layout, QN_LAYOUT_PLAIN);
    }
    assert_int_equal(turned, 4);
    assert_int_equal(relayouts, 3);
    assert_int_equal(report.n_relayouts, 3);
    qn_graph_free(g);
}

/* A lone batch norm gains nothing; nor does anything that the device refuses. */
static bool refuses(void *ctx, const QnNode *n)
{
    return false;
}

static void test_leaves_alone_what_does_not_gain(void **state)
{
    QnLayoutReport report;
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4, 3, 12, 12));
    QnValue *c = qn_input(g, "c", QN_DTYPE_F32, &QN_SHAPE(3));
    qn_graph_output(g, "y", qn_relu(g, qn_node_out(g, qn_batch_norm(g, x, c, c, 1e-5), 0)));
    assert_ok(qn_layout_run(g, NULL, &report));
    assert_true(report.n_groups == 0 && report.n_relayouts == 0);
    qn_graph_free(g);
    g = network();
    QnLayoutOptions o = { refuses, NULL };
    assert_ok(qn_layout_run(g, &o, &report));
    assert_true(report.n_groups == 0 && report.n_relayouts == 0);
    qn_graph_free(g);
}

static void test_symbolic_graphs_are_left_alone(void **state)
{
    QnLayoutReport report;
    QnGraph *g = qn_graph_new();
    QnShape s = QN_SHAPE(1, 3, 8, 8);
    s.dim[0] = qn_dim_symbol(g, "B");
    QnValue *w = qn_input(g, "w", QN_DTYPE_F32, &QN_SHAPE(4, 3, 3, 3));
    qn_graph_output(
        g, "y",
        qn_conv(g, qn_input(g, "x", QN_DTYPE_F32, &s), w, NULL, &(QnConvAttr){ .groups = 1 }));
    assert_ok(qn_layout_run(g, NULL, &report));
    assert_true(report.n_groups == 0);
    qn_graph_free(g);
}

/* Images of one channel or one pixel lie alike in both orders: nothing runs to turn them. */
static void test_turns_that_are_views(void **state)
{
    static const struct {
        QnShape shape;
        bool view;
    } cases[] = { { QN_SHAPE(2, 1, 4, 5), true },
                  { QN_SHAPE(2, 3, 1, 1), true },
                  { QN_SHAPE(2, 3, 1, 5), false },
                  { QN_SHAPE(2, 3, 4, 5), false } };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnGraph *g = qn_graph_new();
        QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &cases[i].shape);
        QnValue *turned = qn_relayout(g, x, QN_LAYOUT_CHANNELS_LAST);
        QnValue *flat = qn_flatten(g, turned, 1);
        assert_int_equal(qn_reads_is_view(turned->node), cases[i].view);
        assert_int_equal(qn_reads_is_view(flat->node), cases[i].view);
        assert_ok(qn_graph_check(g));
        qn_graph_free(g);
    }
}

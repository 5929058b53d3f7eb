/* The passes on training steps of models: the same losses and weights whatever passes run, less
 * memory moved with fusion, and a lower peak with a budget. */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "nn/net.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "rt/plan.h"
#include "train/session.h"

#include <math.h>

static QnDevice *device;

static int group_setup(void **state)
{
    return qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 1 }, &device);
}

static int group_teardown(void **state)
{
    qn_device_close(device);
    return 0;
}

/* loss = mean cross-entropy; each parameter takes a step down its gradient. */
static void add_training(QnGraph *g, QnNet *net, QnValue *scores, QnValue *labels)
{
    QnValue *loss = qn_cross_entropy(g, scores, labels, 0, -100, QN_REDUCTION_MEAN);
    QnValue **wrt = qn_arena_array(g->arena, (size_t)net->n_params * 2, sizeof *wrt);
    QnValue **dx = wrt + net->n_params;
    for (int64_t i = 0; i < net->n_params; i++)
        wrt[i] = net->params[i].state;
    assert_ok(qn_grad(g, loss, wrt, (int)net->n_params, dx));
    for (int64_t i = 0; i < net->n_params; i++) {
        QnValue *rate = qn_scalar_like(g, dx[i], 0.02);
        qn_assign(g, wrt[i], qn_sub(g, wrt[i], qn_mul(g, dx[i], rate)));
    }
    assert_ok(qn_graph_output(g, "loss", loss));
    assert_ok(qn_graph_verify(g));
    qn_net_fini(net);
}

static void build_gpt(QnGraph *g, QnDim batch)
{
    QnNet net;
    QnGptSpec spec = { .vocab = 40, .window = 16, .layers = 2, .heads = 2, .width = 32 };
    QnDim rows = qn_dim_mul(g, batch, 16);
    qn_net_init(&net, g, true);
    QnValue *x = qn_input(g, "x", QN_DTYPE_I64, &QN_SHAPE(batch, 16));
    QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(rows));
    QnValue *scores = qn_nn_gpt2(&net, x, &spec);
    add_training(g, &net, qn_reshape(g, scores, &QN_SHAPE(rows, 40)), labels);
}

static QnGraph *gpt(int64_t batch)
{
    QnGraph *g = qn_graph_new();
    build_gpt(g, batch);
    return g;
}

static QnGraph *resnet(int64_t batch)
{
    QnGraph *g = qn_graph_new();
    QnNet net;
    QnResnetSpec spec = { .depth = 18, .small = true, .width = 4, .outputs = 10 };
    qn_net_init(&net, g, true);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(batch, 3, 16, 16));
    QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(batch));
    add_training(g, &net, qn_nn_resnet(&net, x, &spec), labels);
    return g;
}

static QnPipelineOptions options(QnLevel level, const char *off, QnPipelineReport *report)
{
    return (QnPipelineOptions){ .level = level,
                                .off = off,
                                .verify = true,
                                .keep = qn_device_has_kernel,
                                .keep_ctx = device,
                                .prefers = qn_device_prefers,
                                .tuned = level == QN_O2 ? qn_device_is_tuned : NULL,
                                .tuned_ctx = device,
                                .report = report };
}

static void feed(QnPlan *p)
{
    QnType t;
    float *x = qn_plan_input(p, "x", &t);
    int64_t n = qn_shape_count(&t.shape);
    for (int64_t i = 0; i < n; i++) {
        if (t.dtype == QN_DTYPE_F32)
            x[i] = sinf((float)i * 0.37f);
        else
            ((int64_t *)(void *)x)[i] = i * 7 % 40;
    }
    int64_t *labels = qn_plan_input(p, "labels", &t);
    for (int64_t i = 0; i < t.shape.dim[0]; i++)
        labels[i] = i * 3 % 10;
}

/* Four losses of training under these passes. */
static QnPlanMemory train(QnGraph *g, const QnPipelineOptions *o, double loss[4])
{
    QnStore *s = qn_store_new(device);
    QnPlan *p;
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_store_fill(s, 1));
    assert_ok(qn_pipeline_run(g, o));
    assert_ok(qn_plan_new(g, device, s, &(QnPlanOptions){ .poison = true }, &p));
    for (int i = 0; i < 4; i++) {
        feed(p);
        assert_ok(qn_plan_run(p));
        loss[i] = *(const float *)qn_plan_output(p, "loss", NULL);
    }
    QnPlanMemory m = qn_plan_memory(p);
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
    return m;
}

static void assert_same_losses(const double a[4], const double b[4])
{
    for (int i = 0; i < 4; i++) {
        if (!(fabs(a[i] - b[i]) < 2e-3 * (1 + fabs(a[i]))))
            fail_msg("loss %d: %.7f and %.7f", i, a[i], b[i]);
    }
    assert_true(a[3] < a[0]);
}

static void compare(QnGraph *(*build)(int64_t), int64_t batch, const char *name)
{
    static const char *const off[] = { NULL,
                                       "fuse",
                                       "cse,fold",
                                       "simplify",
                                       "schedule,layout",
                                       "fuse_loss",
                                       "fuse_norm,fuse_norm_grad",
                                       "fuse_norm_relu",
                                       "split_norm" };
    double plain[4], loss[4];
    QnPipelineReport r;
    QnPipelineOptions o = options(QN_O0, NULL, &r);
    QnPlanMemory m = train(build(batch), &o, plain);
    print_message("%s: %lld nodes, bound %lld\n", name, (long long)r.nodes_after,
                  (long long)m.bound_bytes);
    for (int i = 0; i < QN_COUNT(off); i++) {
        o = options(QN_O2, off[i], &r);
        m = train(build(batch), &o, loss);
        assert_same_losses(plain, loss);
        print_message("  without %s: %lld nodes, %lld groups save %.0f bytes, bound %lld\n",
                      off[i] ? off[i] : "nothing", (long long)r.nodes_after,
                      (long long)r.fused_groups, r.fused_bytes_saved, (long long)m.bound_bytes);
        assert_true(off[i] || (r.fused_groups > 5 && r.fused_bytes_saved > 0));
        assert_true(r.nodes_after < r.nodes_before);
    }
}

static void test_gpt(void **state)
{
    compare(gpt, 4, "gpt");
}

static void test_resnet(void **state)
{
    compare(resnet, 4, "resnet");
}

/* A budget makes the step compute cheap values twice; results stay. */
static void check_budget(QnGraph *(*build)(int64_t), int64_t batch, double most)
{
    double plain[4], loss[4];
    QnPipelineReport before, after;
    QnPipelineOptions o = options(QN_O2, NULL, &before);
    train(build(batch), &o, plain);
    o.report = &after;
    o.memory_budget_bytes = 1;
    QnPlanMemory m = train(build(batch), &o, loss);
    print_message("peak %lld, %lld before scheduling; recomputing %lld nodes %lld; bound %lld\n",
                  (long long)before.peak_bytes_after, (long long)after.peak_bytes_before,
                  (long long)after.recomputed_nodes, (long long)after.peak_bytes_after,
                  (long long)m.bound_bytes);
    assert_same_losses(plain, loss);
    assert_true((double)after.peak_bytes_after <= most * (double)before.peak_bytes_after);
}

static void test_budget_lowers_the_peak(void **state)
{
    check_budget(gpt, 8, 0.9);
    check_budget(resnet, 4, 1);
}

/* Without a budget, what costs little is recomputed: in a ResNet-50 what the maps behind norms
 * make. */
static void test_a_small_share_lowers_the_peak(void **state)
{
    QnPipelineReport kept, shared;
    QnPipelineOptions o = qn_device_passes(device);
    QnResnetSpec spec = { .depth = 50, .outputs = 1000 };
    for (int i = 0; i < 2; i++) {
        QnGraph *g = qn_graph_new();
        QnNet net;
        qn_net_init(&net, g, true);
        QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(16, 3, 224, 224));
        QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(16));
        add_training(g, &net, qn_nn_resnet(&net, x, &spec), labels);
        o.report = i ? &shared : &kept;
        o.off = i ? NULL : "recompute";
        assert_ok(qn_pipeline_run(g, &o));
        qn_net_fini(&net);
        qn_graph_free(g);
    }
    print_message("peak %lld, recomputing %lld nodes %lld\n", (long long)kept.peak_bytes_after,
                  (long long)shared.recomputed_nodes, (long long)shared.peak_bytes_after);
    assert_true(kept.recomputed_nodes == 0 && shared.recomputed_nodes > 20);
    assert_true((double)shared.peak_bytes_after < 0.8 * (double)kept.peak_bytes_after);
}

/* The passes work on a symbolic batch as well; the numbers are set afterwards. */
static void test_symbolic_batch(void **state)
{
    double plain[4], loss[4];
    QnPipelineOptions o = options(QN_O0, NULL, NULL);
    train(gpt(4), &o, plain);
    QnGraph *g = qn_graph_new(), *bound = NULL;
    build_gpt(g, qn_dim_symbol(g, "B"));
    QnPipelineReport r;
    QnPipelineOptions symbolic = { .level = QN_O2, .verify = true, .report = &r };
    symbolic.memory_budget_bytes = 1;
    assert_ok(qn_pipeline_run(g, &symbolic));
    assert_true(r.fused_groups > 5);
    assert_ok(qn_graph_bind(g, (const char *[]){ "B" }, (int64_t[]){ 4 }, 1, &bound));
    assert_ok(qn_graph_verify(bound));
    qn_graph_free(g);
    train(bound, &o, loss);
    assert_same_losses(plain, loss);
}

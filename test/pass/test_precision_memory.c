/* A training step in 16 bits needs half the memory for activations: counted from the graph as the
 * planner counts it, for a convolutional net and for a transformer. Gradients of parameters and
 * 16-bit copies of weights stand beside the activations, so both nets have few parameters. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "nn/models.h"
#include "nn/optim.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/live.h"
#include "pass/pipeline.h"
#include "pass/precision.h"
#include "rt/plan.h"

static QnDevice *device;

static int setup(void **state)
{
    (void)state;
    return qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 1 }, &device);
}

static int teardown(void **state)
{
    (void)state;
    int leaked = device->now_bytes != 0;
    qn_device_close(device);
    return leaked;
}

static QnValue *convolutional(QnNet *net)
{
    QnValue *x = qn_input(net->g, "x", QN_DTYPE_F32, &QN_SHAPE(32, 3, 32, 32));
    QnResnetSpec spec = { .depth = 18, .small = true, .width = 8, .outputs = 10 };
    return qn_nn_resnet(net, x, &spec);
}

static QnValue *transformer(QnNet *net)
{
    QnValue *x = qn_input(net->g, "x", QN_DTYPE_I64, &QN_SHAPE(32, 64));
    QnGptSpec spec = { .vocab = 65, .window = 64, .layers = 4, .heads = 4, .width = 64 };
    return qn_reshape(net->g, qn_nn_gpt2(net, x, &spec), &QN_SHAPE((QnDim)32 * 64, 65));
}

/* As the demo's: pools and their gradients hold the peak. */
static QnValue *pooled(QnNet *net)
{
    QnValue *x = qn_input(net->g, "x", QN_DTYPE_F32, &QN_SHAPE(32, 1, 28, 28));
    for (int i = 0; i < 2; i++) {
        QnConvSpec conv = { .out = 16 << i, .kernel = 3, .pad = 1 };
        char name[16];
        snprintf(name, sizeof name, "conv_%d", i);
        x = qn_nn_conv(net, name, x, &conv);
        snprintf(name, sizeof name, "norm_%d", i);
        x = qn_relu(net->g, qn_nn_batch_norm(net, name, x));
        x = qn_max_pool(net->g, x, &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } });
    }
    return qn_nn_linear(net, "out", qn_reshape(net->g, x, &QN_SHAPE(32, 1568)), 10, true);
}

/* The scores of many words are most of what there is. */
static QnValue *wordy(QnNet *net)
{
    QnValue *x = qn_input(net->g, "x", QN_DTYPE_F32, &QN_SHAPE(1024, 16));
    return qn_nn_linear(net, "words", x, 2000, false);
}

typedef struct Need {
    int64_t live_bytes; /* of values, as passes count them */
    int64_t conv_bytes; /* what a convolution's kernel takes beside its operands, at most */
    QnPlanMemory memory;
} Need;

static int64_t conv_workspace(const QnPlan *p)
{
    size_t most = 0;
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, i);
        const QnOp *op = s.node->op;
        if (op == &qn_op_conv || op == &qn_op_conv_dx || op == &qn_op_conv_dw)
            most = QN_MAX(most, s.workspace_bytes);
    }
    return (int64_t)most;
}

/* Of one training step, dtype f32, bf16 or f16. */
static Need step_bytes(QnValue *(*model)(QnNet *net), QnDtype dtype)
{
    QnGraph *g = qn_graph_new(), *mixed;
    QnNet net;
    QnValue **map;
    Need need;
    qn_net_init(&net, g, true);
    QnValue *y = model(&net);
    QnValue *labels = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(y->type.shape.dim[0]));
    QnValue *loss = qn_cross_entropy(g, y, labels, 0, -100, QN_REDUCTION_MEAN);
    assert_ok(qn_graph_check(g));
    if (dtype != QN_DTYPE_F32) {
        QnPrecisionOptions o = { .low = dtype, .result = y };
        assert_ok(qn_precision(g, &o, &mixed, &map, NULL));
        for (int64_t i = 0; i < net.n_params; i++) {
            QnParam *param = &net.params[i];
            param->state = map[param->state->id];
            param->name = qn_node_label(param->state->node); /* the old graph held it */
        }
        loss = map[loss->id];
        qn_graph_free(g);
        net.g = g = mixed;
    }
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim o = { .name = "sgd" };
    assert_ok(qn_optim_minimise(&net, &o, loss, lr, step, NULL));
    assert_ok(qn_graph_output(g, "loss", loss));
    QnPipelineOptions passes = qn_device_passes(device);
    assert_ok(qn_pipeline_run(g, &passes));
    assert_ok(qn_live_peak(g, &need.live_bytes, NULL));
    QnStore *store = qn_store_new(device);
    QnPlan *p;
    assert_ok(qn_store_add(store, g));
    assert_ok(qn_store_alloc(store));
    assert_ok(qn_plan_new(g, device, store, NULL, &p));
    need.memory = qn_plan_memory(p);
    need.conv_bytes = conv_workspace(p);
    qn_plan_free(p);
    qn_store_free(store);
    qn_net_fini(&net);
    qn_graph_free(g);
    return need;
}

static bool library_takes_bf16(void)
{
#ifdef QN_HAVE_ONEDNN
    return qn_cpu_isa_is_usable("v4");
#else
    return false;
#endif
}

static void check_half(const char *name, QnValue *(*model)(QnNet *net))
{
    Need full = step_bytes(model, QN_DTYPE_F32);
    for (int i = 0; i < 2; i++) {
        Need half = step_bytes(model, i ? QN_DTYPE_F16 : QN_DTYPE_BF16);
        print_message("%s: live %.2f of %.2f MiB, arena %.2f of %.2f MiB\n", name,
                      (double)half.live_bytes / 0x1p20, (double)full.live_bytes / 0x1p20,
                      (double)half.memory.arena_bytes / 0x1p20,
                      (double)full.memory.arena_bytes / 0x1p20);
        assert_true((double)half.live_bytes < 0.54 * (double)full.live_bytes);
        /* what kernels of the CPU take beside that is theirs, wider copies of a part at a time; but
         * convolutions that the library refuses widen all of their operands at once, so that the
         * arena may be larger by what the greediest of them takes */
        bool has_convs = model == convolutional || model == pooled;
        int64_t wide = has_convs && (i || !library_takes_bf16()) ? half.conv_bytes : 0;
        assert_true((double)half.memory.arena_bytes <
                    0.57 * (double)full.memory.arena_bytes + (double)wide);
    }
}

static void test_convolutional_halves(void **state)
{
    (void)state;
    check_half("resnet", convolutional);
}

static void test_pools_halve(void **state)
{
    (void)state;
    check_half("pools", pooled);
}

static void test_scores_halve(void **state)
{
    (void)state;
    check_half("scores", wordy);
}

static void test_transformer_halves(void **state)
{
    (void)state;
    check_half("gpt", transformer);
}

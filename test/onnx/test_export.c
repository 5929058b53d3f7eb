/* Built-in models as ONNX files: what is exported and read back gives the model's own numbers, for
 * the oldest and the newest opset. labels: onnx timeout: 300 */
#include "model.h"

#include "base/rng.h"
#include "nn/net.h"
#include "onnx/check.h"
#include "ops/ops.h"
#include "quern/nn.h"
#include "rt/store.h"

typedef QnValue *Build(QnNet *net, QnValue *x);

static QnValue *lenet(QnNet *net, QnValue *x)
{
    return qn_nn_lenet(net, x, 10);
}

static QnValue *vgg(QnNet *net, QnValue *x)
{
    return qn_nn_vgg(net, x,
                     &(QnVggSpec){ .depth = 11, .batch_norm = true, .small = true, .outputs = 10 });
}

static QnValue *resnet(QnNet *net, QnValue *x)
{
    return qn_nn_resnet(net, x, &(QnResnetSpec){ .depth = 18, .width = 8, .outputs = 10 });
}

static QnValue *resnet50(QnNet *net, QnValue *x)
{
    return qn_nn_resnet(net, x,
                        &(QnResnetSpec){ .depth = 50, .small = true, .width = 8, .outputs = 10 });
}

static QnValue *gpt2(QnNet *net, QnValue *x)
{
    return qn_nn_gpt2(net, x,
                      &(QnGptSpec){ .vocab = 40,
                                    .window = 12,
                                    .layers = 2,
                                    .heads = 2,
                                    .width = 16,
                                    .tied = true,
                                    .bias = true });
}

/* Every activation that recipes offer, behind each other. */
static QnValue *activations(QnNet *net, QnValue *x)
{
    static QnValue *(*const all[])(QnGraph *, QnValue *) = {
        qn_relu,    qn_gelu, qn_gelu_tanh, qn_silu,     qn_tanh,
        qn_sigmoid, qn_mish, qn_hardswish, qn_softplus, qn_selu,
    };
    QnValue *y = x;
    for (int i = 0; i < QN_COUNT(all); i++)
        y = qn_add(net->g, all[i](net->g, y), x);
    return qn_softmax(net->g, y, 1);
}

typedef struct Ran {
    QnTensor in, out;
    float x[3 * 3 * 64 * 64], y[3 * 12 * 40];
    int64_t tokens[3 * 12];
} Ran;

static void run_model(QnGraph *g, QnDevice *d, QnStore *store, Ran *r)
{
    QnGraph *copy = qn_graph_clone(g, NULL);
    QnPipelineOptions o = { .level = QN_O2,
                            .keep = qn_device_has_kernel,
                            .keep_ctx = d,
                            .tuned = qn_device_is_tuned,
                            .tuned_ctx = d };
    QnPlan *p;
    assert_ok(qn_pipeline_run(copy, &o));
    assert_ok(qn_plan_new(copy, d, store, NULL, &p));
    assert_ok(qn_plan_write(p, "x", r->in.data, (size_t)qn_type_bytes(&r->in.type)));
    assert_ok(qn_plan_run(p));
    assert_non_null(qn_plan_output(p, "y", &r->out.type));
    assert_true(qn_type_bytes(&r->out.type) <= (int64_t)sizeof r->y);
    assert_ok(qn_plan_read(p, "y", r->y, (size_t)qn_type_bytes(&r->out.type)));
    r->out.type.layout = QN_LAYOUT_PLAIN;
    r->out.data = r->y;
    qn_plan_free(p);
    qn_graph_free(copy);
}

static void check_file(const char *path, QnDevice *d, const Ran *r)
{
    QnOnnxModel *m;
    QnItem in = { .name = "x", .known = &r->in, .epoch = -1 }, *fed[] = { &in }, *got[1] = { 0 };
    QnItem want = { .name = "y", .known = &r->out };
    QnArena *arena = qn_arena_new();
    QnDifference diff = { .is_equal = true };
    assert_ok(qn_onnx_read(path, &m));
    assert_ok(qn_onnx_run(m, d, fed, arena, got, NULL));
    qn_item_compare(got[0], &want, &(QnTolerance){ 1e-5, 1e-5 }, "y", &diff);
    if (!diff.is_equal)
        fail_msg("%s: %s", path, diff.text);
    qn_arena_free(arena);
    qn_onnx_free(m);
}

static int64_t count_ops(const char *path, const char *op)
{
    QnOnnxModel *m;
    int64_t n = 0;
    assert_ok(qn_onnx_read(path, &m));
    for (int64_t i = 0; i < m->graph->n_nodes; i++)
        n += !strcmp(m->graph->node[i].op, op);
    qn_onnx_free(m);
    return n;
}

static void check_model(Build *build, const QnType *type)
{
    static Ran r;
    QnGraph *g = qn_graph_new();
    QnNet *net = qn_net_new(g, false);
    QnDevice *d;
    QnRng rng;
    assert_ok(qn_device_open_named("cpu", NULL, &d));
    assert_ok(qn_graph_output(g, "y", build(net, qn_input(g, "x", type->dtype, &type->shape))));
    QnStore *store = qn_store_new(d);
    assert_ok(qn_store_add(store, g));
    assert_ok(qn_store_alloc(store));
    assert_ok(qn_store_fill(store, 3));
    qn_rng_init(&rng, 5, 0);
    for (size_t i = 0; i < QN_COUNT(r.x); i++)
        r.x[i] = qn_rng_normal(&rng);
    for (size_t i = 0; i < QN_COUNT(r.tokens); i++)
        r.tokens[i] = (int64_t)qn_rng_below(&rng, 40);
    r.in = (QnTensor){ .type = *type };
    r.in.data = type->dtype == QN_DTYPE_I64 ? (const void *)r.tokens : r.x;
    run_model(g, d, store, &r);
    for (int64_t opset = QN_ONNX_OPSET_LEAST; opset <= QN_ONNX_OPSET_NEWEST; opset += 3) {
        QnOnnxExportOptions o = { .opset = opset,
                                  .outside = opset == QN_ONNX_OPSET_NEWEST,
                                  .fold = opset == 20 };
        if (qn_onnx_export(g, store, &o, temp_path("m.onnx")) == QN_EUNSUPPORTED &&
            strstr(qn_error_last()->text, "built without"))
            skip();
        assert_ok(qn_onnx_export(g, store, &o, temp_path("m.onnx")));
        if (build == resnet) /* all of its 20 norms are folded on request */
            assert_int_equal(count_ops(temp_path("m.onnx"), "BatchNormalization"), o.fold ? 0 : 20);
        check_file(temp_path("m.onnx"), d, &r);
    }
    qn_store_free(store);
    qn_net_free(net);
    qn_graph_free(g);
    qn_device_close(d);
}

static void test_lenet(void **state)
{
    check_model(lenet, &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(3, 1, 28, 28) });
}

static void test_vgg(void **state)
{
    check_model(vgg, &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(2, 3, 32, 32) });
}

static void test_resnet(void **state)
{
    check_model(resnet, &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(2, 3, 64, 64) });
    check_model(resnet50, &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(2, 3, 32, 32) });
}

static void test_gpt2(void **state)
{
    check_model(gpt2, &(QnType){ .dtype = QN_DTYPE_I64, .shape = QN_SHAPE(3, 12) });
}

static void test_activations(void **state)
{
    check_model(activations, &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(5, 70) });
}

/* Batches of any size: the first dim keeps its name. */
static void test_symbolic_batch(void **state)
{
    QnGraph *g = qn_graph_new();
    QnNet *net = qn_net_new(g, false);
    QnDevice *d;
    QnOnnxModel *m;
    assert_ok(qn_device_open_named("cpu", NULL, &d));
    QnShape shape = QN_SHAPE(qn_dim_symbol(g, "batch"), 1, 28, 28);
    assert_ok(qn_graph_output(g, "y", lenet(net, qn_input(g, "x", QN_DTYPE_F32, &shape))));
    QnStore *store = qn_store_new(d);
    assert_ok(qn_store_add(store, g));
    assert_ok(qn_store_alloc(store));
    assert_ok(qn_store_fill(store, 3));
    if (qn_onnx_export(g, store, NULL, temp_path("s.onnx")) == QN_EUNSUPPORTED)
        skip();
    assert_ok(qn_onnx_read(temp_path("s.onnx"), &m));
    assert_string_equal(m->graph->input[0].type->dim_name[0], "batch");
    assert_int_equal(m->graph->input[0].type->dim[1], 1);
    assert_string_equal(m->graph->output[0].type->dim_name[0], "batch");
    qn_onnx_free(m);
    qn_store_free(store);
    qn_net_free(net);
    qn_graph_free(g);
    qn_device_close(d);
}

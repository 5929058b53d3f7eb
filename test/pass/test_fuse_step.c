/* fuse_loss, fuse_norm, fuse_norm_grad, fuse_norm_relu and split_norm on whole gradients: of a
 * small GPT, an MLP and a residual net, in f32, bf16 and f16, the joined nodes give what the
 * separate ones give, on any number of threads the same bits; and with little memory those that are
 * computed anew. labels: threads */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "nn/net.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "pass/precision.h"
#include "rt/plan.h"

#include <math.h>

enum { WORDS = 1100, LENGTH = 12, ROWS = 2 * LENGTH, CLASSES = 10, BATCH = 32, FEATURES = 20 };
static const char joining[] = "fuse_loss,fuse_norm,fuse_norm_grad,fuse_norm_relu,split_norm";

typedef struct Net {
    QnValue *(*scores)(QnNet *net); /* (rows, classes), of inputs that feed() knows */
    int64_t rows;
    double smoothing;
    int64_t ignore;
    QnReduction fold;
    bool scaled; /* the loss, by an input */
    QnDtype dtype;
} Net;

static QnValue *gpt_scores(QnNet *net)
{
    QnGptSpec spec = { .vocab = WORDS,
                       .window = LENGTH,
                       .layers = 2,
                       .heads = 2,
                       .width = 40,
                       .bias = true,
                       .dropout = 0.1 };
    qn_net_set_key(net, qn_input(net->g, "key", QN_DTYPE_I64, &QN_SHAPE(2)));
    QnValue *x = qn_input(net->g, "x", QN_DTYPE_I64, &QN_SHAPE(2, LENGTH));
    return qn_reshape(net->g, qn_nn_gpt2(net, x, &spec), &QN_SHAPE(ROWS, WORDS));
}

static QnValue *mlp_scores(QnNet *net)
{
    QnValue *x = qn_input(net->g, "x", QN_DTYPE_F32, &QN_SHAPE(BATCH, FEATURES));
    QnValue *h = qn_relu(net->g, qn_nn_linear(net, "fc1", x, 16, true));
    return qn_nn_linear(net, "fc2", h, CLASSES, true);
}

/* Two norms go into a ReLU, one of them by way of a sum; the others into pools, by way of a ReLU
 * and not. */
static QnValue *residual_scores(QnNet *net)
{
    QnGraph *g = net->g;
    QnPoolAttr halve = { .kernel = { 2, { 2, 2 } } };
    QnPoolAttr same = { .kernel = { 2, { 3, 3 } },
                        .strides = { 2, { 1, 1 } },
                        .pads = { 4, { 1, 1, 1, 1 } } };
    QnConvSpec conv = { .out = 8, .kernel = 3, .pad = 1 };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(BATCH, 3, 8, 8));
    x = qn_nn_batch_norm(net, "norm0", qn_nn_conv(net, "conv0", x, &conv));
    x = qn_max_pool(g, x, &halve);
    x = qn_relu(g, qn_nn_batch_norm(net, "norm3", qn_nn_conv(net, "conv3", x, &conv)));
    x = qn_max_pool(g, x, &same);
    QnValue *y = qn_nn_batch_norm(net, "norm1", qn_nn_conv(net, "conv1", x, &conv));
    y = qn_nn_conv(net, "conv2", qn_relu(g, y), &conv);
    y = qn_relu(g, qn_add(g, qn_nn_batch_norm(net, "norm2", y), x));
    return qn_nn_linear(net, "fc", qn_reshape(g, y, &QN_SHAPE(BATCH, 8 * 16)), CLASSES, true);
}

/* In 16 bits the net's products are, as a session would have it. */
static QnGraph *mixed(QnGraph *g, const Net *n, QnValue **wrt, int n_wrt, QnValue **loss)
{
    QnGraph *to;
    QnValue **map;
    if (n->dtype == QN_DTYPE_F32)
        return g;
    assert_ok(qn_precision(g, &(QnPrecisionOptions){ .low = n->dtype }, &to, &map, NULL));
    for (int i = 0; i < n_wrt; i++)
        wrt[i] = map[wrt[i]->id];
    *loss = map[(*loss)->id];
    qn_graph_free(g);
    return to;
}

/* Outputs: the loss, and the gradients of all parameters. */
static QnGraph *build(const Net *n)
{
    enum { MOST = 64 };
    QnGraph *g = qn_graph_new();
    QnNet net;
    QnValue *wrt[MOST], *dw[MOST];
    qn_net_init(&net, g, true);
    QnValue *scores = n->scores(&net);
    QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(n->rows));
    QnValue *loss = qn_cross_entropy(g, scores, labels, n->smoothing, n->ignore, n->fold);
    int n_wrt = (int)net.n_params;
    assert_in_range(n_wrt, 1, MOST);
    for (int i = 0; i < n_wrt; i++)
        wrt[i] = net.params[i].state;
    qn_net_fini(&net);
    assert_ok(qn_graph_check(g));
    g = mixed(g, n, wrt, n_wrt, &loss);
    assert_ok(qn_graph_output(g, "loss", loss));
    if (n->scaled)
        loss = qn_mul(g, loss, qn_input(g, "scale", QN_DTYPE_F32, &(QnShape){ 0 }));
    assert_ok(qn_grad(g, loss, wrt, n_wrt, dw));
    for (int i = 0; i < n_wrt; i++) {
        char name[16];
        snprintf(name, sizeof name, "dw%d", i);
        assert_ok(qn_graph_output(g, name, dw[i]));
    }
    return g;
}

static void feed(const Net *n, QnPlan *p)
{
    QnType t;
    int64_t *key = qn_plan_input(p, "key", NULL), *labels = qn_plan_input(p, "labels", NULL);
    float *scale = qn_plan_input(p, "scale", NULL);
    void *x = qn_plan_input(p, "x", &t);
    for (int64_t i = 0, count = qn_shape_count(&t.shape); i < count; i++) {
        if (t.dtype == QN_DTYPE_F32)
            ((float *)x)[i] = sinf((float)i * 0.37f);
        else
            ((int64_t *)x)[i] = i * 37 % WORDS;
    }
    if (key)
        key[0] = 3, key[1] = 5;
    if (scale)
        *scale = 64;
    for (int64_t i = 0; i < n->rows; i++)
        labels[i] = i % 5 == 1 ? n->ignore : i * 3 % CLASSES;
}

static int count(const QnGraph *g, const QnOp *op, int n_in)
{
    int found = 0;
    QN_GRAPH_EACH(g, n)
    found += n->op == op && n->n_in >= n_in;
    return found;
}

typedef struct Result {
    float *v; /* the outputs one after the other, the loss first */
    int64_t n;
    int both, add_norms, norm_sums; /* joined nodes of each kind */
    int splits;                     /* norms that are statistics and maps */
    int relus, pools;               /* gradients of norms that take in a ReLU's, a pool's too */
    QnPipelineReport report;
} Result;

static Result run(const Net *n, QnDevice *d, const char *off, int64_t budget)
{
    QnGraph *g = build(n);
    QnStore *s = qn_store_new(d);
    QnPipelineOptions o = qn_device_passes(d);
    QnPlan *p;
    Result r = { 0 };
    o.report = &r.report;
    o.off = off;
    o.verify = true;
    o.memory_budget_bytes = budget;
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_store_fill(s, 1));
    assert_ok(qn_pipeline_run(g, &o));
    r.both = count(g, &qn_op_cross_entropy_both, 3);
    r.add_norms = count(g, &qn_op_add_layer_norm, 3);
    r.norm_sums = count(g, &qn_op_layer_norm_grad, 6);
    r.splits = count(g, &qn_op_batch_norm_stats, 2);
    r.relus = count(g, &qn_op_batch_norm_relu_grad, 6);
    r.pools = count(g, &qn_op_batch_norm_relu_pool_grad, 6);
    assert_int_equal(count(g, &qn_op_batch_norm_relu_pool, 4), r.pools);
    assert_int_equal(count(g, &qn_op_cross_entropy, 0), 1 - r.both);
    assert_int_equal(count(g, &qn_op_cross_entropy_grad, 0), 1 - r.both);
    assert_ok(qn_plan_new(g, d, s, &(QnPlanOptions){ .poison = true }, &p));
    feed(n, p);
    assert_ok(qn_plan_run(p));
    for (int64_t i = 0; i < g->n_outputs; i++)
        r.n += qn_shape_count(&g->outputs[i].value->type.shape);
    float *at = r.v = qn_alloc_array((size_t)r.n, sizeof *r.v);
    for (int64_t i = 0; i < g->n_outputs; i++) {
        int64_t bytes = qn_type_bytes(&g->outputs[i].value->type);
        assert_ok(qn_plan_read(p, g->outputs[i].name, at, (size_t)bytes));
        at += bytes / (int64_t)sizeof *at;
    }
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
    return r;
}

static void check(const Net *n, QnDevice *one, QnDevice *two)
{
    Result apart = run(n, one, joining, 0), joined = run(n, one, NULL, 0);
    Result again = run(n, two, NULL, 0), small = run(n, two, NULL, 1);
    bool gpt = n->scores == gpt_scores, residual = n->scores == residual_scores;
    double tol = n->dtype == QN_DTYPE_F32 ? 2e-6 : n->dtype == QN_DTYPE_F16 ? 4e-3 : 3e-2, size = 0;
    assert_int_equal(apart.both + apart.add_norms + apart.norm_sums + apart.splits, 0);
    assert_int_equal(apart.relus + apart.pools, 0);
    assert_int_equal(joined.splits, residual ? 3 : 0);
    assert_int_equal(joined.pools, residual);
    assert_int_equal(joined.relus, residual);
    assert_int_equal(joined.both, 1);
    assert_int_equal(joined.add_norms, gpt ? 4 : 0); /* the first norm reads a dropout */
    assert_int_equal(joined.norm_sums, gpt ? 4 : 0); /* the last one's dx has nobody beside it */
    assert_int_equal(apart.n, joined.n);
    for (int64_t i = 1; i < apart.n; i++)
        size = fmax(size, fabsf(apart.v[i]));
    assert_true(isfinite(size) && size > 1e-3);
    for (int64_t i = 0; i < apart.n; i++)
        if (!(fabsf(joined.v[i] - apart.v[i]) <= tol * (i ? size : fabsf(apart.v[0]))))
            fail_msg("number %lld of %lld is %.9g, apart %.9g", (long long)i, (long long)apart.n,
                     joined.v[i], apart.v[i]);
    if (n->dtype == QN_DTYPE_F32 && !residual) /* forwards nothing is added in another order */
        assert_memory_equal(joined.v, apart.v, sizeof *joined.v);
    assert_memory_equal(joined.v, again.v, (size_t)joined.n * sizeof *joined.v);
    assert_memory_equal(joined.v, small.v, (size_t)joined.n * sizeof *joined.v);
    assert_true(!residual || small.report.recomputed_nodes > 0);
    qn_free(apart.v);
    qn_free(joined.v);
    qn_free(again.v);
    qn_free(small.v);
}

static void test_joined_is_apart(void **state)
{
    static const Net nets[] = {
        { gpt_scores, ROWS, 0, -100, QN_REDUCTION_MEAN, false, QN_DTYPE_F32 },
        { gpt_scores, ROWS, 0.1, 7, QN_REDUCTION_MEAN, true, QN_DTYPE_F32 },
        { gpt_scores, ROWS, 0, -100, QN_REDUCTION_MEAN, false, QN_DTYPE_BF16 },
        { gpt_scores, ROWS, 0.1, -100, QN_REDUCTION_MEAN, true, QN_DTYPE_F16 },
        { mlp_scores, BATCH, 0, -100, QN_REDUCTION_MEAN, false, QN_DTYPE_F32 },
        { mlp_scores, BATCH, 0.2, -100, QN_REDUCTION_SUM, true, QN_DTYPE_F32 },
        { mlp_scores, BATCH, 0, 3, QN_REDUCTION_MEAN, true, QN_DTYPE_F16 },
        { residual_scores, BATCH, 0, -100, QN_REDUCTION_MEAN, false, QN_DTYPE_F32 },
        { residual_scores, BATCH, 0, -100, QN_REDUCTION_MEAN, true, QN_DTYPE_BF16 },
    };
    QnDevice *device[2];
    for (int i = 0; i < 2; i++) {
        QnDeviceOptions o = { .n_threads = i + 1, .strict = true };
        assert_ok(qn_device_open(&qn_backend_cpu, &o, &device[i]));
    }
    for (int i = 0; i < QN_COUNT(nets); i++)
        check(&nets[i], device[0], device[1]);
    for (int i = 0; i < 2; i++)
        qn_device_close(device[i]);
}

/* Whoever asks for less of a device than its passes may, gets no joined nodes. */
static void test_without_kernels_nothing_is_joined(void **state)
{
    static const Net net = { gpt_scores, ROWS, 0, -100, QN_REDUCTION_MEAN, false, QN_DTYPE_F32 };
    QnGraph *g = build(&net);
    assert_ok(qn_pipeline_run(g, &(QnPipelineOptions){ .level = QN_O2, .verify = true }));
    assert_int_equal(count(g, &qn_op_cross_entropy_both, 0), 0);
    assert_int_equal(count(g, &qn_op_add_layer_norm, 0), 0);
    assert_int_equal(count(g, &qn_op_layer_norm_grad, 6), 0);
    qn_graph_free(g);
}

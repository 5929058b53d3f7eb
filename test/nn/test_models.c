/* Models against the numbers of parameters that their authors publish, their shapes and names. */
#include "test.h"

#include "ir/eval.h"
#include "nn/models.h"
#include "pass/grad.h"

typedef struct Built {
    QnGraph *g;
    QnNet net;
} Built;

static Built start(void)
{
    Built b = { qn_graph_new(), { 0 } };
    qn_net_init(&b.net, b.g, true);
    b.net.key = qn_input(b.g, "key", QN_DTYPE_I64, &QN_SHAPE(2));
    return b;
}

static void finish(Built *b)
{
    qn_net_fini(&b->net);
    qn_graph_free(b->g);
}

static QnValue *image(Built *b, int64_t channels, int64_t size)
{
    QnShape s = QN_SHAPE(qn_dim_symbol(b->g, "B"), channels, size, size);
    return qn_input(b->g, "x", QN_DTYPE_F32, &s);
}

/* The model must be sound, give (B, outputs) and have so many parameters. */
static void check(Built *b, QnValue *y, int64_t outputs, int64_t params)
{
    assert_ok(qn_graph_check(b->g));
    assert_int_equal(y->type.shape.rank, 2);
    assert_int_equal(y->type.shape.dim[0], qn_dim_symbol(b->g, "B"));
    assert_int_equal(y->type.shape.dim[1], outputs);
    assert_int_equal(qn_nn_param_count(&b->net), params);
}

static const QnParam *find(const Built *b, const char *name)
{
    for (int64_t i = 0; i < b->net.n_params; i++) {
        if (!strcmp(b->net.params[i].name, name))
            return &b->net.params[i];
    }
    fail_msg("there is no parameter %s", name);
    return NULL;
}

static void test_lenet(void **state)
{
    Built b = start();
    check(&b, qn_nn_lenet(&b.net, image(&b, 1, 28), 10), 10, 61706);
    assert_true(find(&b, "conv1.weight")->decay);
    assert_false(find(&b, "fc3.bias")->decay);
    finish(&b);
}

static void test_vgg(void **state)
{
    static const struct {
        int depth;
        bool norm;
        int64_t params;
    } want[] = { { 11, false, 132863336 }, { 13, false, 133047848 }, { 16, false, 138357544 },
                 { 19, false, 143667240 }, { 11, true, 132868840 },  { 16, true, 138365992 } };
    for (int i = 0; i < QN_COUNT(want); i++) {
        Built b = start();
        QnVggSpec spec = { want[i].depth, want[i].norm, false, 1000, 0.5 };
        check(&b, qn_nn_vgg(&b.net, image(&b, 3, 224), &spec), 1000, want[i].params);
        find(&b, want[i].norm ? "features.1.weight" : "features.0.weight");
        finish(&b);
    }
}

static void test_resnet(void **state)
{
    static const struct {
        int depth;
        int64_t params;
    } want[] = {
        { 18, 11689512 }, { 34, 21797672 }, { 50, 25557032 }, { 101, 44549160 }, { 152, 60192808 }
    };
    for (int i = 0; i < QN_COUNT(want); i++) {
        Built b = start();
        QnResnetSpec spec = { .depth = want[i].depth, .outputs = 1000 };
        check(&b, qn_nn_resnet(&b.net, image(&b, 3, 224), &spec), 1000, want[i].params);
        assert_false(find(&b, "layer2.0.downsample.1.weight")->decay);
        assert_true(find(&b, "layer4.1.conv2.weight")->decay);
        finish(&b);
    }
}

static void test_resnet_for_small_images(void **state)
{
    Built b = start();
    QnResnetSpec spec = { .depth = 18, .small = true, .width = 16, .outputs = 10 };
    QnValue *y = qn_nn_resnet(&b.net, image(&b, 1, 28), &spec);
    assert_ok(qn_graph_check(b.g));
    assert_int_equal(find(&b, "conv1.weight")->state->type.shape.dim[2], 3);
    QnNode *last = NULL; /* the last stage still sees 4x4 */
    QN_GRAPH_EACH(b.g, n)
    {
        if (n->op == &qn_op_conv)
            last = n;
    }
    assert_int_equal(last->out[0].type.shape.dim[1], 128);
    assert_int_equal(last->out[0].type.shape.dim[3], 4);
    assert_int_equal(y->type.shape.dim[1], 10);
    finish(&b);
}

static void test_unknown_depths_are_refused(void **state)
{
    Built b = start();
    qn_nn_resnet(&b.net, image(&b, 3, 32), &(QnResnetSpec){ .depth = 19, .outputs = 10 });
    assert_fails(qn_graph_check(b.g), QN_EARG, "18, 34, 50");
    finish(&b);
}

static void test_gpt2(void **state)
{
    static const struct {
        const char *name;
        int64_t params;
    } want[] = { { "small", 124439808 },
                 { "medium", 354823168 },
                 { "large", 774030080 },
                 { "xl", 1557611200 } };
    for (int i = 0; i < QN_COUNT(want); i++) {
        Built b = start();
        QnGptSpec spec;
        assert_true(qn_nn_gpt2_size(want[i].name, &spec));
        QnShape s = QN_SHAPE(qn_dim_symbol(b.g, "B"), 1024);
        QnValue *y = qn_nn_gpt2(&b.net, qn_input(b.g, "t", QN_DTYPE_I64, &s), &spec);
        assert_ok(qn_graph_check(b.g));
        assert_int_equal(y->type.shape.dim[2], 50257);
        assert_int_equal(qn_nn_param_count(&b.net), want[i].params);
        finish(&b);
    }
    QnGptSpec spec;
    assert_false(qn_nn_gpt2_size("huge", &spec));
}

/* nanoGPT's count of its character model leaves the positions out: 0.80 million. */
static void test_tiny_gpt(void **state)
{
    Built b = start();
    QnGptSpec spec;
    assert_true(qn_nn_gpt2_size("tiny", &spec));
    spec.tied = true;
    QnShape s = QN_SHAPE(2, 64);
    qn_nn_gpt2(&b.net, qn_input(b.g, "t", QN_DTYPE_I64, &s), &spec);
    assert_ok(qn_graph_check(b.g));
    assert_int_equal(qn_nn_param_count(&b.net) - 64 * 128, 795904);
    finish(&b);
}

static void test_tokens_beyond_the_window_are_refused(void **state)
{
    Built b = start();
    QnGptSpec spec;
    assert_true(qn_nn_gpt2_size("tiny", &spec));
    QnShape s = QN_SHAPE(2, 65);
    qn_nn_gpt2(&b.net, qn_input(b.g, "t", QN_DTYPE_I64, &s), &spec);
    assert_fails(qn_graph_check(b.g), QN_ESHAPE, "at most 64");
    finish(&b);
}

/* A later token must not change earlier scores; every parameter must get a gradient. */
static void test_gpt_is_causal_and_learns_everywhere(void **state)
{
    Built b = start();
    QnGptSpec spec = { .vocab = 5, .window = 4, .layers = 2, .heads = 2, .width = 8, .bias = true };
    QnValue *t = qn_input(b.g, "t", QN_DTYPE_I64, &QN_SHAPE(1, 4));
    QnValue *y = qn_nn_gpt2(&b.net, t, &spec), *d[64], *wrt[64];
    QnEval *e = qn_eval_new(b.g, false);
    assert_ok(qn_graph_check(b.g));
    assert_true(b.net.n_params < 64);
    for (int64_t i = 0; i < b.net.n_params; i++) {
        double x[512];
        wrt[i] = b.net.params[i].state;
        for (int k = 0; k < 512; k++)
            x[k] = ((k * 7919 + (int)i * 104729) % 1009) / 1009.0 - 0.5;
        assert_true(qn_shape_count(&wrt[i]->type.shape) <= 512);
        assert_ok(qn_eval_set(e, wrt[i], x));
    }
    QnValue *loss = qn_sum(b.g, qn_square(b.g, y), (QnInts){ 0 }, false);
    assert_ok(qn_grad(b.g, loss, wrt, (int)b.net.n_params, d));
    double before[20];
    const double *got;
    assert_ok(qn_eval_set(e, t, (double[]){ 1, 2, 3, 4 }));
    assert_ok(qn_eval_get(e, y, &got));
    memcpy(before, got, sizeof before);
    for (int64_t i = 0; i < b.net.n_params; i++) {
        double sum = 0;
        assert_ok(qn_eval_get(e, d[i], &got));
        for (int64_t k = 0; k < qn_shape_count(&d[i]->type.shape); k++)
            sum += got[k] * got[k];
        if (!(sum > 0))
            fail_msg("%s has no gradient", b.net.params[i].name);
    }
    assert_ok(qn_eval_set(e, t, (double[]){ 1, 2, 3, 0 }));
    assert_ok(qn_eval_get(e, y, &got));
    assert_memory_equal(got, before, 15 * sizeof *got);
    assert_memory_not_equal(got + 15, before + 15, 5 * sizeof *got);
    qn_eval_free(e);
    finish(&b);
}

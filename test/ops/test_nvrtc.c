/* Device text as CUDA C: NVRTC compiles it for real architectures, on any machine that has the
 * library; nothing is run. test_nvrtc_archs.c compiles all of it for all of them.
 * labels: nvrtc timeout: 600 */
#include "ops/batch.h"
#include "ops/nvrtc.h"

#include "nn/optim.h"
#include "pass/pipeline.h"
#include "rt/devtext.h"

static Nvrtc nv;

static int group_setup(void **state)
{
    nvrtc_open(&nv);
    return 0;
}

/* Kernels with double arithmetic, which costs up to 64 times as much: a literal without its f, or
 * pow(float, int). CUDA's trigonometric functions have some for huge arguments. */
static bool uses_trigonometry(const QnOp *op)
{
    const char *text = op->device ? op->device : "";
    return strstr(text, "qn_sinf") || strstr(text, "qn_cosf") || strstr(text, "qn_tanf");
}

static int count_f64(const Batch *b, const char *ptx)
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        char entry[80];
        const Item *it = &b->items[i];
        snprintf(entry, sizeof entry, ".entry %s(", it->call.kernel);
        const char *at = strstr(ptx, entry), *end = at ? strstr(at, "\n}") : NULL;
        if (!end)
            fail_msg("%s: no kernel %s in the PTX", it->c.name, it->call.kernel);
        const char *f64 = strstr(at, ".f64");
        if (uses_trigonometry(it->c.op))
            continue;
        if (f64 && f64 < end) {
            print_message("%s computes in f64\n", it->c.name);
            n++;
        }
    }
    return n;
}

static void check(QnDtype f)
{
    Batch b;
    QnStr text = { 0 };
    if (!nv.lib)
        skip_because("no libnvrtc");
    if (!nvrtc_knows(&nv, nvrtc_optimised))
        skip_because("this libnvrtc does not know sm_%d", nvrtc_optimised);
    batch_collect(&b, f);
    qn_str_add(&text, qn_text_dialect);
    qn_str_add(&text, qn_str_text(&b.text));
    assert_ok(text.st);
    char *ptx = NULL;
    assert_true(nvrtc_compile(&nv, qn_str_text(&text), f, nvrtc_optimised, NVRTC_OPTIMISED, &ptx));
    assert_non_null(ptx);
    assert_int_equal(count_f64(&b, ptx), 0);
    print_message("%s: %lld samples compiled\n", qn_dtype_name(f), (long long)b.n);
    free(ptx);
    qn_str_fini(&text);
    batch_free(&b);
}

static void test_f32(void **state)
{
    check(QN_DTYPE_F32);
}

static void test_f16(void **state)
{
    check(QN_DTYPE_F16);
}

static void test_bf16(void **state)
{
    check(QN_DTYPE_BF16);
}

/* ---- fused groups of models: what the pipeline makes of whole training steps ---- */

/* A convolutional net, or a small GPT with `gpt`, with its gradient and update. */
static QnGraph *training_step(bool gpt)
{
    QnGraph *g = qn_graph_new();
    QnNet *net = qn_net_new(g, true);
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(2)), *logits;
    if (gpt) {
        QnGptSpec spec = {
            .vocab = 64, .window = 16, .layers = 1, .heads = 2, .width = 32, .dropout = 0.1
        };
        qn_net_set_key(net, qn_input(g, "key", QN_DTYPE_I64, &QN_SHAPE(2)));
        QnValue *x = qn_input(g, "x", QN_DTYPE_I64, &QN_SHAPE(2, 16));
        logits = qn_mean(g, qn_nn_gpt2(net, x, &spec), (QnInts){ 1, { 1 } }, false);
    } else {
        QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, 3, 32, 32));
        logits = qn_nn_resnet(net, x, &(QnResnetSpec){ .depth = 18, .small = true, .outputs = 10 });
    }
    QnValue *loss = qn_cross_entropy(g, logits, y, 0.1, -100, QN_REDUCTION_MEAN);
    QnOptim o = { .name = "adamw", .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .clip_norm = 1 };
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    assert_ok(qn_optim_minimise(net, &o, loss, lr, step, NULL));
    assert_ok(qn_graph_output(g, "loss", loss));
    qn_net_free(net);
    assert_ok(qn_pipeline_run(g, &(QnPipelineOptions){ .level = QN_O2 }));
    return g;
}

static bool is_seen(char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++) {
        if (!strcmp(list[i], text))
            return true;
    }
    return false;
}

static void check_model(bool gpt)
{
    enum { MOST = 400 };
    char *kernels[MOST];
    int n_kernels = 0, refused = 0;
    QnStr text = { 0 };
    if (!nv.lib)
        skip_because("no libnvrtc");
    QnGraph *g = training_step(gpt);
    qn_str_add(&text, qn_text_dialect);
    add_all_texts(&text);
    QN_GRAPH_EACH(g, n)
    {
        QnDeviceCall call;
        char *kernel = n->op->traits & QN_MAP ? map_kernel(n, &call) : NULL;
        refused += !kernel && n->op->traits & QN_MAP;
        if (!kernel || is_seen(kernels, n_kernels, kernel)) {
            qn_free(kernel);
            continue;
        }
        assert_true(n_kernels < MOST);
        kernels[n_kernels++] = kernel;
        qn_str_printf(&text,
                      "#define qn_map map_%d\n#define qn_map_at map_%d_at\n%s#undef qn_map\n"
                      "#undef qn_map_at\n",
                      n_kernels, n_kernels, kernel);
    }
    assert_ok(text.st);
    assert_int_equal(refused, 0);
    assert_true(n_kernels > 5);
    assert_true(nvrtc_compile(&nv, qn_str_text(&text), QN_DTYPE_F32, 89, NVRTC_FAST, NULL));
    print_message("%d fused kernels of a %s's step\n", n_kernels, gpt ? "GPT" : "ResNet");
    for (int i = 0; i < n_kernels; i++)
        qn_free(kernels[i]);
    qn_str_fini(&text);
    qn_graph_free(g);
}

static void test_groups_of_a_convolutional_net(void **state)
{
    check_model(false);
}

static void test_groups_of_a_transformer(void **state)
{
    check_model(true);
}

/* However many maps stand behind a product, its sums stay in registers: local memory would be read
 * and written in its innermost loop. */
static void test_bodies_leave_sums_in_registers(void **state)
{
    static const QnOp *const maps[] = { &qn_op_gelu_tanh, &qn_op_sigmoid, &qn_op_erf, &qn_op_silu,
                                        &qn_op_tanh };
    enum { N = QN_COUNT(maps) };
    QnBodyInstr instr[N];
    for (int i = 0; i < N; i++)
        instr[i] = (QnBodyInstr){ .op = maps[i], .arg = { i }, .dtype = QN_DTYPE_F32 };
    const QnBody body = {
        .n_in = 1, .n_instr = N, .n_out = 1, .instr = instr, .out = (const int[]){ N - 1 }
    };
    if (!nv.lib || !nvrtc_knows(&nv, 90))
        skip_because("no libnvrtc that knows sm_90");
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(1, 8, 9, 9));
    QnValue *w = qn_input(g, "w", QN_DTYPE_F32, &QN_SHAPE(100, 8, 3, 3));
    QnValue *a = qn_input(g, "a", QN_DTYPE_F32, &QN_SHAPE(100, 100));
    const QnNode *nodes[2];
    nodes[0] = qn_conv(g, x, w, NULL, &(QnConvAttr){ .groups = 1 })->node;
    nodes[0] = qn_conv_map(g, nodes[0], &body, &x, 0)->node;
    nodes[1] = qn_matmul(g, a, a, NULL, false, false)->node;
    nodes[1] = qn_matmul_map(g, nodes[1], &body, &a, 0, false);
    assert_ok(qn_graph_check(g));
    for (int i = 0; i < QN_COUNT(nodes); i++) {
        QnStr text = { 0 };
        QnDeviceCall call;
        QnDtype storage;
        char *ptx = NULL;
        qn_str_add(&text, qn_text_dialect);
        assert_ok(qn_devtext_node(nodes[i], &text, &call, &storage));
        assert_true(nvrtc_compile(&nv, qn_str_text(&text), storage, 90, NVRTC_OPTIMISED, &ptx));
        if (strstr(ptx, ".local"))
            fail_msg("%s keeps sums in local memory", nodes[i]->op->name);
        free(ptx);
        qn_str_fini(&text);
    }
    qn_graph_free(g);
}

/* What differs between architectures in the dialect, on each: conversions, shared memory,
 * barriers, random words. */
static void test_every_architecture(void **state)
{
    static const QnOp *const few[] = { &qn_op_matmul, &qn_op_softmax, &qn_op_dropout, &qn_op_gelu };
    static const QnDtype types[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    QnStr text = { 0 };
    if (!nv.lib)
        skip_because("no libnvrtc");
    qn_str_add(&text, qn_text_dialect);
    for (int i = 0; i < QN_COUNT(few); i++)
        qn_str_add(&text, few[i]->device);
    assert_ok(text.st);
    for (int a = 0; a < QN_COUNT(nvrtc_archs); a++) {
        if (!nvrtc_knows(&nv, nvrtc_archs[a])) {
            print_message("this libnvrtc does not know sm_%d\n", nvrtc_archs[a]);
            continue;
        }
        for (int t = 0; t < QN_COUNT(types); t++)
            assert_true(nvrtc_compile(&nv, qn_str_text(&text), types[t], nvrtc_archs[a],
                                      NVRTC_OPTIMISED, NULL));
    }
    qn_str_fini(&text);
}

/* The log is looked at: what the compiler only warns of fails too. */
static void test_warnings_fail(void **state)
{
    const char *bad = "extern \"C\" __global__ void k(int *x) { int unused; x[0] = 1; }";
    if (!nv.lib)
        skip_because("no libnvrtc");
    assert_false(nvrtc_compile(&nv, bad, QN_DTYPE_F32, 90, NVRTC_OPTIMISED, NULL));
    assert_false(nvrtc_compile(&nv, bad, QN_DTYPE_F32, 90, NVRTC_FAST, NULL));
}

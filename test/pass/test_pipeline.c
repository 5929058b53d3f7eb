/* The table of passes: levels, names left out, texts between passes, and running out of memory at
 * any allocation. */
#include "test.h"
#include "base/fault.h"
#include "base/str.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"
#include "pass/pipeline.h"

static const char text[] = "%0 = input() {name=\"x\", dims=[64,32]} : f32[64,32]\n"
                           "%1 = state() {name=\"w\", dims=[32,32], trainable=true} : f32[32,32]\n"
                           "%2 = input() {name=\"b\", dims=[32]} : f32[32]\n"
                           "%3 = matmul(%0, %1) : f32[64,32]\n"
                           "%4 = add(%3, %2) : f32[64,32]\n"
                           "%5 = tanh(%4) : f32[64,32]\n"
                           "%6 = full() {value=1, dims=[64,32]} : f32[64,32]\n"
                           "%7 = mul(%5, %6) : f32[64,32]\n"
                           "%8 = tile(%7) {repeats=[1,2]} : f32[64,64]\n"
                           "%9 = square(%8) : f32[64,64]\n"
                           "%10 = exp(%9) : f32[64,64]\n"
                           "%11 = add(%9, %10) : f32[64,64]\n"
                           "%12 = transpose(%1) : f32[32,32]\n"
                           "%13 = add(%12, %1) : f32[32,32]\n"
                           "%14 = assign(%1, %13) : f32[32,32]\n"
                           "output \"y\" = %11\n";

static QnGraph *parse(void)
{
    QnGraph *g = NULL;
    assert_ok(qn_graph_parse(text, sizeof text - 1, qn_op_find, &g));
    return g;
}

static int count(QnGraph *g, const char *op)
{
    int n = 0;
    QN_GRAPH_EACH(g, node)
    n += !strcmp(node->op->name, op);
    return n;
}

static void test_levels(void **state)
{
    QnPipelineReport r;
    for (int level = QN_O0; level <= QN_O2; level++) {
        QnGraph *g = parse();
        QnPipelineOptions o = { .level = (QnLevel)level, .verify = true, .report = &r };
        assert_ok(qn_pipeline_run(g, &o));
        assert_int_equal(count(g, "tile"), 0);
        assert_int_equal(count(g, "assign"), 1);
        assert_int_equal(count(g, "fused"), level == QN_O0 ? 0 : 1);
        assert_int_equal(count(g, "mul"), level == QN_O0 ? 1 : 0);
        assert_int_equal(r.fused_maps, level == QN_O0 ? 0 : 3);
        assert_int_equal(r.nodes_after, g->n_nodes);
        qn_graph_free(g);
    }
}

static void test_passes_are_left_out_by_name(void **state)
{
    QnGraph *g = parse();
    QnPipelineOptions o = { .level = QN_O2, .off = "fuse,epilogue" };
    assert_ok(qn_pipeline_run(g, &o));
    assert_int_equal(count(g, "fused"), 0);
    assert_int_equal(count(g, "add"), 3);
    qn_graph_free(g);
    g = parse();
    o.off = "fuse,fuze";
    assert_fails(qn_pipeline_run(g, &o), QN_EARG, "no pass is named 'fuze'");
    qn_graph_free(g);
}

static bool keep_tile(void *ctx, const QnNode *n)
{
    ++*(int *)ctx;
    return !strcmp(n->op->name, "tile");
}

static void test_device_keeps_a_composite(void **state)
{
    QnGraph *g = parse();
    int asked = 0;
    QnPipelineOptions o = { .level = QN_O2, .keep = keep_tile, .keep_ctx = &asked };
    assert_ok(qn_pipeline_run(g, &o));
    assert_true(asked > 0);
    assert_int_equal(count(g, "tile"), 1);
    qn_graph_free(g);
}

static void dump(void *ctx, const char *pass, const char *graph)
{
    QnGraph *g;
    assert_ok(qn_graph_parse(graph, strlen(graph), qn_op_find, &g)); /* each is whole */
    qn_graph_free(g);
    qn_str_printf(ctx, "%s ", pass);
}

static void test_text_after_each_pass(void **state)
{
    QnGraph *g = parse();
    QnStr names = { 0 };
    QnPipelineOptions o = { .level = QN_O1, .dump = dump, .dump_ctx = &names };
    assert_ok(qn_pipeline_run(g, &o));
    assert_contains(names.s, "input lower dce ");
    assert_contains(names.s, " epilogue fold fuse_loss fuse_norm_grad fuse ");
    assert_null(strstr(names.s, "schedule"));
    qn_str_fini(&names);
    qn_graph_free(g);
}

/* Parse, every pass, print; each allocation in turn fails. */
static QnStatus whole_way(QnStr *out)
{
    QnGraph *g = NULL;
    QnPipelineOptions o = { .level = QN_O2, .verify = true, .memory_budget_bytes = 1 };
    QnStatus st = qn_graph_parse(text, sizeof text - 1, qn_op_find, &g);
    if (st == QN_OK)
        st = qn_pipeline_run(g, &o);
    if (st == QN_OK)
        st = qn_graph_print(g, out);
    qn_graph_free(g);
    return st;
}

static void test_no_memory_anywhere(void **state)
{
    QnStr want = { 0 }, got = { 0 };
    assert_ok(whole_way(&want));
    int64_t n = 1;
    for (bool over = false; !over; n++) {
        qn_str_clear(&got);
        qn_fault_arm(n);
        QnStatus st = whole_way(&got);
        over = qn_fault_events() < n;
        qn_fault_arm(0);
        if (over)
            assert_int_equal(st, QN_OK);
        if (st == QN_OK) /* what failed was not needed */
            assert_string_equal(got.s, want.s);
        else
            assert_int_equal(st, QN_ENOMEM);
    }
    print_message("%lld allocations failed\n", (long long)n - 2);
    assert_true(n > 20);
    qn_str_fini(&want);
    qn_str_fini(&got);
}

/* Every kernel of the CPU on the samples of every operator, in each float type and both layouts,
 * and that at each instruction set none of Quern's own has been left out. timeout: 300 */
#include "backend/cpu/matmul.h"
#include "backend/kernel_check.h"
#include "ops/ops_list.h"

static const QnOp *const all_ops[] = {
#define QN_X(name) &qn_op_##name,
    QN_OP_LIST(QN_X)
#undef QN_X
};

static int run_sample(const QnOp *op, const QnSample *s, QnDtype dtype, QnLayout layout)
{
    QnGraph *g = qn_graph_new();
    QnValue *in[QN_SAMPLE_IN];
    uint64_t seed = 3;
    int n_run = 0;
    for (int i = 0; i < s->n_in; i++) {
        QnShape shape = qn_shape_make(s->in[i].rank, s->in[i].dim);
        QnDtype d = s->in[i].dtype == QN_DTYPE_F32 ? dtype : s->in[i].dtype;
        in[i] = check_input(g, d, &shape, layout);
    }
    QnNode *n = qn_emit(g, op, s->attr, in, s->n_in);
    if (n) { /* else the operator refuses this type */
        for (int o = 0; o < n->n_out; o++)
            n->out[o].type.layout = n->out[o].type.shape.rank >= 3 ? layout : QN_LAYOUT_PLAIN;
        Check c = { .n = n, .tol = check_tolerance(dtype) };
        c.tol = QN_MAX(c.tol, dtype == QN_DTYPE_F32 ? op->tol.f32 : op->tol.bf16);
        for (int i = 0; i < s->n_in; i++) {
            const QnSampleIn *x = &s->in[i];
            bool own = x->lo != 0 || x->hi != 0, given = s->lo != 0 || s->hi != 0;
            double lo = own ? x->lo : given ? s->lo : -1, hi = own ? x->hi : given ? s->hi : 1;
            c.in[i] = check_fill(&n->in[i]->type, lo, hi, x->distinct, &seed);
        }
        check_run(&c);
        n_run = c.n_run;
    }
    qn_graph_free(g);
    return n_run;
}

static int run_all(QnDtype dtype, QnLayout layout)
{
    int n_run = 0;
    for (int i = 0; i < QN_COUNT(all_ops); i++) {
        const QnOp *op = all_ops[i];
        bool tuned = false;
        for (int k = 0; k < qn_backend_cpu.n_kernels; k++)
            tuned |= qn_backend_cpu.kernels[k]->op == op;
        for (int k = 0; tuned && k < op->n_samples; k++) {
            if (dtype == QN_DTYPE_F32 || !(op->samples[k].flags & QN_SAMPLE_F32_ONLY))
                n_run += run_sample(op, &op->samples[k], dtype, layout);
        }
    }
    return n_run;
}

static void test_samples_f32(void **state)
{
    assert_true(run_all(QN_DTYPE_F32, QN_LAYOUT_PLAIN) > 0);
}

static void test_samples_bf16(void **state)
{
    assert_true(run_all(QN_DTYPE_BF16, QN_LAYOUT_PLAIN) > 0);
}

static void test_samples_f16(void **state)
{
    assert_true(run_all(QN_DTYPE_F16, QN_LAYOUT_PLAIN) > 0);
}

static void test_samples_channels_last(void **state)
{
    run_all(QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST);
}

/* ---- every own kernel, at every instruction set ---- */

static const QnBody body_relu = {
    .n_in = 1,
    .n_instr = 1,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_relu, .arg = { 0 } } },
    .out = (const int[]){ 0 },
};

/* A convolution of images in channels-last order, mapped, and its gradients. */
static void run_conv(int64_t channels, int64_t side, int64_t filters, int64_t window,
                     int64_t groups)
{
    QnGraph *g = qn_graph_new();
    const QnLayout last = QN_LAYOUT_CHANNELS_LAST;
    const QnShape w = QN_SHAPE(filters, channels / groups, window, window);
    int64_t pad = window / 2;
    QnConvAttr a = { .pads = { 4, { pad, pad, pad, pad } }, .groups = groups };
    QnValue *x = check_input(g, QN_DTYPE_F32, &QN_SHAPE(2, channels, side, side), last);
    QnValue *weights = check_input(g, QN_DTYPE_F32, &w, QN_LAYOUT_PLAIN), *y[4];
    QnValue *dy = check_input(g, QN_DTYPE_F32, &QN_SHAPE(2, filters, side, side), last);
    y[0] = qn_conv(g, x, weights, NULL, &a);
    y[1] = qn_conv_map(g, y[0]->node, &body_relu, NULL, 0);
    y[2] = qn_conv_dx(g, dy, weights, &a, &x->type.shape);
    y[3] = qn_conv_dw(g, dy, x, &a, &w);
    y[0]->type.layout = y[1]->type.layout = y[2]->type.layout = last;
    for (int i = 0; i < 4; i++)
        check_node(g, y[i], -1, 1, 5e-5); /* no kernel need take the mapped one */
    qn_graph_free(g);
}

/* (m,k) times the transpose of (n,k). */
static void run_product(int64_t m, int64_t n, int64_t k)
{
    QnGraph *g = qn_graph_new();
    QnValue *a = qn_input(g, "a", QN_DTYPE_F32, &QN_SHAPE(m, k));
    QnValue *b = qn_input(g, "b", QN_DTYPE_F32, &QN_SHAPE(n, k));
    assert_true(check_node(g, qn_matmul(g, a, b, NULL, false, true), -1, 1, 2e-5) > 0);
    qn_graph_free(g);
}

/* What is made for more channels, rows or columns than any sample has. */
static void test_beyond_samples(void **state)
{
    run_conv(64, 9, 64, 3, 1);  /* by Winograd's algorithm */
    run_conv(40, 5, 36, 1, 1);  /* one pixel at a time: a product */
    run_conv(40, 9, 40, 3, 40); /* a filter a channel */
    run_product(70, 5, 130);    /* few columns */
    run_product(16, 200, 300);  /* tens of rows */
}

/* Not the reference, which is what is compared with, and not a library's. */
static bool is_own(const QnKernel *k)
{
    return k->rank > 0 && !(k->flags & QN_KERNEL_LIBRARY);
}

/* The product of bf16 by the CPU's own instruction alone has no code where there is none: that v4
 * has it, test_matmul_bf16.c checks. */
static bool has_code(const QnKernel *k, const char *isa)
{
    return strcmp(k->name, "cpu.matmul.dots_bf16") != 0 || qn_matmul_bf16_find(isa);
}

/* A kernel that none of the tests above has compared with the reference is named; there is none
 * that is let off where it has code. */
static void test_no_kernel_is_forgotten(void **state)
{
    int forgotten = 0, own = 0;
    assert_true(qn_backend_cpu.n_kernels <= CHECK_MAX_KERNELS);
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        own += is_own(k);
        for (int j = 0; is_own(k) && j < QN_COUNT(check_isas); j++) {
            if (!qn_cpu_isa_is_usable(check_isas[j]) || check_seen[i][j] ||
                !has_code(k, check_isas[j]))
                continue;
            print_error("%s at %s was compared with the reference by no test\n", k->name,
                        check_isas[j]);
            forgotten++;
        }
    }
    assert_true(own > 60);
    assert_int_equal(forgotten, 0);
}

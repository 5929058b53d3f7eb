/* The product of bf16 by pairs of steps: odd and even numbers of them, operands that lie either way
 * and begin anywhere, several blocks. Where the CPU has no instruction for it there is nothing to
 * run. timeout: 300 */
#include "backend/kernel_check.h"
#include "backend/cpu/matmul.h"
#include "base/half.h"

static int runs_anywhere(void)
{
    int n = 0;
#define QN_X(name) n += qn_cpu_isa_is_usable(#name) && qn_matmul_bf16_find(#name);
    QN_ISA_LIST(QN_X)
#undef QN_X
    return n;
}

/* That a kernel refuses says nothing of why: v4 is compiled with the instruction. */
static void test_v4_has_it(void **state)
{
    if (!qn_cpu_isa_is_usable("v4"))
        skip();
    assert_non_null(qn_matmul_bf16_find("v4"));
}

static void matmul(int64_t m, int64_t n, int64_t k, int way, int64_t batch, bool bias)
{
    QnGraph *g = qn_graph_new();
    bool ta = way & 1, tb = way & 2;
    QnShape a = ta ? QN_SHAPE(batch, k, m) : QN_SHAPE(batch, m, k);
    QnShape b = tb ? QN_SHAPE(1, n, k) : QN_SHAPE(1, k, n);
    QnValue *y =
        qn_matmul(g, qn_input(g, "a", QN_DTYPE_BF16, &a), qn_input(g, "b", QN_DTYPE_BF16, &b),
                  bias ? qn_input(g, "bias", QN_DTYPE_BF16, &QN_SHAPE(n)) : NULL, ta, tb);
    uint64_t seed = (uint64_t)(m * n + k);
    assert_ok(qn_graph_check(g));
    /* An element is rounded once, to 8 bits; sums in f32 are off by far less. */
    Check c = { .n = y->node, .tol = 0x1p-8 + 1e-6 * sqrt((double)k) };
    c.only = "cpu.matmul.dots_bf16";
    for (int i = 0; i < y->node->n_in; i++) {
        if (y->node->in[i])
            c.in[i] = check_fill(&y->node->in[i]->type, -1, 1, false, &seed);
    }
    check_run(&c);
    assert_int_equal(c.n_run, runs_anywhere());
    qn_graph_free(g);
}

static void test_edges(void **state)
{
    static const int64_t edge[] = { 1, 2, 12, 13, 31, 33, 65 };
    enum { N = QN_COUNT(edge) };
    for (int i = 0; i < N * N; i++)
        matmul(edge[i / N], edge[i % N], edge[(i / N + 3 * i) % N], i % 4, 1 + i % 3, i % 2);
}

/* Blocks of columns and of k, whose last one may be of one step. */
static void test_several_blocks(void **state)
{
    for (int way = 0; way < 4; way++) {
        matmul(151, 401, 257, way, 1, true);
        matmul(151, 400, 513, way, 1, false);
        matmul(37, 97, 1026, way, 2, true); /* b is packed by each block */
        matmul(100, 97, 1025, way, 3, true);
    }
}

/* b is so large that it is packed past the caches. */
static void test_past_the_caches(void **state)
{
    for (int way = 0; way < 4; way++)
        matmul(97, 611, 1100 + way, way, 1, true);
}

static void test_empty(void **state)
{
    matmul(3, 5, 0, 0, 1, true);
    matmul(3, 5, 0, 2, 1, false);
    matmul(0, 4, 3, 0, 1, false);
}

/* c + a[0] b[0] + a[1] b[1] by the product of one row and column. */
static float sum_of_two(const QnGemmFns *fns, float c, float a0, float b0, float a1, float b1)
{
    uint16_t a[2] = { qn_f32_to_bf16(a0), qn_f32_to_bf16(a1) };
    uint16_t b[2] = { qn_f32_to_bf16(b0), qn_f32_to_bf16(b1) };
    uint16_t bias = qn_f32_to_bf16(c), sum;
    QnGemm g = { .m = 1, .n = 1, .k = 2, .dtype = QN_DTYPE_BF16, .a = a, .b = b, .c = &sum };
    float *scratch = qn_alloc_aligned(QN_GEMM_SCRATCH * sizeof *scratch);
    assert_non_null(scratch);
    g.bias = &bias;
    g.ak = g.bk = g.cm = 1;
    g.am = g.bn = 2;
    fns->block(&g, 0, 1, 0, 1, scratch);
    qn_free_aligned(scratch, QN_GEMM_SCRATCH * sizeof *scratch);
    return qn_bf16_to_f32(sum);
}

/* What docs/precision.md says of numbers below 2^-126. */
static void test_subnormals(void **state)
{
    const QnGemmFns *by[] = { qn_gemm_find(qn_cpu_isa_best()),
                              qn_matmul_bf16_find(qn_cpu_isa_best()) };
    if (!by[1])
        skip();
    for (int pairs = 0; pairs < 2; pairs++) {
        float keeps = pairs ? 0 : 1;
        assert_float_equal(sum_of_two(by[pairs], 0, 0x1p-126f, 0x1p127f, 0x1p-30f, 0x1p-60f), 2, 0);
        assert_float_equal(sum_of_two(by[pairs], 0, 0x1p-127f, 0x1p127f, 0, 0), keeps, 0);
        assert_float_equal(sum_of_two(by[pairs], 0, 0x1p-70f, 0x1p-60f, 0, 0) * 0x1p127f,
                           keeps * 0x1p-3f, 0);
    }
}

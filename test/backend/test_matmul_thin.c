/* matmul of tens of rows by a transposed b: edges of its panels and tiles, bias by row, column and
 * element, a transposed or not, batches. */
#include "backend/kernel_check.h"

static QnValue *operand(QnGraph *g, int64_t batch, int64_t rows, int64_t columns)
{
    QnShape s = batch ? QN_SHAPE(batch, rows, columns) : QN_SHAPE(rows, columns);
    return check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_PLAIN);
}

/* y (m,n) of k, with a bias of this shape (rows 0: none); how many kernels of that name ran. */
static int product(int64_t batch, int64_t m, int64_t n, int64_t k, bool trans_a, int64_t bias_m,
                   int64_t bias_n)
{
    QnGraph *g = qn_graph_new();
    QnValue *a = trans_a ? operand(g, batch, k, m) : operand(g, batch, m, k);
    QnValue *b = operand(g, batch, n, k);
    QnValue *bias = bias_n ? operand(g, 0, bias_m, bias_n) : NULL;
    QnValue *y = qn_matmul(g, a, b, bias, trans_a, true);
    uint64_t seed = 3;
    assert_ok(qn_graph_check(g));
    Check c = { .n = y->node, .tol = 3e-7 * (double)k, .only = "cpu.matmul.thin" };
    for (int i = 0; i < c.n->n_in; i++)
        c.in[i] = c.n->in[i] ? check_fill(&c.n->in[i]->type, -1, 1, false, &seed) : NULL;
    check_run(&c);
    qn_graph_free(g);
    return c.n_run;
}

static void test_edges(void **state)
{
    static const int64_t rows[] = { 16, 31, 64, 100, 128 }, columns[] = { 48, 97, 130 },
                         depth[] = { 64, 129, 700 };
    for (int i = 0; i < QN_COUNT(rows) * QN_COUNT(columns) * QN_COUNT(depth); i++) {
        int64_t m = rows[i % 5], n = columns[i / 5 % 3], k = depth[i / 15];
        assert_true(product(0, m, n, k, false, 0, 0) > 0);
        assert_true(product(0, m, n, k, true, 1, n) > 0);
    }
}

static void test_bias_and_batches(void **state)
{
    assert_true(product(0, 40, 60, 70, false, 40, 1) > 0);
    assert_true(product(0, 40, 60, 70, false, 40, 60) > 0);
    assert_true(product(3, 33, 50, 65, false, 0, 0) > 0);
    assert_true(product(3, 33, 50, 65, true, 1, 50) > 0);
}

static void test_others_are_left_to_others(void **state)
{
    assert_int_equal(product(0, 15, 60, 70, false, 0, 0), 0);
    assert_int_equal(product(0, 129, 60, 70, false, 0, 0), 0);
    assert_int_equal(product(0, 40, 47, 70, false, 0, 0), 0);
    assert_int_equal(product(0, 40, 60, 63, false, 0, 0), 0);
}

/* Kernels on shapes beyond the operators' samples: several blocks, edges of tiles, both layouts.
 * timeout: 300 */
#include "backend/kernel_check.h"

static void matmul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, QnDtype d, int64_t batch)
{
    QnGraph *g = qn_graph_new();
    QnShape a = ta ? QN_SHAPE(batch, k, m) : QN_SHAPE(batch, m, k);
    QnShape b = tb ? QN_SHAPE(1, n, k) : QN_SHAPE(1, k, n);
    QnValue *bias = m % 2 ? qn_input(g, "bias", d, &QN_SHAPE(n)) : NULL;
    QnValue *y = qn_matmul(g, qn_input(g, "a", d, &a), qn_input(g, "b", d, &b), bias, ta, tb);
    double eps = d == QN_DTYPE_F32 ? 1e-6 : check_tolerance(d);
    assert_true(check_node(g, y, -1, 1, eps * sqrt((double)k)) > 0);
    qn_graph_free(g);
}

static void test_matmul_shapes(void **state)
{
    static const int64_t edge[] = { 1, 7, 12, 13, 25, 33, 97 };
    for (int i = 0; i < QN_COUNT(edge); i++) {
        for (int j = 0; j < QN_COUNT(edge); j++)
            matmul(edge[i], edge[j], edge[(i + j) % QN_COUNT(edge)], i % 2, j % 2, QN_DTYPE_F32, 2);
    }
}

static void test_matmul_several_blocks(void **state)
{
    matmul(150, 400, 520, false, false, QN_DTYPE_F32, 1);
    matmul(150, 400, 300, true, false, QN_DTYPE_F32, 1);
    matmul(151, 401, 257, false, true, QN_DTYPE_F32, 1);
    matmul(151, 401, 257, true, true, QN_DTYPE_BF16, 1);
    matmul(290, 40, 300, false, true, QN_DTYPE_F16, 2);
}

static void test_matmul_empty(void **state)
{
    matmul(3, 4, 0, false, false, QN_DTYPE_F32, 1);
    matmul(4, 4, 0, false, false, QN_DTYPE_F32, 1);
    matmul(0, 4, 3, false, false, QN_DTYPE_F32, 1);
    matmul(3, 4, 3, false, false, QN_DTYPE_F32, 0);
}

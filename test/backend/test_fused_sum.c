/* Sums of maps over whole tensors, leading and trailing axes; runs and columns shorter and longer
 * than a tile, with operands that are broadcast along either.
 * timeout: 120 */
#include "backend/kernel_check.h"

/* (x * y + z)^2 */
static const QnBody body = {
    .n_in = 3,
    .n_instr = 3,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_mul, .arg = { 0, 1 } },
                                    { .op = &qn_op_add, .arg = { 3, 2 } },
                                    { .op = &qn_op_square, .arg = { 4 } } },
    .out = (const int[]){ 2 },
};

static void run(int64_t rows, int64_t columns, QnInts axes, bool mean)
{
    QnGraph *g = qn_graph_new();
    QnShape whole = QN_SHAPE(rows, columns), row = QN_SHAPE(columns), column = QN_SHAPE(rows, 1);
    QnValue *x = check_input(g, QN_DTYPE_F32, &whole, QN_LAYOUT_PLAIN);
    QnValue *a = check_input(g, QN_DTYPE_F32, &row, QN_LAYOUT_PLAIN);
    QnValue *b = check_input(g, QN_DTYPE_F32, &column, QN_LAYOUT_PLAIN);
    QnValue *y = qn_fused_sum(g, &body, (QnValue *[]){ x, a, b }, axes, false, mean);
    if (check_node(g, y, -1, 1, 2e-6) == 0)
        fail_msg("no kernel for %lld x %lld", (long long)rows, (long long)columns);
    qn_graph_free(g);
}

static void test_sums(void **state)
{
    static const int64_t sizes[][2] = { { 1, 70001 }, { 300, 301 }, { 3, 40000 }, { 5000, 10 },
                                        { 67, 257 },  { 40, 513 },  { 2, 1024 },  { 700, 1 } };
    for (int i = 0; i < QN_COUNT(sizes); i++) {
        run(sizes[i][0], sizes[i][1], QN_INTS(0), i % 2);
        run(sizes[i][0], sizes[i][1], QN_INTS(1), !(i % 2));
        run(sizes[i][0], sizes[i][1], (QnInts){ 0 }, i % 2);
    }
}

/* Kept axes around the folded ones, or images whose kept axes change their order: refused. */
static int taken(QnGraph *g, QnValue *x, QnValue *z, QnInts axes, bool keepdims)
{
    QnValue *y = qn_fused_sum(g, &body, (QnValue *[]){ x, z, z }, axes, keepdims, false);
    return check_node(g, y, -1, 1, 1e-5);
}

static void test_refusals(void **state)
{
    QnGraph *g = qn_graph_new();
    QnShape s = QN_SHAPE(2, 3, 4, 5), one = { 0 };
    QnValue *x = check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_PLAIN);
    QnValue *z = qn_input(g, "z", QN_DTYPE_F32, &one);
    assert_true(taken(g, x, z, QN_INTS(1, 2), true) == 0);
    assert_true(taken(g, x, z, QN_INTS(0, 1), true) > 0);
    x->type.layout = QN_LAYOUT_CHANNELS_LAST;
    assert_true(taken(g, x, z, QN_INTS(0), false) == 0);
    assert_true(taken(g, x, z, QN_INTS(0, 2, 3), false) > 0);
    assert_true(taken(g, x, z, QN_INTS(1), false) > 0);
    qn_graph_free(g);
}

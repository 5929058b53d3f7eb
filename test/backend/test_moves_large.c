/* Moves, reductions and gathers beyond one unit of work, so that blocks, pieces and parts count. */
#include "backend/kernel_check.h"
#include "ops/util.h"

static QnGraph *g;

static QnValue *floats(const QnShape *s)
{
    return check_input(g, QN_DTYPE_F32, s, QN_LAYOUT_PLAIN);
}

static void check(QnValue *y, double tol)
{
    assert_true(check_node(g, y, -1, 1, tol) > 0);
}

static int setup(void **state)
{
    g = qn_graph_new();
    return 0;
}

static int teardown(void **state)
{
    qn_graph_free(g);
    return 0;
}

static void test_transposes(void **state)
{
    check(qn_transpose(g, floats(&QN_SHAPE(301, 403)), QN_AXES(1, 0)), 0);
    check(qn_transpose(g, floats(&QN_SHAPE(5, 70, 301)), QN_AXES(0, 2, 1)), 0);
    check(qn_transpose(g, floats(&QN_SHAPE(7, 40, 9, 33)), QN_AXES(0, 2, 1, 3)), 0);
    check(qn_transpose(g, floats(&QN_SHAPE(13, 11, 17, 19)), QN_AXES(3, 1, 0, 2)), 0);
    check(qn_transpose(g, floats(&QN_SHAPE(2, 70001)), QN_AXES(1, 0)), 0);
    check(qn_transpose(g, check_input(g, QN_DTYPE_I64, &QN_SHAPE(150, 210), QN_LAYOUT_PLAIN),
                       QN_AXES(1, 0)),
          0);
    check(qn_transpose(g, check_input(g, QN_DTYPE_BF16, &QN_SHAPE(150, 210), QN_LAYOUT_PLAIN),
                       QN_AXES(1, 0)),
          0);
}

static void test_regions(void **state)
{
    QnSliceAttr a = { QN_AXES(0, 1), QN_AXES(3, -1), QN_AXES(290, INT64_MIN), QN_AXES(2, -1) };
    check(qn_slice(g, floats(&QN_SHAPE(301, 203)), &a), 0);
    check(qn_slice_axis(g, floats(&QN_SHAPE(200007)), 0, 3, -2), 0);
    check(qn_slice_put(g, floats(&QN_SHAPE(301, 203)), floats(&QN_SHAPE(144, 203)), &a), 0);
    QnPadAttr pad = { QN_AXES(0, 5, -2), QN_AXES(1, -3, 4), QN_PAD_CONSTANT, 0.5 };
    check(qn_pad(g, floats(&QN_SHAPE(17, 90, 61)), &pad), 0);
    check(qn_expand(g, floats(&QN_SHAPE(300, 1)), &QN_SHAPE(300, 257)), 0);
    check(qn_expand(g, floats(&QN_SHAPE(1)), &QN_SHAPE(100001)), 0);
    check(qn_expand(g, floats(&QN_SHAPE(97)), &QN_SHAPE(700, 97)), 0);
    QnValue *parts[] = { floats(&QN_SHAPE(40, 30, 50)), floats(&QN_SHAPE(40, 3, 50)),
                         floats(&QN_SHAPE(40, 61, 50)) };
    check(qn_concat(g, parts, 3, 1), 0);
    check(qn_node_out(
              g, qn_split_sizes(g, floats(&QN_SHAPE(40, 94, 50)), 1, &(QnDims){ 3, { 30, 3, 61 } }),
              0),
          0);
}

static QnValue *image(int64_t c, int64_t h, int64_t w)
{
    return check_input(g, QN_DTYPE_F32, &QN_SHAPE(2, c, h, w), QN_LAYOUT_CHANNELS_LAST);
}

/* Images whose channels come last keep their axes' numbers. */
static void test_moves_channels_last(void **state)
{
    for (int axis = 0; axis < 4; axis++) {
        QnValue *parts[] = { image(axis == 1 ? 30 : 5, axis == 2 ? 7 : 9, axis == 3 ? 70 : 8),
                             image(5, 9, 8), image(axis == 1 ? 3 : 5, 9, 8) };
        if (axis == 2 || axis == 3)
            parts[2] = parts[1];
        QnValue *y = qn_concat(g, parts, 3, axis);
        y->type.layout = QN_LAYOUT_CHANNELS_LAST;
        check(y, 0);
        int64_t size[] = { axis == 0 ? 1 : 2, axis == 0 ? 1 : axis == 1 ? 38 : 4 };
        QnShape s = { 4, { 2, axis == 1 ? 40 : 6, 6, 6 } };
        QnValue *x = check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_CHANNELS_LAST);
        QnNode *both = qn_split_sizes(g, x, axis, &(QnDims){ 2, { size[0], size[1] } });
        both->out[0].type.layout = both->out[1].type.layout = QN_LAYOUT_CHANNELS_LAST;
        check(qn_node_out(g, both, 0), 0);
        y = qn_slice_axis(g, image(41, 30, 20), axis, axis ? 7 : 1, axis ? -2 : 2);
        y->type.layout = QN_LAYOUT_CHANNELS_LAST;
        check(y, 0);
    }
}

/* Sums of numbers in -1..1 in another order than the reference's: |got - want| grows with the
 * square root of their number, here at most 2e5. */
static void test_reductions(void **state)
{
    check(qn_sum(g, floats(&QN_SHAPE(200003)), QN_ALL_AXES, false), 1e-4);
    check(qn_mean(g, floats(&QN_SHAPE(300, 700)), QN_AXES(0), false), 1e-5);
    check(qn_sum(g, floats(&QN_SHAPE(300, 700)), QN_AXES(1), true), 1e-5);
    check(qn_sum(g, floats(&QN_SHAPE(9, 30, 21, 23)), QN_AXES(0, 2, 3), false), 1e-5);
    check(qn_sum(g, floats(&QN_SHAPE(9, 30, 21, 23)), QN_AXES(1, 3), false), 1e-5);
    check(qn_sum(g, floats(&QN_SHAPE(9, 30, 21, 23)), QN_AXES(0, 2), false), 1e-5);
    check(qn_sum(g, floats(&QN_SHAPE(4, 5, 6, 7, 8)), QN_AXES(0, 2, 4), false), 1e-5);
    check(qn_sum(g, floats(&QN_SHAPE(70000, 3)), QN_AXES(0), false), 1e-4);
    check(qn_sum(g, floats(&QN_SHAPE(40001, 3)), QN_AXES(1), false), 1e-6);
    check(qn_sum(g, floats(&QN_SHAPE(5001, 3, 9)), QN_AXES(1), false), 1e-6);
    check(qn_reduce_max(g, floats(&QN_SHAPE(150001)), QN_ALL_AXES, false), 0);
    check(qn_reduce_min(g, floats(&QN_SHAPE(700, 300)), QN_AXES(0), false), 0);
    check(qn_norm_l1(g, floats(&QN_SHAPE(3, 50000)), QN_AXES(1), false), 1e-5);
    check(qn_norm_l2(g, floats(&QN_SHAPE(100000, 2)), QN_ALL_AXES, false), 1e-5);
}

static void check_range(QnValue *y, double lo, double hi, double tol)
{
    assert_true(check_node(g, y, lo, hi, tol) > 0);
}

static void test_indices(void **state)
{
    QnValue *ids = check_input(g, QN_DTYPE_I64, &QN_SHAPE(900), QN_LAYOUT_PLAIN);
    QnValue *small = check_input(g, QN_DTYPE_I32, &QN_SHAPE(7, 9), QN_LAYOUT_PLAIN);
    check_range(qn_embedding(g, floats(&QN_SHAPE(50, 130)), ids), 0, 49, 0);
    check_range(qn_gather(g, floats(&QN_SHAPE(3, 50, 31)), ids, 1), -50, 49, 0);
    check_range(qn_gather(g, floats(&QN_SHAPE(300, 50)), small, -1), -50, 49, 0);
    /* Sums of some twenty floats up to 50: partial sums of hundreds, each rounded to 2^-24. */
    check_range(qn_scatter_add(g, floats(&QN_SHAPE(50, 130)), ids, floats(&QN_SHAPE(900, 130)), 0),
                -50, 49, 1e-4);
    check_range(qn_scatter_add(g, floats(&QN_SHAPE(9, 50)), small, floats(&QN_SHAPE(9, 7, 9)), 1),
                -50, 49, 1e-4);
}

static void test_random_numbers(void **state)
{
    QnValue *key = check_input(g, QN_DTYPE_I64, &QN_SHAPE(2), QN_LAYOUT_PLAIN);
    check_range(qn_dropout(g, floats(&QN_SHAPE(301, 403)), key, 0.3), 0, 1000, 1e-6);
    check_range(qn_dropout(g, floats(&QN_SHAPE(1001)), key, 1), 0, 1000, 0);
    check_range(qn_bernoulli(g, key, &QN_SHAPE(30001), 0.6), 0, 1000, 0);
    check_range(qn_random_uniform(g, key, &QN_SHAPE(30001), QN_DTYPE_F32, -2, 5), 0, 1000, 1e-6);
    check_range(qn_random_normal(g, key, &QN_SHAPE(30001), QN_DTYPE_F32, 3, 2), 0, 1000, 1e-6);
}

static void test_rows(void **state)
{
    check(qn_logsumexp(g, floats(&QN_SHAPE(70, 9001)), QN_AXES(1), false), 1e-6);
    check(qn_logsumexp(g, floats(&QN_SHAPE(30, 70, 9)), QN_AXES(1), false), 1e-6);
    check(qn_variance(g, floats(&QN_SHAPE(70, 9001)), QN_AXES(1), true, 1), 1e-6);
    check(qn_variance(g, floats(&QN_SHAPE(9001, 7)), QN_AXES(0), true, 0), 1e-6);
    check(qn_argmax(g, floats(&QN_SHAPE(70, 9001)), 1, false), 0);
    check(qn_argmin(g, floats(&QN_SHAPE(9001, 7)), 0, true), 0);
}

static void test_filled(void **state)
{
    QnValue *ids = check_input(g, QN_DTYPE_I64, &QN_SHAPE(900), QN_LAYOUT_PLAIN);
    check_range(qn_one_hot(g, ids, 70, QN_DTYPE_F32), -1, 71, 0);
    check(qn_eye(g, 300, 401, -3, QN_DTYPE_F32), 0);
    check(qn_arange(g, 5, -3, 30001, QN_DTYPE_I64), 0);
    for (int64_t k = -310; k <= 310; k += 31) {
        check(qn_triu(g, floats(&QN_SHAPE(2, 150, 203)), k), 0);
        check(qn_tril(g, floats(&QN_SHAPE(2, 150, 203)), k), 0);
    }
    check(qn_triu(g, floats(&QN_SHAPE(5, 4)), INT64_MAX), 0);
    check(qn_cumsum(g, floats(&QN_SHAPE(300, 201)), 0, true, false), 1e-6);
    check(qn_cumsum(g, floats(&QN_SHAPE(300, 201)), 1, false, true), 1e-6);
}

static void test_resize(void **state)
{
    for (int mode = QN_RESIZE_NEAREST; mode <= QN_RESIZE_CUBIC; mode++) {
        for (int coord = QN_RESIZE_HALF_PIXEL; coord <= QN_RESIZE_ASYMMETRIC; coord++) {
            QnResizeAttr a = { { 2, { 70, 31 } }, mode, coord, QN_RESIZE_TIES_UP, -0.5, false };
            check(qn_resize(g, floats(&QN_SHAPE(3, 5, 33, 40)), &a), 1e-6);
            a.adjoint = true; /* some 40 elements are added up */
            check(qn_resize(g, floats(&QN_SHAPE(3, 5, 33, 40)), &a), 1e-5);
        }
    }
}

static void test_elements(void **state)
{
    QnValue *i = check_input(g, QN_DTYPE_I64, &QN_SHAPE(70, 80, 9), QN_LAYOUT_PLAIN);
    check_range(qn_gather_elements(g, floats(&QN_SHAPE(70, 50, 11)), i, 1), -50, 49, 0);
    for (QnScatter r = QN_SCATTER_NONE; r <= QN_SCATTER_MIN; r++)
        check_range(qn_scatter_elements(g, floats(&QN_SHAPE(70, 50, 11)), i,
                                        floats(&QN_SHAPE(70, 80, 9)), 1, r),
                    -50, 49,
                    r == QN_SCATTER_ADD   ? 1e-4
                    : r == QN_SCATTER_MUL ? 1e-6
                                          : 0);
}

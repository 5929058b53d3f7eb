/* The kernel of lrn: both layouts, edges of its blocks, windows wider than the channels. */
#include "backend/kernel_check.h"

static void lrn(const QnShape *s, QnLayout layout, QnDtype d, int64_t size, double beta)
{
    QnGraph *g = qn_graph_new();
    QnValue *y = qn_lrn(g, check_input(g, d, s, layout), size, 0.7, beta, 1.5);
    y->type.layout = layout;
    assert_int_equal(check_node(g, y, -4, 4, check_tolerance(d)) > 0, size <= 64);
    qn_graph_free(g);
}

static void test_lrn_shapes(void **state)
{
    static const QnShape shapes[] = {
        { 4, { 2, 19, 9, 15 } }, { 4, { 1, 64, 16, 16 } }, { 3, { 3, 1, 129 } },
        { 4, { 2, 5, 1, 1 } },   { 4, { 0, 5, 2, 2 } },    { 5, { 1, 7, 2, 3, 4 } },
    };
    static const int64_t size[] = { 1, 2, 5, 40, 64, 65 };
    static const double beta[] = { 0.75, 0.5, 1.25, -0.3 };
    for (int i = 0; i < QN_COUNT(shapes); i++) {
        for (int j = 0; j < QN_COUNT(size); j++) {
            lrn(&shapes[i], QN_LAYOUT_PLAIN, QN_DTYPE_F32, size[j], beta[(i + j) % 4]);
            lrn(&shapes[i], QN_LAYOUT_CHANNELS_LAST, QN_DTYPE_F32, size[j], beta[(i + j + 1) % 4]);
        }
    }
}

static void test_lrn_without_pixels(void **state)
{
    lrn(&QN_SHAPE(7, 100), QN_LAYOUT_PLAIN, QN_DTYPE_F32, 5, 0.75);
}

static void test_lrn_16_bits(void **state)
{
    lrn(&QN_SHAPE(2, 19, 5, 7), QN_LAYOUT_PLAIN, QN_DTYPE_BF16, 5, 0.75);
    lrn(&QN_SHAPE(2, 19, 5, 7), QN_LAYOUT_CHANNELS_LAST, QN_DTYPE_F16, 3, 0.6);
}

/* Interpolation against values that ONNX's and PyTorch's documentation give or that are worked out
 * by hand. */
#include "values.h"

#define PIXELS GIVE(&c, F32, QN_SHAPE(1, 1, 2, 2), 1, 2, 3, 4)
#define ROW    GIVE(&c, F32, QN_SHAPE(1, 1, 4), 1, 2, 3, 4)

static QnValue *row(Case *c, QnValue *x, int64_t size, int mode, int coord, int round)
{
    QnResizeAttr a = { { 1, { size } }, mode, coord, round, -0.75, false };
    return qn_resize(c->g, x, &a);
}

static void test_nearest(void **state)
{
    Case c = case_new();
    QnResizeAttr a = {
        { 2, { 2, 4 } }, QN_RESIZE_NEAREST, QN_RESIZE_ASYMMETRIC, QN_RESIZE_FLOOR, 0, false
    };
    WANT(&c, qn_resize(c.g, PIXELS, &a), QN_SHAPE(1, 1, 2, 4), 1, 1, 2, 2, 3, 3, 4, 4);
    QnValue *x = ROW;
    WANT(&c, row(&c, x, 2, QN_RESIZE_NEAREST, QN_RESIZE_HALF_PIXEL, QN_RESIZE_TIES_DOWN),
         QN_SHAPE(1, 1, 2), 1, 3); /* centres 0.5 and 2.5 */
    WANT(&c, row(&c, x, 2, QN_RESIZE_NEAREST, QN_RESIZE_HALF_PIXEL, QN_RESIZE_TIES_UP),
         QN_SHAPE(1, 1, 2), 2, 4);
    WANT(&c, row(&c, x, 3, QN_RESIZE_NEAREST, QN_RESIZE_ASYMMETRIC, QN_RESIZE_CEIL),
         QN_SHAPE(1, 1, 3), 1, 3, 4); /* 0, 4/3, 8/3 */
    case_free(&c);
}

static void test_linear(void **state)
{
    Case c = case_new();
    QnValue *x = ROW;
    WANT(&c, row(&c, x, 8, QN_RESIZE_LINEAR, QN_RESIZE_HALF_PIXEL, 0), QN_SHAPE(1, 1, 8), 1, 1.25,
         1.75, 2.25, 2.75, 3.25, 3.75, 4);
    WANT(&c, row(&c, x, 7, QN_RESIZE_LINEAR, QN_RESIZE_ALIGN_CORNERS, 0), QN_SHAPE(1, 1, 7), 1, 1.5,
         2, 2.5, 3, 3.5, 4);
    QnResizeAttr a = { { 2, { 4, 4 } }, QN_RESIZE_LINEAR, QN_RESIZE_HALF_PIXEL, 0, 0, false };
    WANT(&c, qn_resize(c.g, PIXELS, &a), QN_SHAPE(1, 1, 4, 4), 1, 1.25, 1.75, 2, 1.5, 1.75, 2.25,
         2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4);
    case_free(&c);
}

/* With a = -0.75 the weights at 1/4 are -0.10546875, 0.87890625, 0.26171875, -0.03515625. */
static void test_cubic(void **state)
{
    Case c = case_new();
    QnValue *x = ROW;
    double w[] = { -0.10546875, 0.87890625, 0.26171875, -0.03515625 };
    double at_1_75 = w[3] * 1 + w[2] * 2 + w[1] * 3 + w[0] * 4; /* centre 1.75: element 4 of 8 */
    WANT(&c, qn_slice_axis(c.g, row(&c, x, 8, QN_RESIZE_CUBIC, QN_RESIZE_HALF_PIXEL, 0), 2, 4, 5),
         QN_SHAPE(1, 1, 1), at_1_75);
    WANT(&c, row(&c, x, 4, QN_RESIZE_CUBIC, QN_RESIZE_HALF_PIXEL, 0), QN_SHAPE(1, 1, 4), 1, 2, 3,
         4);
    case_free(&c);
}

static void test_adjoint_is_the_transpose(void **state)
{
    Case c = case_new();
    QnResizeAttr a = { { 1, { 4 } }, QN_RESIZE_LINEAR, QN_RESIZE_ALIGN_CORNERS, 0, 0, true };
    QnValue *y = GIVE(&c, F32, QN_SHAPE(1, 1, 7), 1, 1, 1, 1, 1, 1, 1);
    WANT(&c, qn_resize(c.g, y, &a), QN_SHAPE(1, 1, 4), 1.5, 2, 2, 1.5);
    case_free(&c);
}

static void test_shapes_are_checked(void **state)
{
    Case c = case_new();
    case_want_refused(&c, row(&c, PIXELS, 4, QN_RESIZE_LINEAR, 0, 0), QN_ESHAPE, "spatial");
    case_free(&c);
}

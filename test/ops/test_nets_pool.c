/* Pools. */
/* Expected values from PyTorch 2 in float64: torch.nn.functional on the inputs shown. */
#include "values.h"
#include "pass/grad.h"

static void test_max_pool_with_padding_and_ceil(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 5, 6), 0.79, -0.4, -0.38, -0.68, 0.42, -0.49, -0.23,
                      0.12, -0.52, -0.59, -0.11, -0.58, -0.52, -0.51, 0.46, 0.96, 0.46, -0.18, 0.1,
                      -0.44, -0.72, -0.41, 0.3, 0.77, 0.79, 0.85, 0.97, -0.38, 0.98, 0.5);
    QnPoolAttr attr = { .kernel = { 2, { 2, 3 } },
                        .strides = { 2, { 2, 2 } },
                        .pads = { 4, { 1, 1, 1, 1 } },
                        .ceil_mode = true };
    WANT(&c, qn_max_pool(c.g, x, &attr), QN_SHAPE(1, 1, 3, 4), 0.79, -0.38, 0.42, -0.49, 0.12, 0.96,
         0.96, -0.18, 0.85, 0.97, 0.98, 0.77);
    case_free(&c);
}

static void test_max_pool_with_dilation(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 5, 6), 0.79, -0.4, -0.38, -0.68, 0.42, -0.49, -0.23,
                      0.12, -0.52, -0.59, -0.11, -0.58, -0.52, -0.51, 0.46, 0.96, 0.46, -0.18, 0.1,
                      -0.44, -0.72, -0.41, 0.3, 0.77, 0.79, 0.85, 0.97, -0.38, 0.98, 0.5);
    QnPoolAttr attr = { .kernel = { 2, { 2, 2 } },
                        .strides = { 2, { 1, 1 } },
                        .dilations = { 2, { 2, 2 } } };
    WANT(&c, qn_max_pool(c.g, x, &attr), QN_SHAPE(1, 1, 3, 4), 0.79, 0.96, 0.46, 0.96, 0.1, 0.12,
         0.3, 0.77, 0.97, 0.96, 0.98, 0.96);
    case_free(&c);
}

static void test_max_pool_gradient(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 5, 6), 0.79, -0.4, -0.38, -0.68, 0.42, -0.49, -0.23,
                      0.12, -0.52, -0.59, -0.11, -0.58, -0.52, -0.51, 0.46, 0.96, 0.46, -0.18, 0.1,
                      -0.44, -0.72, -0.41, 0.3, 0.77, 0.79, 0.85, 0.97, -0.38, 0.98, 0.5);
    QnPoolAttr attr = { .kernel = { 2, { 3, 3 } },
                        .strides = { 2, { 2, 2 } },
                        .pads = { 4, { 1, 1, 1, 1 } } };
    QnValue *y = qn_sum(c.g, qn_square(c.g, qn_max_pool(c.g, x, &attr)), QN_ALL_AXES, false), *d;
    assert_ok(qn_grad(c.g, y, &x, 1, &d));
    WANT(&c, d, QN_SHAPE(1, 1, 5, 6), 1.58, 0, 0, 0, 0.84, 0, 0, 0.48, 0, 0, 0, 0, 0, 0, 0, 3.84, 0,
         0, 0, 0, 0, 0, 0, 0, 0, 1.7, 1.94, 0, 1.96, 0);
    case_free(&c);
}

static void test_first_of_equal_elements_wins(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 4), 2, 2, 1, 1);
    QnPoolAttr attr = { .kernel = { 1, { 2 } } };
    QnValue *y = qn_sum(c.g, qn_max_pool(c.g, x, &attr), QN_ALL_AXES, false), *d;
    assert_ok(qn_grad(c.g, y, &x, 1, &d));
    WANT(&c, d, QN_SHAPE(1, 1, 4), 1, 0, 1, 0);
    case_free(&c);
}

static void test_avg_pool_counts_padding(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 5, 6), 0.79, -0.4, -0.38, -0.68, 0.42, -0.49, -0.23,
                      0.12, -0.52, -0.59, -0.11, -0.58, -0.52, -0.51, 0.46, 0.96, 0.46, -0.18, 0.1,
                      -0.44, -0.72, -0.41, 0.3, 0.77, 0.79, 0.85, 0.97, -0.38, 0.98, 0.5);
    QnPoolAttr attr = { .kernel = { 2, { 2, 3 } },
                        .strides = { 2, { 2, 2 } },
                        .pads = { 4, { 1, 1, 1, 1 } },
                        .ceil_mode = true,
                        .count_include_pad = true };
    WANT(&c, qn_avg_pool(c.g, x, &attr), QN_SHAPE(1, 1, 3, 4), 0.065, -0.2433333333333, -0.125,
         -0.1225, -0.19, -0.01333333333333, -0.006666666666667, -0.19, 0.2166666666667,
         -0.02166666666667, 0.2933333333333, 0.3175);
    case_free(&c);
}

static void test_avg_pool_leaves_out_padding(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 5, 6), 0.79, -0.4, -0.38, -0.68, 0.42, -0.49, -0.23,
                      0.12, -0.52, -0.59, -0.11, -0.58, -0.52, -0.51, 0.46, 0.96, 0.46, -0.18, 0.1,
                      -0.44, -0.72, -0.41, 0.3, 0.77, 0.79, 0.85, 0.97, -0.38, 0.98, 0.5);
    QnPoolAttr attr = { .kernel = { 2, { 2, 3 } },
                        .strides = { 2, { 2, 2 } },
                        .pads = { 4, { 1, 1, 1, 1 } },
                        .ceil_mode = true,
                        .count_include_pad = false };
    WANT(&c, qn_avg_pool(c.g, x, &attr), QN_SHAPE(1, 1, 3, 4), 0.195, -0.4866666666667, -0.25,
         -0.49, -0.285, -0.01333333333333, -0.006666666666667, -0.38, 0.325, -0.02166666666667,
         0.2933333333333, 0.635);
    case_free(&c);
}

static void test_adaptive_and_global(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 4, 6), -0.34, -0.34, 0.74, -0.89, -0.59, 0.87, 0.72,
                      -0.18, 0.19, 0.29, 0.9, 0.11, 0.22, -0.58, 0.23, -0.72, -0.91, -0.43, -0.24,
                      0.93, -0.79, 0.91, 0.77, 0.54);
    WANT(&c, qn_adaptive_avg_pool(c.g, x, QN_AXES(3, 4)), QN_SHAPE(1, 1, 3, 4), -0.035, 0.1025,
         -0.0725, 0.3225, 0.045, -0.085, -0.11, -0.0825, 0.0825, -0.0525, 0.0125, -0.0075);
    WANT(&c, qn_global_avg_pool(c.g, x), QN_SHAPE(1, 1, 1, 1), 0.05875);
    WANT(&c, qn_global_max_pool(c.g, x), QN_SHAPE(1, 1, 1, 1), 0.93);
    case_free(&c);
}

static void test_adaptive_max(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 4, 6), -0.34, -0.34, 0.74, -0.89, -0.59, 0.87, 0.72,
                      -0.18, 0.19, 0.29, 0.9, 0.11, 0.22, -0.58, 0.23, -0.72, -0.91, -0.43, -0.24,
                      0.93, -0.79, 0.91, 0.77, 0.54);
    QnValue *y = qn_adaptive_max_pool(c.g, x, QN_AXES(3, 4));
    WANT(&c, y, QN_SHAPE(1, 1, 3, 4), 0.72, 0.74, 0.9, 0.9, 0.72, 0.23, 0.9, 0.9, 0.93, 0.93, 0.91,
         0.77);
    WANT(&c, qn_adaptive_max_pool(c.g, x, QN_AXES(1, 1)), QN_SHAPE(1, 1, 1, 1), 0.93);
    WANT(&c, qn_adaptive_max_pool(c.g, x, QN_AXES(4, 2)), QN_SHAPE(1, 1, 4, 2), 0.74, 0.87, 0.72,
         0.9, 0.23, -0.43, 0.93, 0.91);
    case_free(&c);
}

static void test_adaptive_max_gradient(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 4, 6), -0.34, -0.34, 0.74, -0.89, -0.59, 0.87, 0.72,
                      -0.18, 0.19, 0.29, 0.9, 0.11, 0.22, -0.58, 0.23, -0.72, -0.91, -0.43, -0.24,
                      0.93, -0.79, 0.91, 0.77, 0.54);
    QnValue *y = qn_adaptive_max_pool(c.g, x, QN_AXES(3, 4)), *d;
    assert_ok(qn_grad(c.g, qn_sum(c.g, qn_square(c.g, y), QN_ALL_AXES, false), &x, 1, &d));
    WANT(&c, d, QN_SHAPE(1, 1, 4, 6), 0, 0, 1.48, 0, 0, 0, 2.88, 0, 0, 0, 7.2, 0, 0, 0, 0.46, 0, 0,
         0, 0, 3.72, 0, 1.82, 1.54, 0);
    case_free(&c);
}

/* Windows of 2 and 3 that overlap. Of equal elements the first takes all of the gradient. */
static void test_adaptive_max_with_ties_and_nan(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 5), 2, 2, 1, 1, 1, 0, NAN, 3, 3, 2);
    WANT(&c, qn_adaptive_max_pool(c.g, x, QN_AXES(3)), QN_SHAPE(1, 2, 3), 2, 2, 1, NAN, NAN, 3);
    case_free(&c);
    c = case_new();
    x = GIVE(&c, F32, QN_SHAPE(1, 2, 5), 2, 2, 1, 1, 1, 0, NAN, 3, 3, 2);
    QnValue *y = qn_adaptive_max_pool(c.g, x, QN_AXES(3)), *d;
    assert_ok(qn_grad(c.g, qn_sum(c.g, y, QN_ALL_AXES, false), &x, 1, &d));
    WANT(&c, d, QN_SHAPE(1, 2, 5), 1, 1, 0, 1, 0, 0, 2, 0, 1, 0);
    case_free(&c);
}

static void test_adaptive_max_refusals(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3), 1, 2, 3);
    case_want_refused(&c, qn_adaptive_max_pool(c.g, x, QN_AXES(2, 2)), QN_ESHAPE, "2 sizes");
    case_free(&c);
    c = case_new();
    x = GIVE(&c, F32, QN_SHAPE(1, 1, 3), 1, 2, 3);
    case_want_refused(&c, qn_adaptive_max_pool(c.g, x, QN_AXES(0)), QN_EARG, "size 0");
    case_free(&c);
}

static void test_padding_over_half_of_the_window_is_refused(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3), 1, 2, 3);
    QnPoolAttr attr = { .kernel = { 1, { 2 } }, .pads = { 2, { 2, 0 } } };
    case_want_refused(&c, qn_max_pool(c.g, x, &attr), QN_EARG, "hide a whole window");
    case_free(&c);
}

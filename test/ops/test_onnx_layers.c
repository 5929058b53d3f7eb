/* Activations, norms, pools and sequences as ONNX defines them. */
/* Expected values from onnx.reference in float64 on the inputs shown. */
#include "values.h"

static void test_prelu(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3, 2), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *slope = GIVE(&c, F32, QN_SHAPE(3, 1), -0.24, -0.87, -0.42);
    WANT(&c, qn_prelu(c.g, x, slope), QN_SHAPE(2, 3, 2), 0.204, 0.56, 0.1044, 0.45, 0.96, 0.08, 0,
         0.2064, 0.4002, 0, 0.36, 0.61);
    case_free(&c);
}

static void test_shrink(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(8), 1.64, -1.14, -0.2, 1.72, -1.9, 0.4, 1.8, -1.08);
    WANT(&c, qn_shrink(c.g, x, 0.5, 0.25), QN_SHAPE(8), 1.39, -0.89, 0, 1.47, -1.65, 0, 1.55,
         -0.83);
    case_free(&c);
}

static void test_thresholded_relu(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(8), 0.2, 1.64, -1.46, 0.1, 1, 0.68, -0.12, -1.18);
    WANT(&c, qn_thresholded_relu(c.g, x, 0.5), QN_SHAPE(8), 0, 1.64, 0, 0, 1, 0.68, 0, 0);
    case_free(&c);
}

static void test_swish(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(6), -0.06, -0.78, -0.15, -0.81, 2.04, 1.62);
    WANT(&c, qn_swish(c.g, x, 1.5), QN_SHAPE(6), -0.02865091051249, -0.1847468877331,
         -0.06659791641831, -0.1853422190998, 1.948633085778, 1.488920183111);
    case_free(&c);
}

static void test_hardmax_takes_the_first_of_equals(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 4), -0.37, 0.99, -0.45, 0.99, -0.29, 0.31, -0.26, -0.08);
    WANT(&c, qn_hardmax(c.g, x, 1), QN_SHAPE(2, 4), 0, 1, 0, 0, 0, 1, 0, 0);
    case_free(&c);
}

static void test_lp_normalize_of_zeros_is_zero(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3, 2), 0.42, -0.17, 0.05, -0.64, 0.39, -0.16, 0, 0.27, 0,
                      -0.17, 0, -0.82);
    WANT(&c, qn_lp_normalize(c.g, x, 1, 2), QN_SHAPE(2, 3, 2), 0.7300208994235, -0.2495417044725,
         0.08690724993137, -0.9394511227202, 0.6778765494647, -0.23486278068, 0, 0.3068578096106, 0,
         -0.1932067690141, 0, -0.9319385328916);
    case_free(&c);
}

static void test_lp_normalize_by_sizes(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(3, 4), 0.91, 0.37, -0.89, -0.38, 0.19, -0.53, 0.93, 0.89,
                      0.7, -0.06, 0.68, -0.74);
    WANT(&c, qn_lp_normalize(c.g, x, -1, 1), QN_SHAPE(3, 4), 0.356862745098, 0.1450980392157,
         -0.3490196078431, -0.1490196078431, 0.0748031496063, -0.2086614173228, 0.3661417322835,
         0.3503937007874, 0.3211009174312, -0.02752293577982, 0.3119266055046, -0.3394495412844);
    case_free(&c);
}

static void test_mean_variance_norm(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 2, 3), -0.38, -0.07, 0.48, -0.03, -0.73, -0.31, -0.35,
                      -0.4, -0.67, -0.17, -0.1, 0.55);
    WANT(&c, qn_mean_variance_norm(c.g, x, QN_AXES(0, 2), 1e-9), QN_SHAPE(2, 2, 3),
         -0.4090279118098, 0.4457944656803, 1.96241481284, 0.2674075767143, -1.573759344925,
         -0.4690591919414, -0.3263031656011, -0.4641777426156, -1.208700458494, -0.1008258076136,
         0.08329088455035, 1.792945883215);
    case_free(&c);
}

static void test_reverse_sequence_time_first(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(4, 3), 0.59, 0.04, -0.08, 0.56, 0.77, 0.35, 0.6, 0.88,
                      -0.92, 0.75, -0.45, -0.05);
    QnValue *n = GIVE(&c, I64, QN_SHAPE(3), 1, 4, 3);
    WANT(&c, qn_reverse_sequence(c.g, x, n, 1, 0), QN_SHAPE(4, 3), 0.59, -0.45, -0.92, 0.56, 0.88,
         0.35, 0.6, 0.77, -0.08, 0.75, 0.04, -0.05);
    case_free(&c);
}

static void test_reverse_sequence_batch_first(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3, 2), 0.59, 0.43, -0.71, 0.32, -0.86, -0.29, 0.63,
                      -0.14, 0.2, 0.46, 0.64, 0.52);
    QnValue *n = GIVE(&c, I64, QN_SHAPE(2), 3, 2);
    WANT(&c, qn_reverse_sequence(c.g, x, n, 0, 1), QN_SHAPE(2, 3, 2), -0.86, -0.29, -0.71, 0.32,
         0.59, 0.43, 0.2, 0.46, 0.63, -0.14, 0.64, 0.52);
    case_free(&c);
}

static void test_lp_pool(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, F32, QN_SHAPE(1, 1, 4, 5), -0.99, -0.16, -0.07, -0.89, 0.08, 0.22, 0.66, 0.88,
             -0.74, -0.54, 0.32, -0.74, -0.55, 0.15, -0.66, 0.56, 0.71, -0.93, 0.07, 0.59);
    QnPoolAttr attr = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 1, 2 } } };
    WANT(&c, qn_lp_pool(c.g, x, &attr, 3), QN_SHAPE(1, 1, 3, 2), 1.083653322962, 1.214637396241,
         0.9029270953194, 1.079065836017, 0.990414749868, 0.9914097522756);
    case_free(&c);
}

static void test_lp_pool_whose_last_window_sticks_out(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 5), 0.95, -0.45, -0.66, 0.75, 0.82);
    QnPoolAttr attr = {
        .kernel = { 1, { 3 } }, .strides = { 1, { 2 } }, .pads = { 2, { 1, 0 } }, .ceil_mode = true
    };
    WANT(&c, qn_lp_pool(c.g, x, &attr, 1), QN_SHAPE(1, 1, 3), 1.4, 1.86, 1.57);
    case_free(&c);
}

static void test_max_pool_indices(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnPoolAttr attr = { .kernel = { 2, { 2, 3 } },
                        .strides = { 2, { 2, 1 } },
                        .pads = { 4, { 1, 1, 0, 1 } } };
    WANT(&c, qn_max_pool_indices(c.g, x, &attr, false), QN_SHAPE(1, 2, 2, 5), 1, 1, 1, 4, 4, 11, 11,
         11, 9, 9, 21, 21, 21, 24, 24, 26, 27, 27, 27, 28);
    case_free(&c);
}

static void test_max_pool_indices_in_columns(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnPoolAttr attr = { .kernel = { 2, { 2, 3 } },
                        .strides = { 2, { 2, 1 } },
                        .pads = { 4, { 1, 1, 0, 1 } } };
    WANT(&c, qn_max_pool_indices(c.g, x, &attr, true), QN_SHAPE(1, 2, 2, 5), 4, 4, 4, 16, 16, 6, 6,
         6, 17, 17, 24, 24, 24, 36, 36, 25, 29, 29, 29, 33);
    case_free(&c);
}

static void test_max_unpool(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, F32, QN_SHAPE(1, 2, 2, 2), -0.6, -0.12, 0.44, 0.69, -0.66, 0.33, 0.62, 0.1);
    QnValue *at = GIVE(&c, I64, QN_SHAPE(1, 2, 2, 2), 5, 0, 10, 15, 17, 19, 24, 30);
    WANT(&c, qn_max_unpool(c.g, x, at, &(QnDims){ 2, { 4, 4 } }), QN_SHAPE(1, 2, 4, 4), -0.12, 0, 0,
         0, 0, -0.6, 0, 0, 0, 0, 0.44, 0, 0, 0, 0, 0.69, 0, -0.66, 0, 0.33, 0, 0, 0, 0, 0.62, 0, 0,
         0, 0, 0, 0.1, 0);
    case_free(&c);
}

static void test_mistakes_are_named(void **state)
{
    Case c;
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(3));
        case_want_refused(&c, qn_prelu(c.g, s, x), QN_ESHAPE, "does not broadcast");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *n = qn_input(c.g, "n", I64, &QN_SHAPE(2));
        case_want_refused(&c, qn_reverse_sequence(c.g, x, n, 1, 0), QN_ESHAPE, "along axis 1");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *n = qn_input(c.g, "n", I64, &QN_SHAPE(2));
        case_want_refused(&c, qn_reverse_sequence(c.g, x, n, 1, 1), QN_EARG, "two axes");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        case_want_refused(&c, qn_lp_normalize(c.g, x, 1, 3), QN_EARG, "p");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *n = qn_input(c.g, "n", I64, &QN_SHAPE(2));
        case_want_refused(&c, qn_max_unpool(c.g, x, n, &(QnDims){ 1, { 4 } }), QN_ESHAPE, "(N,C)");
    }
    case_free(&c);
}

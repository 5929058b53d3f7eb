/* Matrix products and convolutions. */
/* Expected values from PyTorch 2 in float64: torch.nn.functional on the inputs shown. */
#include "values.h"
#include "pass/grad.h"

static void test_matmul_broadcasts_batches(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, F32, QN_SHAPE(2, 1, 2, 3), -0.44, -0.45, 0.72, 0.31, 0.85, 0.68, -0.41,
                      0.12, 0.53, 0.52, -0.87, -0.88);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(2, 3, 4), -0.67, -0.92, -0.76, 0.7, -0.97, 0.9, -0.78, 0.99,
                      0.85, 0.73, 0.32, -0.39, 0.79, 0.46, 0.9, 0.68, -0.72, 0.92, 0.06, -0.82,
                      0.29, 0.44, -0.31, -0.89);
    QnValue *bias = GIVE(&c, F32, QN_SHAPE(4), -0.62, -0.88, 0.47, -0.3);
    WANT(&c, qn_matmul(c.g, a, b, bias, false, false), QN_SHAPE(2, 2, 2, 4), 0.7233, -0.3546,
         1.3858, -1.3343, -1.0742, 0.0962, -0.211, 0.4933, -0.4348, -1.1796, -0.1762, -0.871,
         -0.7899, 0.3438, 0.5892, -1.3914, -0.0112, -0.0079, 0.8576, -0.6749, -0.8725, -2.7838,
         0.4718, -0.4541, -0.8766, -0.725, -0.0561, -1.1489, 0.162, -1.8284, 1.1586, 1.5502);
    WANT(&c, qn_matmul(c.g, b, a, NULL, true, true), QN_SHAPE(2, 2, 4, 2), 1.3433, -0.4542, 0.5254,
         0.9762, 0.9158, -0.681, -1.0343, 0.7933, 0.1852, -0.1699, -0.2996, 1.2238, -0.6462, 0.1192,
         -0.571, -1.0914, 0.6088, -0.2525, 0.8721, -1.9038, 0.3876, 0.0018, -0.3749, -0.1541,
         -0.2566, 0.782, 0.155, -0.9484, -0.5261, 0.6886, -0.8489, 1.8502);
    case_free(&c);
}

static void test_matmul_of_a_batch_and_a_matrix_is_one_product(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, F32, QN_SHAPE(2, 1, 2), 1, 2, 3, 4);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(2, 3), 1, 0, 2, 0, 1, -1);
    QnValue *y = qn_matmul(c.g, a, b, NULL, false, false);
    assert_ptr_equal(y->node->op, &qn_op_reshape);
    assert_int_equal(y->node->in[0]->type.shape.rank, 2);
    WANT(&c, y, QN_SHAPE(2, 1, 3), 1, 2, 0, 3, 4, 2);
    case_free(&c);
}

static void test_matmul_refuses_what_does_not_fit(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, F32, QN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    case_want_refused(&c, qn_matmul(c.g, a, a, NULL, false, false), QN_ESHAPE, "[2,3]");
    case_free(&c);
}

static void test_conv_with_asymmetric_pads(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 4, 5), -0.16, 0.8, -0.29, -0.04, -0.56, -0.65, 0.61,
                      -0.29, 0.13, 0.62, -0.96, -0.25, -0.58, 0.82, 0.37, 0.84, 0.91, 0.68, 0.72,
                      0.47, 0.6, 0.22, 0.62, 0.06, 0.27, 0.05, -0.48, -0.08, 0.05, -0.36, -0.31,
                      0.03, -0.43, -0.57, -0.39, 0.94, -0.36, 0.13, -0.15, -0.48);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(2, 2, 2, 3), 0.89, 0.44, 0.5, 0.99, -0.98, 0.71, -0.26,
                      0.56, -0.66, -0.53, -0.24, -0.4, -0.47, -0.25, -0.2, -0.27, 0.53, 0.82, -0.28,
                      -0.77, 0.66, -0.44, 0.35, 0.88);
    QnValue *bias = GIVE(&c, F32, QN_SHAPE(2), 0, -0.45);
    QnConvAttr attr = { .strides = { 2, { 2, 1 } }, .pads = { 4, { 0, 1, 1, 2 } } };
    WANT(&c, qn_conv(c.g, x, w, bias, &attr), QN_SHAPE(1, 2, 2, 6), 1.7705, -1.7039, 2.0488,
         -0.6614, -0.5654, 0.236, -0.9995, -0.9144, 1.0252, 0.54, 1.2693, 1.1504, -1.136, -0.4444,
         -1.2295, 0.1582, -0.3704, -0.2714, 1.3021, 0.3475, 0.372, -0.1032, -0.5153, -0.4304);
    case_free(&c);
}

static void test_conv_of_one_axis_in_groups(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 4, 7), 0.75, 0.07, 0.26, 0.37, 0.01, 0.33, 0.75, 0.43,
                      0.34, 0.65, -0.11, 0.84, 0.91, -0.39, 0.83, -0.36, -0.63, -0.99, -0.83, 0.93,
                      0.71, -0.69, -0.83, 0.36, -0.36, -0.03, -0.99, 0.09);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(4, 2, 3), -0.49, 0.97, -0.47, 0.26, 0.71, -0.11, 0.63,
                      -0.32, 0.53, 0.16, 0.04, 0.36, 0.65, 0.18, -0.4, -0.7, -0.01, 0.25, 0.67,
                      0.21, 0.2, 0.24, -0.94, -0.05);
    QnConvAttr attr = { { 1, { 2 } }, { 2, { 2, 2 } }, { 1, { 2 } }, 2 };
    WANT(&c, qn_conv(c.g, x, w, NULL, &attr), QN_SHAPE(1, 4, 4), 0.8391, 0.3609, 0.3381, 0.6641,
         0.149, 0.7918, 0.5553, -0.1149, 0.4983, 1.23, -1.0721, -0.3916, 0.6789, -0.2447, -0.3443,
         -0.4988);
    case_free(&c);
}

static void test_conv_of_three_axes(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 3, 3), 0.52, 0.61, 0.34, -0.7, 0.41, -0.56, 0.83,
                      0.95, -0.02, -0.72, 0.91, -0.55, 0.49, -0.89, -0.72, -0.32, -0.19, -0.79,
                      0.76, -0.46, 0.03, -0.93, 0.33, -0.39, 0.11, -0.81, -0.49);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(2, 1, 2, 2, 2), -0.92, 0.83, -0.05, 0.03, 0.87, 0.77, 0.41,
                      0.02, 0.62, 0.8, 0.4, -0.02, -0.23, -0.07, 0.66, -1);
    WANT(&c, qn_conv(c.g, x, w, NULL, &(QnConvAttr){ 0 }), QN_SHAPE(1, 2, 2, 2, 2), 0.3326, -0.3274,
         0.5773, -2.3125, 1.2988, -1.5204, -1.7053, -0.1481, 1.8375, 0.7872, 0.1354, 1.1063, -0.591,
         0.4941, 0.541, -1.2812);
    case_free(&c);
}

static void test_conv_transpose(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 2, 3), -0.42, -0.2, 0.95, -0.82, 0.93, -0.98, -0.45,
                      -0.18, 0.83, 0.36, 0.25, 0.27);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(2, 1, 3, 2), 0.54, -0.68, 0.45, 0.58, 0.11, 0.4, -0.83,
                      -0.85, 0.23, 0.42, -0.56, -0.58);
    QnValue *bias = GIVE(&c, F32, QN_SHAPE(2), 0.48, 0.95);
    QnConvAttr attr = { { 2, { 2, 2 } }, { 4, { 1, 0, 1, 0 } }, { 0 }, 2 };
    QnInts extra = { 2, { 1, 0 } };
    WANT(&c, qn_conv_transpose(c.g, x, w, bias, &attr, extra), QN_SHAPE(1, 2, 4, 6), 0.291, 0.2364,
         0.39, 0.364, 0.9075, 1.031, -0.009, 0.8696, 0.9602, -0.2324, 0.0553, 1.5264, 0.111, 0.0044,
         0.8985, 1.0194, 0.039, -0.0884, 0.3898, 0.152, 0.5823, 0.852, 0.3722, 0.088, 0.8465, 0.761,
         0.9086, 0.8744, 1.1409, 1.2986, 0.9032, 0.905, 0.8433, 0.8419, 0.2611, 0.2391, 1.0328,
         1.1012, 1.0075, 1.055, 1.0121, 1.0634, 0.7484, 0.7412, 0.81, 0.805, 0.7988, 0.7934);
    case_free(&c);
}

static void test_conv_gradients(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, F32, QN_SHAPE(1, 1, 3, 3), -0.1, 0.37, 1, -0.36, 0.32, 0.08, -0.3, -0.48, -0.43);
    QnValue *w =
        GIVE(&c, F32, QN_SHAPE(2, 1, 2, 2), 0.27, -0.76, 0.78, 0.18, -0.07, 0.46, 0.01, -0.92);
    QnValue *bias = GIVE(&c, F32, QN_SHAPE(2), -0.07, 0.06);
    QnConvAttr attr = { { 2, { 2, 2 } }, { 4, { 1, 1, 1, 1 } }, { 0 }, 1 };
    QnValue *y = qn_sum(c.g, qn_square(c.g, qn_conv(c.g, x, w, bias, &attr)), QN_ALL_AXES, false);
    QnValue *d[3];
    assert_ok(qn_grad(c.g, y, (QnValue *[]){ x, w, bias }, 3, d));
    WANT(&c, d[0], QN_SHAPE(1, 1, 3, 3), -0.31136, 0.60469, 1.719088, -0.070624, -0.333076,
         1.182208, -0.25968, -0.764768, -1.0346);
    WANT(&c, d[1], QN_SHAPE(2, 1, 2, 2), -0.317568, -0.187104, 0.771316, 1.151772, 0.297728,
         -0.048256, -1.080254, -2.245312);
    WANT(&c, d[2], QN_SHAPE(2), -0.072, -0.1374);
    case_free(&c);
}

static void test_conv_refuses_what_does_not_fit(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 1), 1, 2, 3);
    QnValue *y = qn_conv(c.g, x, w, NULL, &(QnConvAttr){ 0 });
    case_want_refused(&c, y, QN_ESHAPE, "spatial axis 0");
    case_free(&c);
    c = case_new();
    x = GIVE(&c, F32, QN_SHAPE(1, 2, 1, 1), 1, 2);
    w = GIVE(&c, F32, QN_SHAPE(1, 1, 1, 1), 1);
    y = qn_conv(c.g, x, w, NULL, &(QnConvAttr){ 0 });
    case_want_refused(&c, y, QN_ESHAPE, "2 channels");
    case_free(&c);
}

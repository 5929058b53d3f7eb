/* Sampling of images and its relatives as ONNX defines them. */
/* Expected values from onnx.reference on the inputs shown; of grid_sample from PyTorch and of
 * deform_conv from loops, both in float64, where onnx.reference agrees to f32. */
#include "values.h"

static void test_grid_sample_linear_zeros(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_ZEROS, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0, 0, 0, 0, 0, 0);
    case_free(&c);
}

static void test_grid_sample_linear_zeros_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_ZEROS, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0, 0, 0.1344875, 0, 0,
         0.242);
    case_free(&c);
}

static void test_grid_sample_linear_border(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_BORDER, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), -0.4834, -0.46, 0.28125,
         0.45, 0.495, 0.4275);
    case_free(&c);
}

static void test_grid_sample_linear_border_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_BORDER, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), -0.0463, -0.46, 0.5075,
         0.45, 0.43, 0.605);
    case_free(&c);
}

static void test_grid_sample_linear_reflection(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_REFLECTION, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.313276, 0.60705, 0.27105,
         0.028204, -0.131778, 0.31425);
    case_free(&c);
}

static void test_grid_sample_linear_reflection_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_REFLECTION, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.287788, 0.637355,
         0.2814875, 0.060152, -0.145464, 0.278);
    case_free(&c);
}

static void test_grid_sample_nearest_zeros(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_NEAREST, QN_SAMPLE_ZEROS, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0, 0, 0, 0, 0, 0);
    case_free(&c);
}

static void test_grid_sample_nearest_zeros_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_NEAREST, QN_SAMPLE_ZEROS, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0, 0, 0, 0, 0, 0);
    case_free(&c);
}

static void test_grid_sample_nearest_border(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_NEAREST, QN_SAMPLE_BORDER, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), -0.85, -0.46, 0.96, 0.45,
         0.61, 0.96);
    case_free(&c);
}

static void test_grid_sample_nearest_border_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_NEAREST, QN_SAMPLE_BORDER, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.56, -0.46, 0.96, 0.45,
         0.36, 0.96);
    case_free(&c);
}

static void test_grid_sample_nearest_reflection(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_NEAREST, QN_SAMPLE_REFLECTION, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.96, 0.96, 0.96, 0, 0.45,
         0.96);
    case_free(&c);
}

static void test_grid_sample_nearest_reflection_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_NEAREST, QN_SAMPLE_REFLECTION, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.08, 0.96, 0.08, 0.08, 0,
         0.08);
    case_free(&c);
}

static void test_grid_sample_cubic_zeros(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_CUBIC, QN_SAMPLE_ZEROS, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0, 0, -0.0396909703125, 0,
         0, -0.0680056237793);
    case_free(&c);
}

static void test_grid_sample_cubic_zeros_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_CUBIC, QN_SAMPLE_ZEROS, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.003218599818915,
         0.03237161365547, 0.1797026519983, 0.000563299233525, -0.054369570816, 0.37317359375);
    case_free(&c);
}

static void test_grid_sample_cubic_border(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_CUBIC, QN_SAMPLE_BORDER, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), -0.49044184, -0.481735,
         0.46376953125, 0.45, 0.52709328, 0.6471533203125);
    case_free(&c);
}

static void test_grid_sample_cubic_border_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_CUBIC, QN_SAMPLE_BORDER, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.037046255, -0.497389375,
         0.719140044453, 0.45, 0.46364704, 0.888070625);
    case_free(&c);
}

static void test_grid_sample_cubic_reflection(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_CUBIC, QN_SAMPLE_REFLECTION, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.4682337487377,
         0.8818620575156, 0.3982680825, 0.003755307535255, -0.2568262058989, 0.4593352734375);
    case_free(&c);
}

static void test_grid_sample_cubic_reflection_of_centres(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 3, 4), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.62, -2.26, -1.1, 2.13, -1.49, -0.25,
                         2.24, -2.47, 0.52, 2.34, -1.4, 0.25);
    QnGridSampleAttr attr = { QN_RESIZE_CUBIC, QN_SAMPLE_REFLECTION, true };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 2, 3), 0.3745574873163,
         0.8173888125329, 0.3630012585217, -0.008846226347635, -0.2566562580173, 0.35238359375);
    case_free(&c);
}

static void test_grid_sample_of_three_axes(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 2, 3, 2), 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59,
                      -0.02, -0.26, -0.05, -0.27, 0.68);
    QnValue *grid = GIVE(&c, F32, QN_SHAPE(1, 1, 2, 2, 3), 0.64, -0.45, 0.17, -0.54, -0.11, -0.35,
                         0.38, -0.31, -0.1, 0.53, -0.21, 0.98);
    QnGridSampleAttr attr = { QN_RESIZE_LINEAR, QN_SAMPLE_ZEROS, false };
    WANT(&c, qn_grid_sample(c.g, x, grid, &attr), QN_SHAPE(1, 1, 1, 2, 2), -0.1108669, 0.099192,
         -0.0411452, -0.02045342);
    case_free(&c);
}

static void test_affine_grid(void **state)
{
    Case c = case_new();
    QnValue *theta = GIVE(&c, F32, QN_SHAPE(1, 2, 3), -0.64, 0.48, -0.16, -0.15, 0.27, 0.05);
    WANT(&c, qn_affine_grid(c.g, theta, &(QnDims){ 2, { 2, 3 } }, false), QN_SHAPE(1, 2, 3, 2),
         0.02666666666667, 0.015, -0.4, -0.085, -0.8266666666667, -0.185, 0.5066666666667, 0.285,
         0.08, 0.185, -0.3466666666667, 0.085);
    case_free(&c);
}

static void test_affine_grid_of_centres(void **state)
{
    Case c = case_new();
    QnValue *theta = GIVE(&c, F32, QN_SHAPE(1, 2, 3), -0.64, 0.48, -0.16, -0.15, 0.27, 0.05);
    WANT(&c, qn_affine_grid(c.g, theta, &(QnDims){ 2, { 2, 3 } }, true), QN_SHAPE(1, 2, 3, 2), 0,
         -0.07, -0.64, -0.22, -1.28, -0.37, 0.96, 0.47, 0.32, 0.32, -0.32, 0.17);
    case_free(&c);
}

static void test_affine_grid_of_three_axes(void **state)
{
    Case c = case_new();
    QnValue *theta = GIVE(&c, F32, QN_SHAPE(1, 3, 4), -0.17, -1, -0.82, 0.42, 0.05, 0.39, 0.91,
                          0.37, -0.89, -0.38, 0.19, -0.53);
    WANT(&c, qn_affine_grid(c.g, theta, &(QnDims){ 3, { 2, 1, 3 } }, false),
         QN_SHAPE(1, 2, 1, 3, 3), 0.9433333333333, -0.1183333333333, -0.03166666666667, 0.83,
         -0.085, -0.625, 0.7166666666667, -0.05166666666667, -1.218333333333, 0.1233333333333,
         0.7916666666667, 0.1583333333333, 0.01, 0.825, -0.435, -0.1033333333333, 0.8583333333333,
         -1.028333333333);
    case_free(&c);
}

static void test_deform_conv(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 3), 0.93, 0.89, 0.7, -0.06, 0.68, -0.74, -0.38,
                      -0.07, 0.48, -0.03, -0.73, -0.31, -0.35, -0.4, -0.67, -0.17, -0.1, 0.55);
    QnValue *w =
        GIVE(&c, F32, QN_SHAPE(2, 1, 2, 2), 0.59, 0.04, -0.08, 0.56, 0.77, 0.35, 0.6, 0.88);
    QnValue *offset = GIVE(
        &c, F32, QN_SHAPE(1, 16, 2, 2), -0.92, 0.75, -0.45, -0.05, 0.59, 0.43, -0.71, 0.32, -0.86,
        -0.29, 0.63, -0.14, 0.2, 0.46, 0.64, 0.52, -0.99, -0.16, -0.07, -0.89, 0.08, 0.22, 0.66,
        0.88, -0.74, -0.54, 0.32, -0.74, -0.55, 0.15, -0.66, 0.56, 0.71, -0.93, 0.07, 0.59, 0.95,
        -0.45, -0.66, 0.75, 0.82, -0.6, -0.12, 0.44, 0.69, -0.66, 0.33, 0.62, 0.1, -0.67, -0.93,
        -0.44, 0.62, -0.91, -0.98, -0.28, -0.87, -0.7, -0.95, 0.05, 0.39, -0.15, -0.73, -0.34);
    QnValue *bias = GIVE(&c, F32, QN_SHAPE(2), 0.18, 0.88);
    QnValue *mask =
        GIVE(&c, F32, QN_SHAPE(1, 8, 2, 2), 0.99, -0.52, -0.98, 0.66, 0.85, -0.08, 0.54, 0.73, 0.22,
             0.75, -0.95, -0.46, -0.45, -0.76, 0.82, -0.94, 0.35, -0.86, -0.28, -0.16, -0.64, 0.04,
             0.07, -0.37, 0.47, -0.68, -0.61, -0.29, -0.24, -0.59, 0.84, 0.66);
    QnDeformConvAttr attr = { .conv = { .groups = 2 }, .offset_groups = 2 };
    WANT(&c, qn_deform_conv(c.g, x, w, offset, bias, mask, &attr), QN_SHAPE(1, 2, 2, 2),
         0.0223046368, 0.060903698, 0.0215053358, 0.3530020952, 0.8927045351, 1.20271499,
         0.6340699296, 1.111556676);
    case_free(&c);
}

static void test_deform_conv_with_strides_and_pads(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 4, 4), -0.79, -0.26, -0.53, -0.1, -0.45, 0, 0.85,
                      -0.23, 0.3, 0.19, 0.5, -0.88, 0.49, 0.89, 0.21, -0.42);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(1, 1, 2, 2), 0.34, 0.42, 0.31, -0.71);
    QnValue *offset =
        GIVE(&c, F32, QN_SHAPE(1, 8, 2, 3), 1.89, 1.82, -0.3, 0.37, -1.84, 1.95, 1.27, 0.55, 1.04,
             -1.25, -0.77, -1.01, 0.38, -1.63, 1.58, -0.15, -0.22, -1.58, 0.74, 1.27, 0.52, -1.03,
             1.14, -1.42, 1.31, 0.32, -0.84, 0.05, 0.52, -0.97, 1.39, -0.31, 1.57, 1.34, -1.6, 0.59,
             -0.76, 1.02, 0.17, -0.17, 1.58, -1.77, 0.23, -0.69, -1.86, 1.01, 0.25, 1.58);
    QnDeformConvAttr attr = { .conv = { .strides = { 2, { 2, 1 } },
                                        .pads = { 4, { 1, 0, 0, 1 } },
                                        .dilations = { 2, { 1, 2 } } } };
    WANT(&c, qn_deform_conv(c.g, x, w, offset, NULL, NULL, &attr), QN_SHAPE(1, 1, 2, 3), 0.19743774,
         -0.35744344, 0.19037518, 0.61588705, 0.10703956, 0.30099576);
    case_free(&c);
}

static void test_col2im(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, F32, QN_SHAPE(1, 8, 4), 0.2, -0.33, 0.97, -0.77, -0.89, 0.47, -0.26, -0.28, 0.75,
             -0.35, 0.78, 0.29, -0.34, -0.88, -0.51, 0.94, -0.19, -0.68, -0.4, 0.8, -0.67, 0.56,
             -0.73, 0.92, 0.06, -0.91, 0.86, -0.28, 0.46, 0.05, -0.81, -0.79);
    WANT(&c, qn_col2im(c.g, x, QN_INTS(3, 3), QN_INTS(2, 2), QN_ALL_AXES, QN_ALL_AXES, QN_ALL_AXES),
         QN_SHAPE(1, 2, 3, 3), 0.2, -1.22, 0.47, 1.72, -1.72, -1.16, 0.78, -0.22, 0.94, -0.19,
         -1.35, 0.56, -0.34, -0.38, 0.97, 0.86, -1.09, -0.79);
    case_free(&c);
}

static void test_col2im_with_pads_strides_and_dilations(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, F32, QN_SHAPE(1, 4, 12), -0.7, -0.68, -0.89, -0.91, 0.9, -0.82, 0.02, -0.76, -0.57,
             0.53, 0.88, -0.06, -0.99, 1, -0.9, -0.22, 0.08, 0.78, 0.65, 0.22, -0.2, 0.67, 0.74,
             0.74, 0.44, -0.8, -0.4, -0.03, 0.01, 0.67, -0.52, 0.33, -0.25, 0.55, -0.61, -0.05,
             -0.79, -0.58, 0.87, -0.37, 0.79, 0.05, -0.92, 0.59, -0.9, 0.65, -0.98, 0.35);
    WANT(&c,
         qn_col2im(c.g, x, QN_INTS(5, 6), QN_INTS(2, 2), QN_INTS(2, 1), QN_INTS(1, 0, 1, 0),
                   QN_INTS(2, 2)),
         QN_SHAPE(1, 1, 5, 6), 0, 0, 0, 0, 0, 0, 1.34, -1.62, -1.09, -0.59, 1.52, -0.15, 0, 0, 0, 0,
         0, 0, -0.56, 1.2, 0.95, 0.99, -0.18, 1.33, 0, 0, 0, 0, 0, 0);
    case_free(&c);
}

static void test_mistakes_are_named(void **state)
{
    Case c;
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 1, 3, 4));
        QnValue *grid = qn_input(c.g, "grid", F32, &QN_SHAPE(1, 2, 2, 3));
        case_want_refused(&c, qn_grid_sample(c.g, x, grid, &(QnGridSampleAttr){ 0 }), QN_ESHAPE,
                          "(N,out...,axes)");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 1, 3, 4));
        case_want_refused(&c, qn_affine_grid(c.g, x, &(QnDims){ 2, { 3, 3 } }, false), QN_ESHAPE,
                          "(N,2,3)");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 1, 3, 4));
        QnValue *w = qn_input(c.g, "w", F32, &QN_SHAPE(1, 1, 2, 2));
        QnValue *o = qn_input(c.g, "o", F32, &QN_SHAPE(1, 8, 3, 3));
        case_want_refused(&c, qn_deform_conv(c.g, x, w, o, NULL, NULL, &(QnDeformConvAttr){ 0 }),
                          QN_ESHAPE, "must be [1,8,2,3]");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *k = qn_input(c.g, "k", F32, &QN_SHAPE(1, 6, 4));
        case_want_refused(
            &c,
            qn_col2im(c.g, k, QN_INTS(3, 3), QN_INTS(2, 2), QN_ALL_AXES, QN_ALL_AXES, QN_ALL_AXES),
            QN_ESHAPE, "4 taps");
    }
    case_free(&c);
}

/* Regions of images as ONNX defines them. */
/* Expected values of roi_align from onnx.reference, of the rest from loops, on the inputs shown. */
#include "values.h"

static void test_roi_align_from_edges(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 1, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 4), 0, 0, 4, 3, 1, 1.5, 3.25, 2.5, -3, 2, 9, 7);
    QnValue *images = GIVE(&c, I64, QN_SHAPE(3), 0, 1, 1);
    QnRoiAttr attr = { .size = { 2, { 2, 2 } }, .sampling = 2, .scale = 1 };
    WANT(&c, qn_roi_align(c.g, x, rois, images, &attr), QN_SHAPE(3, 1, 2, 2), -0.08921875,
         -0.1796875, 0.164375, -0.35046875, -0.04046875, 0.01078125, -0.10921875, -0.08984375,
         0.02140625, -0.208125, 0, 0);
    case_free(&c);
}

static void test_roi_align_with_half_pixels(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 1, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 4), 0, 0, 4, 3, 1, 1.5, 3.25, 2.5, -3, 2, 9, 7);
    QnValue *images = GIVE(&c, I64, QN_SHAPE(3), 0, 1, 1);
    QnRoiAttr attr = { .size = { 2, { 1, 3 } }, .scale = 0.75, .half_pixel = true };
    WANT(&c, qn_roi_align(c.g, x, rois, images, &attr), QN_SHAPE(3, 1, 1, 3), -0.31125,
         0.3329166666667, -0.4433333333333, -0.315625, 0.0921875, 0.3453125, -0.004869791666667,
         0.0394140625, -0.13171875);
    case_free(&c);
}

static void test_roi_align_greatest(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 1, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 4), 0, 0, 4, 3, 1, 1.5, 3.25, 2.5, -3, 2, 9, 7);
    QnValue *images = GIVE(&c, I64, QN_SHAPE(3), 0, 1, 1);
    QnRoiAttr attr = {
        .size = { 2, { 2, 2 } }, .mode = QN_ROI_MAX, .sampling = 2, .scale = 1, .half_pixel = true
    };
    WANT(&c, qn_roi_align(c.g, x, rois, images, &attr), QN_SHAPE(3, 1, 2, 2), 0.56, 0.45, 0.53375,
         0.1075, 0.150390625, 0.396484375, 0.064453125, 0.169921875, 0.54, 0, 0, 0);
    case_free(&c);
}

static void test_roi_align_gradient(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 1, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 4), 0, 0, 4, 3, 1, 1.5, 3.25, 2.5, -3, 2, 9, 7);
    QnValue *images = GIVE(&c, I64, QN_SHAPE(3), 0, 1, 1);
    QnValue *u = GIVE(&c, F32, QN_SHAPE(3, 1, 2, 1), -0.09, -0.29, 0.31, -0.26, -0.08, 0.44);
    QnRoiAttr attr = { .size = { 2, { 2, 1 } }, .scale = 0.75, .half_pixel = true };
    QnValue *y = qn_roi_align(c.g, x, rois, images, &attr), *dx;
    assert_ok(qn_grad_from(c.g, y, u, &x, 1, &dx));
    WANT(&c, dx, QN_SHAPE(2, 1, 4, 5), -0.029375, -0.029375, -0.029375, 0, 0, -0.07463541666667,
         -0.07463541666667, -0.07463541666667, 0, 0, -0.02265625, -0.02265625, -0.02265625, 0, 0, 0,
         0, 0, 0, 0, 0.0095361328125, 0.033603515625, 0.0149853515625, 0, 0, 0.003713650173611,
         0.02112521701389, 0.008112521701389, -0.002361111111111, -0.004131944444444,
         -0.01390082465278, -0.03290581597222, -0.01729058159722, -0.004722222222222,
         -0.008263888888889, 0.02829861111111, 0.02263888888889, 0.02263888888889, 0.02263888888889,
         0.03961805555556);
    case_free(&c);
}

static void test_roi_align_second_gradient(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 1, 4, 5), -0.85, 0.56, -0.12, 0.45, 0.96, 0.08, 0, -0.86,
                      -0.46, 0, 0.36, 0.61, -0.24, -0.87, -0.42, 0.82, -0.57, -0.1, 0.86, -0.95,
                      0.2, 0.9, -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59, -0.02,
                      -0.26, -0.05, -0.27, 0.68, 0.54, -0.37, 0.15, -0.45);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 4), 0, 0, 4, 3, 1, 1.5, 3.25, 2.5, -3, 2, 9, 7);
    QnValue *images = GIVE(&c, I64, QN_SHAPE(3), 0, 1, 1);
    QnValue *u = GIVE(&c, F32, QN_SHAPE(3, 1, 2, 1), -0.09, -0.29, 0.31, -0.26, -0.08, 0.44);
    QnRoiAttr attr = { .size = { 2, { 2, 1 } }, .scale = 0.75, .half_pixel = true };
    QnValue *y = qn_roi_align(c.g, x, rois, images, &attr), *dx, *d2;
    assert_ok(qn_grad_from(c.g, y, u, &x, 1, &dx));
    QnValue *loss = qn_sum(c.g, qn_square(c.g, dx), QN_ALL_AXES, false);
    assert_ok(qn_grad(c.g, loss, &u, 1, &d2));
    WANT(&c, d2, QN_SHAPE(3, 1, 2, 1), -0.07430826822917, -0.1206624348958, 0.03355553097195,
         0.01457416640388, -0.00101648354236, 0.01918016975309);
    case_free(&c);
}

static void test_max_roi_pool(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 4, 5), -0.17, 0.81, -0.64, 0.48, -0.16, -0.15, 0.27,
                      0.05, -0.17, -1, -0.82, 0.42, 0.05, 0.39, 0.91, 0.37, -0.89, -0.38, 0.19,
                      -0.53, 0.93, 0.89, 0.7, -0.06, 0.68, -0.74, -0.38, -0.07, 0.48, -0.03, -0.73,
                      -0.31, -0.35, -0.4, -0.67, -0.17, -0.1, 0.55, 0.59, 0.04);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 5), 0, 1, 1, 3, 2, 0, 0, 0, 9, 5, 0, 6, 6, 8, 8);
    WANT(&c, qn_max_roi_pool(c.g, x, rois, QN_INTS(2, 2), 1), QN_SHAPE(3, 2, 2, 2), 0.27, 0.05,
         0.42, 0.39, -0.07, 0.48, -0.31, -0.35, 0.91, 0, 0.37, 0, 0.93, 0, 0.59, 0, 0, 0, 0, 0, 0,
         0, 0, 0);
    case_free(&c);
}

static void test_max_roi_pool_places(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 4, 5), -0.17, 0.81, -0.64, 0.48, -0.16, -0.15, 0.27,
                      0.05, -0.17, -1, -0.82, 0.42, 0.05, 0.39, 0.91, 0.37, -0.89, -0.38, 0.19,
                      -0.53, 0.93, 0.89, 0.7, -0.06, 0.68, -0.74, -0.38, -0.07, 0.48, -0.03, -0.73,
                      -0.31, -0.35, -0.4, -0.67, -0.17, -0.1, 0.55, 0.59, 0.04);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 5), 0, 1, 1, 3, 2, 0, 0, 0, 9, 5, 0, 6, 6, 8, 8);
    WANT(&c, qn_node_out(c.g, qn_max_roi_pool_node(c.g, x, rois, QN_INTS(2, 2), 1), 1),
         QN_SHAPE(3, 2, 2, 2), 6, 7, 11, 13, 27, 28, 31, 32, 14, 40, 15, 40, 20, 40, 38, 40, 40, 40,
         40, 40, 40, 40, 40, 40);
    case_free(&c);
}

static void test_max_roi_pool_gradient(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 4, 5), -0.17, 0.81, -0.64, 0.48, -0.16, -0.15, 0.27,
                      0.05, -0.17, -1, -0.82, 0.42, 0.05, 0.39, 0.91, 0.37, -0.89, -0.38, 0.19,
                      -0.53, 0.93, 0.89, 0.7, -0.06, 0.68, -0.74, -0.38, -0.07, 0.48, -0.03, -0.73,
                      -0.31, -0.35, -0.4, -0.67, -0.17, -0.1, 0.55, 0.59, 0.04);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(3, 5), 0, 1, 1, 3, 2, 0, 0, 0, 9, 5, 0, 6, 6, 8, 8);
    QnValue *u = GIVE(&c, F32, QN_SHAPE(3, 2, 2, 2), -0.08, 0.56, 0.77, 0.35, 0.6, 0.88, -0.92,
                      0.75, -0.45, -0.05, 0.59, 0.43, -0.71, 0.32, -0.86, -0.29, 0.63, -0.14, 0.2,
                      0.46, 0.64, 0.52, -0.99, -0.16);
    QnValue *y = qn_max_roi_pool(c.g, x, rois, QN_INTS(2, 2), 1), *dx;
    assert_ok(qn_grad_from(c.g, y, u, &x, 1, &dx));
    WANT(&c, dx, QN_SHAPE(1, 2, 4, 5), 0, 0, 0, 0, 0, 0, -0.08, 0.56, 0, 0, 0, 0.77, 0, 0.35, -0.45,
         0.59, 0, 0, 0, 0, -0.71, 0, 0, 0, 0, 0, 0, 0.6, 0.88, 0, 0, -0.92, 0.75, 0, 0, 0, 0, 0,
         -0.86, 0);
    case_free(&c);
}

static void test_bad_regions_are_named(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 1, 1, 2), 1, 2);
    QnValue *rois = GIVE(&c, F32, QN_SHAPE(2, 4), 0, 0, 1, 1, 0, 0, 1e9, 1);
    QnRoiAttr attr = { .size = { 2, { 1, 1 } }, .scale = 1 };
    QnValue *zeros = GIVE(&c, I64, QN_SHAPE(2), 0, 0), *far = GIVE(&c, I64, QN_SHAPE(2), 0, 1);
    case_want_error(&c, qn_roi_align(c.g, x, rois, zeros, &attr), "region 1");
    case_want_error(&c, qn_roi_align(c.g, x, rois, far, &attr), "element 1");
    case_free(&c);
}

static void test_mistakes_are_named(void **state)
{
    Case c;
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 2, 4, 3));
        QnValue *rois = qn_input(c.g, "rois", F32, &QN_SHAPE(3, 4));
        QnValue *im = qn_input(c.g, "im", I64, &QN_SHAPE(2));
        case_want_refused(
            &c, qn_roi_align(c.g, x, rois, im, &(QnRoiAttr){ .size = { 2, { 1, 1 } }, .scale = 1 }),
            QN_ESHAPE, "(R,4)");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 2, 4, 3));
        QnValue *rois = qn_input(c.g, "rois", F32, &QN_SHAPE(3, 4));
        case_want_refused(&c, qn_max_roi_pool(c.g, x, rois, QN_INTS(1, 1), 1), QN_ESHAPE, "(R,5)");
    }
    case_free(&c);
}

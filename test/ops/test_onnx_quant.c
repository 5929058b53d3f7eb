/* Quantisation as ONNX defines it. */
/* Expected values from onnx.reference on the inputs shown. */
#include "values.h"

static void test_quantize_rounds_ties_to_even_and_saturates(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, F32, QN_SHAPE(8), -50, -0.3125, -0.1875, -0.0625, 0.0625, 0.1875, 0.3125, 90);
    QnValue *s = GIVE(&c, F32, ((QnShape){ 0 }), 0.125);
    QnValue *z = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 3);
    WANT(&c, qn_quantize_linear(c.g, x, s, z, QN_DTYPE_U8, 0, 0), QN_SHAPE(8), 0, 1, 1, 3, 3, 5, 5,
         255);
    case_free(&c);
}

static void test_quantize_by_axis(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3, 2), -2.55, 1.68, -0.36, 1.35, 2.88, 0.24, 0, -2.58,
                      -1.38, 0, 1.08, 1.83);
    QnValue *s = GIVE(&c, F32, QN_SHAPE(3), 0.01, 0.02, 0.05);
    QnValue *z = GIVE(&c, QN_DTYPE_I8, QN_SHAPE(3), 1, -2, 3);
    WANT(&c, qn_quantize_linear(c.g, x, s, z, QN_DTYPE_I8, 1, 0), QN_SHAPE(2, 3, 2), -128, 127, -20,
         66, 61, 8, 1, -128, -71, -2, 25, 40);
    case_free(&c);
}

static void test_dequantize_by_blocks(void **state)
{
    Case c = case_new();
    QnValue *x =
        GIVE(&c, QN_DTYPE_I8, QN_SHAPE(2, 5), 44, -128, -53, -73, 122, -122, -109, 60, -84, 63);
    QnValue *s = GIVE(&c, F32, QN_SHAPE(2, 3), 0.051, 0.094, 0.012, 0.064, 0.096, 0.031);
    QnValue *z = GIVE(&c, QN_DTYPE_I8, QN_SHAPE(2, 3), 19, -23, -31, 27, 2, -11);
    WANT(&c, qn_dequantize_linear(c.g, x, s, z, 1, 2), QN_SHAPE(2, 5), 1.275, -7.497, -2.82, -4.7,
         1.836, -9.536, -8.704, 5.568, -8.256, 2.294);
    case_free(&c);
}

static void test_dequantize_by_one_scale(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 3), 227, 195, 72, 83, 176, 1);
    QnValue *s = GIVE(&c, F32, ((QnShape){ 0 }), 0.5);
    QnValue *z = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 128);
    WANT(&c, qn_dequantize_linear(c.g, x, s, z, 1, 0), QN_SHAPE(2, 3), 49.5, 33.5, -28, -22.5, 24,
         -63.5);
    case_free(&c);
}

static void test_dynamic_quantize_codes(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(6), -0.18, -1.77, -0.06, -0.78, -0.15, -0.81);
    WANT(&c, qn_node_out(c.g, qn_dynamic_quantize_linear(c.g, x), 0), QN_SHAPE(6), 229, 0, 246, 143,
         233, 138);
    case_free(&c);
}

static void test_dynamic_quantize_scale(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(6), -0.18, -1.77, -0.06, -0.78, -0.15, -0.81);
    WANT(&c, qn_node_out(c.g, qn_dynamic_quantize_linear(c.g, x), 1), ((QnShape){ 0 }),
         0.006941176470588);
    case_free(&c);
}

static void test_dynamic_quantize_zero_point(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(6), -0.18, -1.77, -0.06, -0.78, -0.15, -0.81);
    WANT(&c, qn_node_out(c.g, qn_dynamic_quantize_linear(c.g, x), 2), ((QnShape){ 0 }), 255);
    case_free(&c);
}

static void test_dynamic_quantize_of_zeros(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2), 0, 0);
    WANT(&c, qn_node_out(c.g, qn_dynamic_quantize_linear(c.g, x), 1), ((QnShape){ 0 }),
         0.003921568627451);
    case_free(&c);
}

static void test_matmul_integer(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 3), 35, 192, 61, 135, 151, 92);
    QnValue *b = GIVE(&c, QN_DTYPE_I8, QN_SHAPE(3, 2), 119, 96, 21, -28, 35, 97);
    QnValue *p = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 12);
    QnValue *q = GIVE(&c, QN_DTYPE_I8, ((QnShape){ 0 }), -7);
    WANT(&c, qn_matmul_integer(c.g, a, b, p, q), QN_SHAPE(2, 2), 9996, 3685, 22750, 18070);
    case_free(&c);
}

static void test_matmul_integer_with_a_zero_point_for_each_row_and_column(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 2, 3), 67, 123, 219, 225, 19, 155, 4, 19, 33,
                      123, 30, 185);
    QnValue *b = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(3, 2), 229, 73, 221, 209, 127, 159);
    QnValue *p = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2), 12, 250);
    QnValue *q = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2), 7, 99);
    WANT(&c, qn_matmul_integer(c.g, a, b, p, q), QN_SHAPE(2, 2, 2), 60804, 23200, -66384, -30460,
         2242, 2238, -83074, -24798);
    case_free(&c);
}

static void test_matmul_integer_with_the_second_zero_point_alone(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 3), 130, 83, 178, 146, 21, 119);
    QnValue *b = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(3, 2), 67, 203, 186, 47, 16, 12);
    QnValue *q = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 7);
    WANT(&c, qn_matmul_integer(c.g, a, b, NULL, q), QN_SHAPE(2, 2), 24259, 29690, 13590, 30051);
    case_free(&c);
}

static void test_conv_integer(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(1, 2, 3, 3), 93, 107, 233, 137, 76, 67, 110, 142,
                      124, 20, 53, 252, 143, 59, 35, 48, 4, 43);
    QnValue *w = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 2, 2, 2), 200, 218, 250, 54, 43, 239, 215, 205,
                      178, 39, 131, 157, 140, 204, 79, 29);
    QnValue *p = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 12);
    QnConvAttr attr = { .pads = { 4, { 1, 0, 0, 1 } } };
    WANT(&c, qn_conv_integer(c.g, x, w, p, NULL, &attr), QN_SHAPE(1, 2, 3, 3), 35505, 93699, 106850,
         119559, 160091, 73215, 93438, 75491, 46654, 27347, 57341, 47911, 65742, 101628, 81960,
         88534, 59690, 30131);
    case_free(&c);
}

static void test_qlinear_matmul(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 4), 136, 54, 166, 117, 198, 149, 44, 219);
    QnValue *as = GIVE(&c, F32, ((QnShape){ 0 }), 0.0066);
    QnValue *az = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 113);
    QnValue *b = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(4, 3), 135, 209, 234, 239, 197, 100, 180, 233, 169,
                      29, 26, 64);
    QnValue *bs = GIVE(&c, F32, ((QnShape){ 0 }), 0.00705);
    QnValue *bz = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 114);
    QnValue *ys = GIVE(&c, F32, ((QnShape){ 0 }), 0.0107);
    QnValue *yz = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 118);
    WANT(&c, qn_qlinear_matmul(c.g, a, as, az, b, bs, bz, ys, yz), QN_SHAPE(2, 3), 102, 132, 145,
         86, 90, 121);
    case_free(&c);
}

static void test_qlinear_conv_with_bias(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(1, 1, 4, 4), 252, 190, 214, 226, 12, 134, 232, 162,
                      187, 106, 110, 116, 241, 93, 230, 234);
    QnValue *xs = GIVE(&c, F32, ((QnShape){ 0 }), 0.004);
    QnValue *xz = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 120);
    QnValue *w = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2, 1, 2, 2), 17, 5, 79, 49, 182, 76, 105, 232);
    QnValue *ws = GIVE(&c, F32, QN_SHAPE(2), 0.01, 0.02);
    QnValue *wz = GIVE(&c, QN_DTYPE_U8, QN_SHAPE(2), 100, 140);
    QnValue *ys = GIVE(&c, F32, ((QnShape){ 0 }), 0.05);
    QnValue *yz = GIVE(&c, QN_DTYPE_U8, ((QnShape){ 0 }), 127);
    QnValue *bias = GIVE(&c, QN_DTYPE_I32, QN_SHAPE(2), 300, -4000);
    WANT(&c, qn_qlinear_conv(c.g, x, xs, xz, w, ws, wz, ys, yz, bias, &(QnConvAttr){ 0 }),
         QN_SHAPE(1, 2, 3, 3), 114, 111, 109, 133, 118, 117, 123, 125, 122, 130, 131, 116, 106, 109,
         124, 116, 138, 131);
    case_free(&c);
}

static void test_mistakes_are_named(void **state)
{
    Case c;
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(2));
        case_want_refused(&c, qn_quantize_linear(c.g, x, s, NULL, QN_DTYPE_I8, 1, 0), QN_ESHAPE,
                          "along axis 1");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1));
        QnValue *z = qn_input(c.g, "z", QN_DTYPE_U8, &QN_SHAPE(1));
        case_want_refused(&c, qn_quantize_linear(c.g, x, s, z, QN_DTYPE_I8, 1, 0), QN_EDTYPE,
                          "must agree");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1));
        case_want_refused(&c, qn_quantize_linear(c.g, x, s, NULL, I64, 1, 0), QN_EDTYPE, "32 bits");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *q = qn_input(c.g, "q", QN_DTYPE_I8, &QN_SHAPE(2, 3));
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1));
        case_want_refused(&c, qn_dequantize_linear(c.g, q, s, NULL, 1, 2), QN_ESHAPE,
                          "one for each block");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(2, 3));
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1));
        case_want_refused(&c, qn_dequantize_linear(c.g, x, s, NULL, 1, 0), QN_EDTYPE, "integers");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *q = qn_input(c.g, "q", QN_DTYPE_I8, &QN_SHAPE(2, 3));
        case_want_refused(&c, qn_matmul_integer(c.g, q, q, NULL, NULL), QN_ESHAPE, "do not fit");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *q = qn_input(c.g, "q", QN_DTYPE_I8, &QN_SHAPE(2, 3));
        QnValue *z = qn_input(c.g, "z", QN_DTYPE_U8, &QN_SHAPE(1));
        case_want_refused(&c,
                          qn_matmul_integer(c.g, q, qn_transpose(c.g, q, QN_AXES(1, 0)), z, NULL),
                          QN_EDTYPE, "zero points of operand 0");
    }
    case_free(&c);
}

/* Fourier transforms, determinants, rotary embeddings and draws as ONNX defines them. */
/* Expected values from onnx.reference in float64 on the inputs shown. */
#include "values.h"

static void test_dft_of_a_real_signal(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(1, 5, 1), -0.85, 0.56, -0.12, 0.45, 0.96);
    WANT(&c, qn_dft(c.g, x, -2, 0, false, false), QN_SHAPE(1, 5, 2), 1, 0, -0.6472697766938,
         0.7154602003248, -1.977730223306, -0.3069881133712, -1.977730223306, 0.3069881133712,
         -0.6472697766938, -0.7154602003248);
    case_free(&c);
}

static void test_dft_onesided_filled_with_zeros(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(2, 5, 1), 0.08, 0, -0.86, -0.46, 0, 0.36, 0.61,
                      -0.24, -0.87, -0.42);
    WANT(&c, qn_dft(c.g, x, 1, 6, false, true), QN_SHAPE(2, 4, 2), -1.24, 0, 0.97, 0.7447818472546,
         0.05, -0.7447818472546, -0.32, 0, -0.56, 0, 1.865, -0.6841600689897, -0.485,
         -0.3723909236273, -0.04, 0);
    case_free(&c);
}

static void test_dft_of_a_complex_signal_cut(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(4, 2, 2), 0.82, -0.57, -0.1, 0.86, -0.95, 0.2, 0.9,
                      -0.54, 0.1, 0.82, -0.73, 0.05, 0.5, 0.34, -0.06, -0.59);
    WANT(&c, qn_dft(c.g, x, 0, 3, false, false), QN_SHAPE(3, 2, 2), -0.03, 0.45, 0.07, 0.37,
         0.7080642496536, -0.1706733260263, -0.6959549882328, -0.3066214081686, 1.781935750346,
         -1.989326673974, 0.3259549882328, 2.516621408169);
    case_free(&c);
}

static void test_inverse_dft(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(1, 4, 2), -0.02, -0.26, -0.05, -0.27, 0.68, 0.54,
                      -0.37, 0.15);
    WANT(&c, qn_dft(c.g, x, -2, 0, true, false), QN_SHAPE(1, 4, 2), 0.06, 0.04, -0.07, -0.12, 0.27,
         0.1, -0.28, -0.28);
    case_free(&c);
}

static void test_inverse_onesided_dft_is_real(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(1, 4, 2), -0.45, -0.09, -0.29, 0.31, -0.26, -0.08,
                      0.44, -0.17);
    WANT(&c, qn_dft(c.g, x, -2, 0, true, true), QN_SHAPE(1, 6, 1), -0.185, -0.2197286142901,
         -0.02258330249198, -0.1383333333333, 0.202583302492, -0.08693805237653);
    case_free(&c);
}

static void test_inverse_onesided_dft_of_odd_length(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(1, 3, 2), 0.81, -0.64, 0.48, -0.16, -0.15, 0.27);
    WANT(&c, qn_dft(c.g, x, -2, 5, true, true), QN_SHAPE(1, 5, 1), 0.294, 0.2672590923778,
         0.1284600773241, -0.1522046424891, 0.2724854727872);
    case_free(&c);
}

static void test_stft(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(1, 10, 1), 0.05, -0.17, -1, -0.82, 0.42, 0.05,
                      0.39, 0.91, 0.37, -0.89);
    QnValue *window = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(4), -0.38, 0.19, -0.53, 0.93);
    WANT(&c, qn_stft(c.g, x, window, 4, 3, true), QN_SHAPE(1, 3, 3, 2), -0.2839, 0, -0.549, -0.7303,
         1.3059, 0, 0.7276, 0, 0.3381, 0.2829, -0.1574, 0, -0.9991, 0, 0.0479, -1.0006, 0.3105, 0);
    case_free(&c);
}

static void test_stft_of_a_complex_signal(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_F64, QN_SHAPE(1, 7, 2), 0.89, 0.7, -0.06, 0.68, -0.74, -0.38,
                      -0.07, 0.48, -0.03, -0.73, -0.31, -0.35, -0.4, -0.67);
    WANT(&c, qn_stft(c.g, x, NULL, 3, 2, false), QN_SHAPE(1, 3, 3, 2), 0.09, 1, 2.207986928012,
         -0.03889727457342, 0.3720130719885, 1.138897274573, -0.84, -0.63, 0.3578907385792,
         -0.2203589838486, -1.737890738579, -0.2896410161514, -0.74, -1.75, 0.602128129211,
         -0.2979422863406, 0.04787187078898, -0.1420577136594);
    case_free(&c);
}

static void test_det(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3, 3), -0.17, -0.1, 0.55, 0.59, 0.04, -0.08, 0.56, 0.77,
                      0.35, 0.6, 0.88, -0.92, 0.75, -0.45, -0.05, 0.59, 0.43, -0.71);
    WANT(&c, qn_det(c.g, x), QN_SHAPE(2), 0.249823, 0.10628);
    case_free(&c);
}

static void test_det_of_a_singular_matrix(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 2), 1, 2, 2, 4);
    WANT(&c, qn_det(c.g, x), ((QnShape){ 0 }), 0);
    case_free(&c);
}

static void test_rotary_embedding_of_halves(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 2, 4), 0.32, -0.86, -0.29, 0.63, -0.14, 0.2, 0.46,
                      0.64, 0.52, -0.99, -0.16, -0.07, -0.89, 0.08, 0.22, 0.66);
    QnValue *co = GIVE(&c, F32, QN_SHAPE(5, 2), 0.88, -0.74, -0.54, 0.32, -0.74, -0.55, 0.15, -0.66,
                       0.56, 0.71);
    QnValue *si = GIVE(&c, F32, QN_SHAPE(5, 2), -0.93, 0.07, 0.59, 0.95, -0.45, -0.66, 0.75, 0.82,
                       -0.6, -0.12);
    QnValue *at = GIVE(&c, I64, QN_SHAPE(1, 2), 4, 1);
    WANT(&c, qn_rotary_embedding(c.g, x, co, si, at, 0, 0, false), QN_SHAPE(1, 2, 2, 4), 0.0052,
         -0.535, -0.3544, 0.5505, -0.1958, -0.544, -0.331, 0.3948, 0.1952, -0.7113, -0.4016, 0.0691,
         0.3508, -0.6014, -0.6439, 0.2872);
    case_free(&c);
}

static void test_rotary_embedding_of_neighbours_in_part(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 2, 12), 0.44, 0.69, -0.66, 0.33, 0.62, 0.1, -0.67, -0.93,
                      -0.44, 0.62, -0.91, -0.98, -0.28, -0.87, -0.7, -0.95, 0.05, 0.39, -0.15,
                      -0.73, -0.34, 0.18, 0.88, 0.99);
    QnValue *co = GIVE(&c, F32, QN_SHAPE(1, 2, 2), -0.52, -0.98, 0.66, 0.85);
    QnValue *si = GIVE(&c, F32, QN_SHAPE(1, 2, 2), -0.08, 0.54, 0.73, 0.22);
    WANT(&c, qn_rotary_embedding(c.g, x, co, si, NULL, 2, 4, true), QN_SHAPE(1, 2, 12), -0.1736,
         -0.394, 0.4686, -0.6798, 0.62, 0.1, 0.274, 0.5372, 0.0964, -0.8452, -0.91, -0.98, 0.4503,
         -0.7786, -0.386, -0.9615, 0.05, 0.39, 0.4339, -0.5913, -0.3286, 0.0782, 0.88, 0.99);
    case_free(&c);
}

static void test_multinomial_draws_by_weight(void **state)
{
    enum { N = 20000 };
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3), -1, 0.5, -INFINITY, 700, 700, 699);
    QnValue *key = GIVE(&c, I64, QN_SHAPE(2), 3, 11);
    QnValue *y = qn_multinomial(c.g, x, key, N, I64);
    const double want[2][3] = { { 0.18242552380636, 0.81757447619364, 0 },
                                { 0.42231879825152, 0.42231879825152, 0.15536240349696 } };
    const double *got;
    assert_ok(qn_eval_get(c.e, y, &got));
    for (int r = 0; r < 2; r++) {
        double n[3] = { 0 };
        for (int i = 0; i < N; i++)
            n[(int)got[r * N + i]]++;
        for (int k = 0; k < 3; k++) {
            double p = want[r][k], spread = sqrt(p * (1 - p) / N);
            if (fabs(n[k] / N - p) > 4 * spread)
                fail_msg("row %d: class %d came with frequency %g, not %g", r, k, n[k] / N, p);
        }
    }
    case_free(&c);
}

static void test_multinomial_wants_finite_weights(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 2), 1, 2, NAN, 1);
    QnValue *y = qn_multinomial(c.g, x, GIVE(&c, I64, QN_SHAPE(2), 3, 11), 1, I64);
    case_want_error(&c, y, "row 1");
    case_free(&c);
}

static void test_mistakes_are_named(void **state)
{
    Case c;
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 4, 3));
        case_want_refused(&c, qn_dft(c.g, x, -2, 0, false, false), QN_ESHAPE, "real and imaginary");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1, 4, 1));
        case_want_refused(&c, qn_dft(c.g, s, -1, 0, false, false), QN_EARG, "before the last");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1, 4, 1));
        QnValue *w = qn_input(c.g, "w", F32, &QN_SHAPE(3));
        case_want_refused(&c, qn_stft(c.g, s, w, 2, 1, false), QN_ESHAPE, "2 elements");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *s = qn_input(c.g, "s", F32, &QN_SHAPE(1, 4, 1));
        case_want_refused(&c, qn_stft(c.g, s, NULL, 5, 1, false), QN_ESHAPE, "shorter than");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(1, 4, 3));
        case_want_refused(&c, qn_det(c.g, x), QN_ESHAPE, "square");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *h = qn_input(c.g, "h", F32, &QN_SHAPE(1, 2, 4, 6));
        QnValue *co = qn_input(c.g, "co", F32, &QN_SHAPE(5, 2));
        case_want_refused(&c, qn_rotary_embedding(c.g, h, co, co, NULL, 0, 0, false), QN_ESHAPE,
                          "must be [1,4,3]");
    }
    case_free(&c);
    c = case_new();
    {
        QnValue *h = qn_input(c.g, "h", F32, &QN_SHAPE(1, 2, 4, 6));
        QnValue *co = qn_input(c.g, "co", F32, &QN_SHAPE(5, 2));
        case_want_refused(&c, qn_rotary_embedding(c.g, h, co, co, NULL, 0, 3, false), QN_ESHAPE,
                          "even");
    }
    case_free(&c);
}

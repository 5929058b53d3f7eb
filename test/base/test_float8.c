/* Floats of 8 and 4 bits over all codes, against their definitions: values, ties, overflow. */
#include "test.h"

#include "base/float8.h"

#include <math.h>

/* By the definition of each format, written out apart from the code under test. */
static const struct {
    int exponent_bits, bias;
    bool has_inf, ieee_nan, unsigned_zero;
    double max, least; /* the largest number and the smallest above 0 */
} formats[] = {
    [QN_FLOAT8_E4M3FN] = { 4, 7, false, false, false, 448, 0x1p-9 },
    [QN_FLOAT8_E4M3FNUZ] = { 4, 8, false, false, true, 240, 0x1p-10 },
    [QN_FLOAT8_E5M2] = { 5, 15, true, true, false, 57344, 0x1p-16 },
    [QN_FLOAT8_E5M2FNUZ] = { 5, 16, false, false, true, 57344, 0x1p-17 },
    [QN_FLOAT8_E2M1] = { 2, 1, false, false, false, 6, 0.5 },
};

static int n_codes(int f)
{
    return f == QN_FLOAT8_E2M1 ? 16 : 256;
}

/* (-1)^s 2^e (1 + fraction), and the codes that mean something else. */
static double value_of(int f, int code)
{
    int half = n_codes(f) / 2, size = code % half, sign = code / half;
    int fraction_bits = (f == QN_FLOAT8_E2M1 ? 3 : 7) - formats[f].exponent_bits;
    int e = size >> fraction_bits, m = size & ((1 << fraction_bits) - 1);
    if (formats[f].unsigned_zero && code == half)
        return NAN;
    if (f == QN_FLOAT8_E4M3FN && size == 0x7f)
        return NAN;
    if (formats[f].ieee_nan && e == (1 << formats[f].exponent_bits) - 1)
        return m ? NAN : sign ? -INFINITY : INFINITY;
    double x = e ? (1 + m * pow(2, -fraction_bits)) * pow(2, e - formats[f].bias)
                 : m * pow(2, -fraction_bits) * pow(2, 1 - formats[f].bias);
    return sign ? -x : x;
}

static void test_every_code(void **state)
{
    for (int f = 0; f < QN_FLOAT8_COUNT; f++) {
        double least = INFINITY;
        for (int code = 0; code < n_codes(f); code++) {
            double want = value_of(f, code), got = qn_float8_decode((QnFloat8)f, (uint8_t)code);
            int back = qn_float8_encode((QnFloat8)f, got);
            if (isnan(want)) {
                assert_true(isnan(got));
                assert_true(isnan(value_of(f, back)));
                continue;
            }
            if (got != want || signbit(got) != signbit(want) || back != code)
                fail_msg("format %d, code %02x: %g, should be %g; back %02x", f, code, got, want,
                         back);
            assert_true(!isfinite(want) || fabs(want) <= formats[f].max);
            least = want > 0 ? fmin(least, want) : least;
        }
        assert_true(least == formats[f].least);
        assert_true(qn_float8_max((QnFloat8)f) == formats[f].max);
    }
}

/* Between neighbours: just below the middle, the middle (to the even code), just above. */
static void test_rounding(void **state)
{
    int n = 0;
    for (int f = 0; f < QN_FLOAT8_COUNT; f++) {
        int half = n_codes(f) / 2;
        for (int code = 0; code + 1 < half; code++) {
            double a = value_of(f, code), b = value_of(f, code + 1), mid = (a + b) / 2;
            if (!isfinite(a) || !isfinite(b))
                continue;
            for (int sign = 0; sign < 2; sign++) {
                double s = sign ? -1 : 1;
                int even = code % 2 ? code + 1 : code;
                int minus = sign ? half : 0;
                int zero = formats[f].unsigned_zero ? 0 : minus; /* of what rounds to 0 */
                int below = code ? code | minus : zero;
                assert_int_equal(qn_float8_encode((QnFloat8)f, s * nextafter(mid, 0)), below);
                assert_int_equal(qn_float8_encode((QnFloat8)f, s * mid),
                                 even ? even | minus : zero);
                assert_int_equal(qn_float8_encode((QnFloat8)f, s * nextafter(mid, 1e9)),
                                 (code + 1) | minus);
                n++;
            }
        }
    }
    assert_int_equal(n, 2 * (126 + 127 + 123 + 127 + 7));
}

static void test_overflow(void **state)
{
    for (int i = 0; i < QN_FLOAT8_COUNT; i++) {
        QnFloat8 f = (QnFloat8)i;
        double max = formats[f].max, step = max - value_of(f, qn_float8_encode(f, max) - 1);
        double tie = max + step / 2, below = nextafter(tie, 0);
        int top = qn_float8_encode(f, max), half = n_codes(f) / 2;
        bool none = f == QN_FLOAT8_E2M1; /* neither infinity nor NaN */
        const double big[] = { nextafter(tie, 1e9), 2 * max, 1e300, INFINITY };
        assert_int_equal(qn_float8_encode(f, below), top);
        assert_true(qn_float8_bound(f, below, false) == below);
        for (int k = 0; k < QN_COUNT(big); k++) {
            double over = qn_float8_bound(f, -big[k], false);
            if (isfinite(big[k]) || !formats[f].has_inf) {
                assert_int_equal(qn_float8_encode(f, big[k]), top);
                assert_int_equal(qn_float8_encode(f, -big[k]), top | half);
            }
            assert_true(qn_float8_bound(f, big[k], true) == max);
            assert_true(qn_float8_bound(f, -big[k], true) == -max);
            assert_true(none ? over == -max : formats[f].has_inf ? over == -INFINITY : isnan(over));
        }
        assert_true(isnan(qn_float8_bound(f, NAN, true)));
    }
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E5M2, -INFINITY), 0xfc);
    /* the tie of the largest number: e4m3fn's next code would be odd, e5m2's even */
    assert_true(qn_float8_bound(QN_FLOAT8_E4M3FN, 464, false) == 464);
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E4M3FN, 464), 0x7e);
    assert_true(isinf(qn_float8_bound(QN_FLOAT8_E5M2, 61440, false)));
}

static void test_nan(void **state)
{
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E4M3FN, NAN) & 0x7f, 0x7f);
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E5M2, NAN) & 0x7f, 0x7f);
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E4M3FNUZ, -NAN), 0x80);
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E5M2FNUZ, NAN), 0x80);
    assert_int_equal(qn_float8_encode(QN_FLOAT8_E2M1, NAN), 0x8);
}

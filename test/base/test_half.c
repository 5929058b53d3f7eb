/* Both 16-bit floats over all 65,536 patterns, and every tie between two neighbours. */
#include "test.h"

#include "base/half.h"

#include <math.h>

/* The value of a pattern by its definition: (-1)^s 2^e (1 + f), without bit tricks. */
static double value_of(unsigned h, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int e = (int)(h >> fraction_bits) & ((1 << exponent_bits) - 1);
    unsigned f = h & ((1u << fraction_bits) - 1);
    double x = e == 0 ? ldexp(f, 1 - bias - fraction_bits)
               : e == (1 << exponent_bits) - 1
                   ? (f ? NAN : INFINITY)
                   : ldexp(f + (double)(1u << fraction_bits), e - bias - fraction_bits);
    return h >> 15 ? -x : x;
}

static float widen(unsigned h, int exponent_bits)
{
    return exponent_bits == 5 ? qn_f16_to_f32((uint16_t)h) : qn_bf16_to_f32((uint16_t)h);
}

static unsigned narrow(float x, int exponent_bits)
{
    return exponent_bits == 5 ? qn_f32_to_f16(x) : qn_f32_to_bf16(x);
}

static void check_all(int exponent_bits)
{
    for (unsigned h = 0; h < 65536; h++) {
        double want = value_of(h, exponent_bits);
        float got = widen(h, exponent_bits);
        unsigned back = narrow(got, exponent_bits);
        if (isnan(want)) {
            assert_true(isnan(got));
            assert_true(isnan(widen(back, exponent_bits)));
            assert_int_equal(back >> 15, h >> 15);
        } else {
            assert_true((double)got == want);
            assert_int_equal(signbit(got) != 0, h >> 15);
            assert_int_equal(back, h);
        }
    }
}

/* Between each pattern and the next: just below the middle, the middle, just above it. */
static void check_ties(int exponent_bits)
{
    unsigned infinity = exponent_bits == 5 ? 0x7c00 : 0x7f80;
    for (unsigned h = 0; h < infinity; h++) {
        double low = value_of(h, exponent_bits), high = value_of(h + 1, exponent_bits);
        if (h + 1 == infinity) /* the next value as if there were one more exponent */
            high = low + (low - value_of(h - 1, exponent_bits));
        double middle = low + (high - low) / 2;
        for (int sign = 0; sign < 2; sign++) {
            unsigned s = sign ? 0x8000u : 0;
            float m = (float)(sign ? -middle : middle), far = sign ? -INFINITY : INFINITY;
            assert_true(fabs((double)m) == middle);
            assert_int_equal(narrow(m, exponent_bits), s | (h & 1 ? h + 1 : h));
            assert_int_equal(narrow(nextafterf(m, far), exponent_bits), s | (h + 1));
            assert_int_equal(narrow(nextafterf(m, 0), exponent_bits), s | h);
        }
    }
}

static void test_f16_every_pattern(void **state)
{
    check_all(5);
}

static void test_bf16_every_pattern(void **state)
{
    check_all(8);
}

static void test_f16_rounds_to_even(void **state)
{
    check_ties(5);
    assert_int_equal(qn_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(qn_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(qn_f32_to_f16(3e38f), 0x7c00);
    assert_int_equal(qn_f32_to_f16(-1e-30f), 0x8000);
}

static void test_bf16_rounds_to_even(void **state)
{
    check_ties(8);
    assert_int_equal(qn_f32_to_bf16(3.4028235e38f), 0x7f80);
    /* A NaN whose payload lies in the lower half only must not become infinity. */
    assert_true(isnan(qn_bf16_to_f32(qn_f32_to_bf16(qn_f32_from_bits(0x7f800001u)))));
    assert_true(isnan(qn_f16_to_f32(qn_f32_to_f16(qn_f32_from_bits(0xff800001u)))));
}

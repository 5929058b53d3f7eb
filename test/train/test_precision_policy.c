/* Statistics of rounding, and the rule of precision auto on made-up ones. labels: train */
#include "test.h"

#include "train/precision_policy.h"

#include <math.h>

static void test_statistics(void **state)
{
    (void)state;
    /* Times 2: 131072 is beyond f16, 2e-9 below half its least, 1 and 2^-24 are numbers of it. */
    const float x[] = { 0.5f, 0, 65536, 1e-9f, 0x1p-25f, 0 };
    QnRoundingStats s = qn_rounding_stats(x, QN_COUNT(x), 2, QN_PRECISION_FP16);
    assert_true(fabs(s.overflow - 0.25) < 1e-12 && fabs(s.underflow - 0.25) < 1e-12);
    assert_true(s.snr > 1e16 && isfinite(s.snr)); /* what is lost is 2e-9 */
    s = qn_rounding_stats(x, QN_COUNT(x), 2, QN_PRECISION_FP32);
    assert_true(s.overflow == 0 && s.underflow == 0 && isinf(s.snr));
    /* 1 + 2^-8 lies between two numbers of bf16 and goes to 1. */
    const float y[] = { 1 + 0x1p-8f };
    s = qn_rounding_stats(y, 1, 1, QN_PRECISION_BF16);
    assert_true(fabs(s.snr - (double)y[0] * (double)y[0] * 0x1p16) < 1);
    /* A power of two brings a tensor into the range of fp8, which spans 2^-16 to 57344. */
    const float z[] = { 1e-10f, 7e-11f, 1e-20f };
    s = qn_rounding_stats(z, 3, 65536, QN_PRECISION_FP8);
    assert_true(s.overflow == 0 && fabs(s.underflow - 1 / 3.0) < 1e-12);
    const float bad[] = { NAN, INFINITY };
    for (int t = 0; t < QN_AUTO_TYPES; t++)
        assert_true(qn_rounding_stats(bad, 2, 1, (QnPrecision)t).overflow == 1);
    s = qn_rounding_stats(NULL, 0, 1, QN_PRECISION_FP16);
    assert_true(s.overflow == 0 && s.underflow == 0 && isinf(s.snr));
}

static void test_worse_of_two(void **state)
{
    (void)state;
    QnRoundingStats s =
        qn_rounding_worse((QnRoundingStats){ 0, 0.5, 10 }, (QnRoundingStats){ 0.1, 0.2, INFINITY });
    assert_true(s.overflow == 0.1 && s.underflow == 0.5 && s.snr == 10);
}

#define FINE                                                                                       \
    {                                                                                              \
        0, 0, 1e5                                                                                  \
    }

/* f16 loses a share of the elements. */
static QnPrecision probe(QnAutoLayer *l, double underflow)
{
    const QnRoundingStats stats[] = { { .snr = INFINITY }, FINE, { 0, underflow, 1e6 }, FINE };
    QnPrecision because;
    l->now = qn_auto_decide(l, stats, 3, &because);
    return l->now;
}

static void test_lowering_waits(void **state)
{
    (void)state;
    QnAutoLayer l = { .name = "w" };
    assert_int_equal(probe(&l, 0), QN_PRECISION_FP32);
    assert_int_equal(probe(&l, 0), QN_PRECISION_FP32);
    assert_int_equal(probe(&l, 0), QN_PRECISION_FP16);
    assert_int_equal(probe(&l, 0), QN_PRECISION_FP16);
    QnAutoLayer m = { .name = "w", .takes_f8 = true };
    probe(&m, 0);
    probe(&m, 0);
    assert_int_equal(probe(&m, 0), QN_PRECISION_FP8);
}

static void test_one_violation_raises(void **state)
{
    (void)state;
    QnAutoLayer l = { .name = "w", .now = QN_PRECISION_FP16, .clean = { 9, 9, 9, 9 } };
    assert_int_equal(probe(&l, 0.011), QN_PRECISION_BF16);
    assert_int_equal(probe(&l, 0), QN_PRECISION_BF16); /* must hold anew */
    assert_int_equal(probe(&l, 0), QN_PRECISION_BF16);
    assert_int_equal(probe(&l, 0), QN_PRECISION_FP16);
}

/* Between half of the limit and the limit a type is kept, but not taken. */
static void test_hysteresis(void **state)
{
    (void)state;
    QnAutoLayer in = { .now = QN_PRECISION_FP16 }, out = { .now = QN_PRECISION_BF16 };
    for (int i = 0; i < 8; i++) {
        assert_int_equal(probe(&in, 0.007), QN_PRECISION_FP16);
        assert_int_equal(probe(&out, 0.007), QN_PRECISION_BF16);
    }
}

static void test_raises_past_what_fails_too(void **state)
{
    (void)state;
    const QnRoundingStats stats[] = { { .snr = INFINITY }, { 0.1, 0, 1e5 }, { 0, 0, 50 }, FINE };
    QnAutoLayer l = { .now = QN_PRECISION_FP16 };
    QnPrecision because;
    assert_int_equal(qn_auto_decide(&l, stats, 3, &because), QN_PRECISION_FP32);
    assert_int_equal(because, QN_PRECISION_FP16);
}

static void test_when_probes_are_due(void **state)
{
    (void)state;
    const int64_t due[] = { 0, 8, 16, 32, 64, 100, 200, 300 };
    int64_t at = 0;
    for (int64_t u = 0; u <= 300; u++) {
        bool is = at < QN_COUNT(due) && due[at] == u;
        assert_int_equal(qn_auto_is_due(u, 100), is);
        at += is;
    }
}

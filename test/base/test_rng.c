#include "test.h"

#include "base/rng.h"

#include <math.h>

static void check_block(uint64_t seed, uint64_t stream, uint64_t counter, const uint32_t want[4])
{
    uint32_t got[4];
    qn_rng_u32x4(seed, stream, counter, got);
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], want[i]);
}

/* The known answers published with Random123 for philox4x32-10. */
static void test_known_answers(void **state)
{
    check_block(0, 0, 0, (uint32_t[]){ 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 });
    check_block(UINT64_MAX, UINT64_MAX, UINT64_MAX,
                (uint32_t[]){ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd });
    /* key a4093822 299f31d0, counter 243f6a88 85a308d3 13198a2e 03707344: digits of pi */
    check_block(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull,
                (uint32_t[]){ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 });
}

static void test_seek_equals_reading_on(void **state)
{
    QnRng a, b;
    uint32_t words[100];
    qn_rng_init(&a, 7, 3);
    for (int i = 0; i < 100; i++)
        words[i] = qn_rng_u32(&a);
    for (int i = 99; i >= 0; i--) {
        qn_rng_init(&b, 7, 3);
        qn_rng_seek(&b, (uint64_t)i);
        for (int j = i; j < 100; j++)
            assert_int_equal(qn_rng_u32(&b), words[j]);
    }
    QnRng other;
    qn_rng_init(&other, 7, 4);
    int same = 0;
    for (int i = 0; i < 100; i++)
        same += qn_rng_u32(&other) == words[i];
    assert_int_equal(same, 0);
}

static void test_words_are_those_read_singly(void **state)
{
    QnRng a, b;
    uint32_t words[64];
    qn_rng_init(&a, 7, 3);
    qn_rng_init(&b, 7, 3);
    for (int64_t n = 0; n < 20; n++) {
        qn_rng_words(&a, words, n);
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(words[i], qn_rng_u32(&b));
        assert_int_equal(a.position, b.position);
    }
    assert_int_equal(qn_rng_u32(&a), qn_rng_u32(&b));
}

static void test_uniform_stays_below_one(void **state)
{
    assert_true(qn_rng_to_uniform(0) == 0.0f);
    assert_true(qn_rng_to_uniform(UINT32_MAX) == 1.0f - 0x1p-24f);
    QnRng rng;
    qn_rng_init(&rng, 1, 0);
    double sum = 0, square = 0;
    for (int i = 0; i < 100000; i++) {
        double u = (double)qn_rng_uniform(&rng);
        assert_true(u >= 0 && u < 1);
        sum += u;
        square += u * u;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005);
    assert_true(fabs(square / 100000 - 1.0 / 3) < 0.005);
}

static void test_normal_has_its_moments(void **state)
{
    QnRng rng;
    qn_rng_init(&rng, 5, 9);
    enum { N = 200000 };
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, beyond2 = 0;
    for (int i = 0; i < N; i++) {
        double x = (double)qn_rng_normal(&rng);
        m1 += x / N;
        m2 += x * x / N;
        m3 += x * x * x / N;
        m4 += x * x * x * x / N;
        beyond2 += (fabs(x) > 2) / (double)N;
    }
    assert_true(fabs(m1) < 0.01);
    assert_true(fabs(m2 - 1) < 0.02);
    assert_true(fabs(m3) < 0.04);
    assert_true(fabs(m4 - 3) < 0.1);
    assert_true(fabs(beyond2 - 0.0455) < 0.003);
    /* The ends of the words: large, but finite. */
    float pair[2];
    qn_rng_to_normal(0, 0, pair);
    assert_true(pair[0] > 6 && pair[0] < 7);
    qn_rng_to_normal(UINT32_MAX, UINT32_MAX, pair);
    assert_true(isfinite(pair[0]) && isfinite(pair[1]));
}

/* Beside the formula in long double: rounding to float is all that is lost, and a few units in a
 * double's last place of the radius where the sine or cosine has its zero. */
static void test_normal_is_the_formula(void **state)
{
    enum { N = 200000 };
    static uint32_t word[N];
    static float z[N];
    QnRng rng;
    qn_rng_init(&rng, 5, 9);
    qn_rng_words(&rng, word, N);
    for (uint32_t i = 0; i < 64; i++) { /* ends of the words; around the eighths of a turn */
        word[2 * i] = i < 32 ? i : 0u - i;
        word[2 * i + 1] = i * 0x10000000u + i % 3 - 1;
    }
    qn_rng_to_normals(word, N, z);
    for (int64_t i = 0; i < N; i += 2) {
        const long double tau = 6.283185307179586476925L;
        long double u = ((long double)word[i] + 0.5L) * 0x1p-32L;
        long double angle = tau * (long double)word[i + 1] * 0x1p-32L, radius = sqrtl(-2 * logl(u));
        long double want[2] = { radius * cosl(angle), radius * sinl(angle) };
        float pair[2];
        qn_rng_to_normal(word[i], word[i + 1], pair);
        for (int j = 0; j < 2; j++) {
            assert_true(fabsl((long double)z[i + j] - want[j]) <=
                        0x1p-24L * fabsl(want[j]) * (1 + 0x1p-20L) + 0x1p-50L * radius);
            assert_true(pair[j] == z[i + j]);
        }
    }
}

static void test_below_has_no_bias(void **state)
{
    QnRng rng;
    qn_rng_init(&rng, 11, 0);
    int seen[6] = { 0 };
    for (int i = 0; i < 60000; i++)
        seen[qn_rng_below(&rng, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[i], 9600, 10400);
    assert_int_equal(qn_rng_below(&rng, 1), 0);
    /* With 3 * 2^30 a plain remainder would give the lowest third twice as often. */
    int low = 0;
    for (int i = 0; i < 30000; i++)
        low += qn_rng_below(&rng, 3ull << 30) < 1ull << 30;
    assert_in_range(low, 9600, 10400);
    int high = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t x = qn_rng_below(&rng, 3ull << 62);
        assert_true(x < 3ull << 62);
        high += x >= 1ull << 62;
    }
    assert_in_range(high, 1200, 1470);
}

static void test_shuffle_reaches_every_order_equally(void **state)
{
    QnRng rng;
    qn_rng_init(&rng, 2, 0);
    int seen[27] = { 0 };
    for (int i = 0; i < 12000; i++) {
        int64_t items[3] = { 0, 1, 2 };
        qn_rng_shuffle(&rng, items, 3);
        seen[items[0] * 9 + items[1] * 3 + items[2]]++;
    }
    int orders = 0, total = 0;
    for (int i = 0; i < 27; i++) {
        if (!seen[i])
            continue;
        assert_in_range(seen[i], 1800, 2200);
        orders++;
        total += seen[i];
    }
    assert_int_equal(orders, 6);
    assert_int_equal(total, 12000);
}

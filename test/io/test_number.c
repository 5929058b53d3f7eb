/* labels: io */
#include "test.h"

#include <locale.h>

#include "base/rng.h"
#include "io/number.h"

static void test_accepted_and_refused(void **state)
{
    static const char *const good[] = { "0",
                                        "-0",
                                        "+5",
                                        "1.",
                                        ".5",
                                        "1e3",
                                        "1E-3",
                                        "-1.25e+02",
                                        "00012",
                                        "1e-400",
                                        "9007199254740993",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678901234567890",
                                        "0.1",
                                        "5e-324",
                                        "0.000000000000000000000000000000000000000001234",
                                        "1.7976931348623157e308",
                                        "1.510000000000000000e+02" };
    static const char *const bad[] = { "",    "-",   ".",     "e5", "1e", "1e+",   "0x10", "inf",
                                       "nan", "1,5", "1.2.3", " 1", "1 ", "1e999", "--1",  "1_0" };
    double d;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(qn_number_parse(good[i], strlen(good[i]), &d));
        double want = strtod(good[i], NULL);
        assert_memory_equal(&d, &want, sizeof d);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(qn_number_parse(bad[i], strlen(bad[i]), &d));
    char longest[130];
    memset(longest, '1', sizeof longest);
    assert_true(qn_number_parse(longest, 127, &d));
    assert_true(d == strtod("1.1111111111111111111e126", NULL));
    assert_false(qn_number_parse(longest, 128, &d));
    assert_true(qn_number_parse("15x", 2, &d) && d == 15); /* n bounds it, not a NUL */
}

static void test_rounds_as_strtod(void **state)
{
    QnRng rng;
    qn_rng_init(&rng, 1, 0);
    for (int i = 0; i < 200000; i++) {
        char text[64];
        double d;
        uint64_t digits = qn_rng_u64(&rng) >> qn_rng_below(&rng, 64);
        int exponent = (int)qn_rng_below(&rng, 60) - 30;
        int n = snprintf(text, sizeof text, "%s%llu.%llue%d", i % 2 ? "-" : "",
                         (unsigned long long)digits, (unsigned long long)qn_rng_below(&rng, 1000),
                         exponent);
        assert_true(qn_number_parse(text, (size_t)n, &d));
        double want = strtod(text, NULL);
        if (memcmp(&d, &want, sizeof d))
            fail_msg("%s: %.17g, expected %.17g", text, d, want);
    }
}

static void test_other_decimal_points(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "da_DK.UTF-8" };
    bool found = false;
    for (int i = 0; i < 4 && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) && localeconv()->decimal_point[0] == ',';
    if (!found)
        skip_because("no locale with a decimal comma");
    double a, b;
    bool ok = qn_number_parse("0.5", 3, &a) && qn_number_parse("1.25e300", 8, &b);
    setlocale(LC_NUMERIC, "C");
    assert_true(ok && a == 0.5 && b == 1.25e300);
}

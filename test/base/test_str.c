#include "test.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

static void test_grows_and_formats(void **state)
{
    QnStr str = { 0 };
    assert_string_equal(qn_str_text(&str), "");
    for (int i = 0; i < 1000; i++)
        qn_str_printf(&str, "%d,", i);
    qn_str_add_repeat(&str, "ab", 3);
    assert_int_equal(str.st, QN_OK);
    assert_int_equal(str.n, 10 * 2 + 90 * 3 + 900 * 4 + 6);
    assert_int_equal(strlen(str.s), str.n);
    assert_string_equal(str.s + str.n - 10, "999,ababab");
    char *text;
    assert_ok(qn_str_take(&str, &text));
    assert_null(str.s);
    assert_memory_equal(text, "0,1,2,", 6);
    qn_free(text);
}

static void test_a_failed_allocation_sticks(void **state)
{
    QnStr str = { 0 };
    char *text = NULL;
    qn_str_add(&str, "kept");
    qn_fault_arm(1);
    qn_str_add_repeat(&str, "0123456789", 100);
    qn_fault_arm(0);
    qn_str_add(&str, "dropped");
    assert_int_equal(str.st, QN_ENOMEM);
    assert_memory_equal(str.s, "kept", 4);
    assert_null(strstr(str.s, "dropped"));
    assert_int_equal(qn_str_take(&str, &text), QN_ENOMEM);
    assert_null(text);
    qn_str_clear(&str);
    qn_str_add(&str, "again");
    assert_string_equal(qn_str_text(&str), "again");
    qn_str_fini(&str);
}

static void test_bytes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.00 KiB" },
        { 1536, "1.50 KiB" },
        { 123456, "121 KiB" },
        { 1048575, "1.00 MiB" },
        { 5368709120, "5.00 GiB" },
        { UINT64_MAX, "16.0 EiB" },
    };
    char out[QN_STR_NUMBER];
    for (int i = 0; i < QN_COUNT(cases); i++)
        assert_string_equal(qn_str_bytes(out, cases[i].bytes), cases[i].text);
}

static void test_durations(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        { 0, "0 ns" },
        { 999, "999 ns" },
        { 1500, "1.50 us" },
        { 999999, "1.00 ms" },
        { 3200000, "3.20 ms" },
        { 12500000000, "12.5 s" },
        { 59960000000, "1m00s" },
        { 61000000000, "1m01s" },
        { 3599600000000, "1h00m" },
        { 3720000000000, "1h02m" },
        { 180000000000000, "2d02h" },
        { -61000000000, "-1m01s" },
        { INT64_MAX, "106751d23h" },
    };
    char out[QN_STR_NUMBER];
    for (int i = 0; i < QN_COUNT(cases); i++)
        assert_string_equal(qn_str_duration(out, cases[i].ns), cases[i].text);
}

static void test_si_and_counts(void **state)
{
    char out[QN_STR_NUMBER];
    assert_string_equal(qn_str_si(out, 0.5), "0.5");
    assert_string_equal(qn_str_si(out, 999), "999");
    assert_string_equal(qn_str_si(out, 12345), "12.3 k");
    assert_string_equal(qn_str_si(out, 999999), "1.00 M");
    assert_string_equal(qn_str_si(out, -4.56e9), "-4.56 G");
    assert_string_equal(qn_str_si(out, 1e30), "1000000000000 E");
    static const char *const words[] = { "train", "tune", "eval" };
    assert_string_equal(qn_str_nearest("tarin", words, 3), "train");
    assert_string_equal(qn_str_nearest("tun", words, 3), "tune");
    assert_null(qn_str_nearest("explain", words, 3));
    assert_string_equal(qn_str_unit(out, 48, "FLOP"), "48 FLOP");
    assert_string_equal(qn_str_unit(out, 4.5e6, "B/s"), "4.50 MB/s");
    assert_string_equal(qn_str_count(out, 0), "0");
    assert_string_equal(qn_str_count(out, 999), "999");
    assert_string_equal(qn_str_count(out, 1234567), "1,234,567");
    assert_string_equal(qn_str_count(out, -100000), "-100,000");
    assert_string_equal(qn_str_count(out, INT64_MIN), "-9,223,372,036,854,775,808");
    assert_int_equal(qn_str_columns("aüß█"), 4);
}

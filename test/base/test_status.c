#include "test.h"

#include "base/mem.h"

static QnStatus inner(void)
{
    return qn_fail(QN_EFORMAT, "byte %d: bad magic", 12);
}

static QnStatus outer(void)
{
    if (inner() != QN_OK)
        return qn_fail_prefix("file %s", "x.bin");
    return QN_OK;
}

static void test_first_cause_gets_its_place(void **state)
{
    assert_fails(outer(), QN_EFORMAT, "file x.bin: byte 12: bad magic");
    assert_int_equal(qn_error_last()->line, 7);
    qn_error_clear();
    assert_int_equal(qn_error_last()->code, QN_OK);
}

static void test_long_prefix_stays_in_the_record(void **state)
{
    char longer[2 * QN_ERROR_TEXT_BYTES];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    inner();
    qn_fail_prefix("%s", longer);
    assert_int_equal(strlen(qn_error_last()->text), QN_ERROR_TEXT_BYTES - 1);
}

static void test_every_status_has_name_and_text(void **state)
{
    for (int i = 0; i < QN_STATUS_COUNT; i++) {
        assert_string_not_equal(qn_status_name((QnStatus)i), "?");
        assert_true(strlen(qn_status_text((QnStatus)i)) > 4);
    }
    assert_string_equal(qn_status_name(QN_STATUS_COUNT), "?");
}

/* What strangers wrote cannot command a terminal; text of other languages stays. */
static void test_text_is_printable(void **state)
{
    qn_fail(QN_EFORMAT, "'%s'", "a\033[2J\n\xff\xc2\x9b Größe\x7f");
    assert_string_equal(qn_error_last()->text, "'a\\x1b[2J\\x0a\\xff\\xc2\\x9b Größe\\x7f'");
    qn_fail_prefix("%s", "\r");
    assert_non_null(strstr(qn_error_last()->text, "\\x0d: 'a\\x1b["));
}

static void test_printable_text_is_bounded(void **state)
{
    char text[2000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    qn_fail(QN_EFORMAT, "%s", text);
    assert_int_equal(strlen(qn_error_last()->text), QN_ERROR_TEXT_BYTES - 1);
    memset(text, '\033', sizeof text - 1);
    qn_fail(QN_EFORMAT, "%s", text);
    assert_int_equal(strlen(qn_error_last()->text), (QN_ERROR_TEXT_BYTES - 1) / 4 * 4);
}

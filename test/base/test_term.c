#include "test.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/term.h"

#include <math.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* What was written to a file that is no terminal. */
static char *text_of(FILE *f)
{
    static char text[4096];
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void test_log_levels_and_no_colour_in_files(void **state)
{
    FILE *f = tmpfile();
    QnLog log;
    qn_log_init(&log, f, QN_LOG_WARN);
    qn_log_error(&log, "bad %d", 1);
    qn_log_warn(&log, "odd");
    qn_log_info(&log, "hidden");
    qn_log_error(NULL, "nowhere");
    assert_string_equal(text_of(f), "error: bad 1\nwarning: odd\n");
    f = tmpfile();
    log = (QnLog){ .out = f, .level = QN_LOG_DEBUG, .color = true };
    qn_log_error(&log, "x");
    qn_log_info(&log, "y");
    assert_string_equal(text_of(f), "\033[31merror: x\033[0m\ny\n");
}

static void test_colour_is_for_terminals_only(void **state)
{
    FILE *f = tmpfile();
    assert_false(qn_term_color(f));
    assert_false(qn_term_is_tty(f));
    fclose(f);
    FILE *tty = fopen("/dev/ptmx", "r+");
    if (!tty)
        skip_because("no pseudo-terminals here");
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    assert_true(qn_term_color(tty));
    setenv("NO_COLOR", "1", 1);
    assert_false(qn_term_color(tty));
    setenv("NO_COLOR", "", 1);
    assert_true(qn_term_color(tty));
    setenv("TERM", "dumb", 1);
    assert_false(qn_term_color(tty));
    fclose(tty);
}

static void test_width_and_unicode_follow_the_environment(void **state)
{
    FILE *f = tmpfile();
    setenv("COLUMNS", "123", 1);
    assert_int_equal(qn_term_width(f), 123);
    setenv("COLUMNS", "7", 1);
    assert_int_equal(qn_term_width(f), 80);
    unsetenv("COLUMNS");
    assert_int_equal(qn_term_width(f), 80);
    fclose(f);
    setenv("LANG", "de_DE.UTF-8", 1);
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    assert_true(qn_term_unicode());
    setenv("LC_ALL", "C", 1);
    assert_false(qn_term_unicode());
    setenv("LC_ALL", "C.utf8", 1);
    assert_true(qn_term_unicode());
    unsetenv("LC_ALL");
}

static void test_bar(void **state)
{
    QnStr out = { 0 };
    static const struct {
        double fraction;
        bool unicode;
        const char *text;
    } cases[] = {
        { 0, true, "    " },    { 1, true, "████" },    { 0.5, true, "██  " },
        { 0.4, true, "█▋  " },  { 2, true, "████" },    { -1, true, "    " },
        { 0.5, false, "##  " }, { 0.4, false, "#   " }, { NAN, false, "    " },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        qn_str_clear(&out);
        qn_term_bar(&out, cases[i].fraction, 4, cases[i].unicode);
        assert_string_equal(qn_str_text(&out), cases[i].text);
        assert_int_equal(qn_str_columns(qn_str_text(&out)), 4);
    }
    qn_str_fini(&out);
}

/* Two slow first steps of 10 s, then 1 s each: with 8 left the estimate is 8 s, not 22. */
static void test_eta_leaves_out_the_first_steps(void **state)
{
    QnTermProgress p;
    FILE *f = tmpfile();
    qn_term_progress_init(&p, f, 12, 2, 0);
    qn_term_progress_step(&p, 1, "", 10 * SECOND);
    assert_int_equal(qn_term_progress_eta_ns(&p, 1, 10 * SECOND), -1);
    qn_term_progress_step(&p, 2, "", 20 * SECOND);
    assert_int_equal(qn_term_progress_eta_ns(&p, 2, 20 * SECOND), -1);
    qn_term_progress_step(&p, 3, "", 21 * SECOND);
    qn_term_progress_step(&p, 4, "", 22 * SECOND);
    assert_int_equal(qn_term_progress_eta_ns(&p, 4, 22 * SECOND), 8 * SECOND);
    assert_int_equal(qn_term_progress_eta_ns(&p, 12, 30 * SECOND), 0);
    fclose(f);
}

static void test_plain_lines_without_a_terminal(void **state)
{
    QnTermProgress p;
    FILE *f = tmpfile();
    qn_term_progress_init(&p, f, 100, 0, 0);
    for (int i = 1; i <= 100; i++)
        qn_term_progress_step(&p, i, "loss 0.5", i * SECOND);
    qn_term_progress_end(&p);
    const char *text = text_of(f);
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 10);
    assert_null(strchr(text, '\r'));
    assert_null(strchr(text, '\033'));
    assert_contains(text, "10% 10/100  loss 0.5  1m30s left\n");
    assert_contains(text, "100% 100/100  loss 0.5  1m40s\n");
}

static void test_a_terminal_line_fits_and_is_redrawn_seldom(void **state)
{
    FILE *f = tmpfile();
    QnTermProgress p;
    qn_term_progress_init(&p, f, 1000, 10, 0);
    p.tty = true;
    p.unicode = true;
    p.width = 60;
    for (int i = 1; i <= 1000; i++)
        qn_term_progress_step(&p, i, "loss 0.5", i * SECOND / 1000);
    qn_term_progress_end(&p);
    char *text = text_of(f);
    int lines = 0;
    for (char *line = strtok(text, "\r"); line; line = strtok(NULL, "\r")) {
        char *wipe = strstr(line, "\033[K");
        assert_non_null(wipe);
        *wipe = '\0';
        assert_true(qn_str_columns(line) < 60);
        lines++;
    }
    assert_in_range(lines, 10, 12);
}

static void test_a_long_text_is_cut_to_the_line(void **state)
{
    FILE *f = tmpfile();
    QnTermProgress p;
    qn_term_progress_init(&p, f, 10, 0, 0);
    p.tty = true;
    p.width = 30;
    qn_term_progress_step(&p, 5, "ααααααααααααααααααααααααααααααααααααααα", SECOND);
    qn_term_progress_hide(&p);
    assert_string_equal(text_of(f), "\r  50% 5/10  ααααααααααααααααα\033[K\r\033[K");
}

/* The time to go is what one looks for. */
static void test_a_long_text_leaves_the_time(void **state)
{
    FILE *f = tmpfile();
    QnTermProgress p;
    qn_term_progress_init(&p, f, 10, 0, 0);
    p.tty = true;
    p.width = 30;
    qn_term_progress_step(&p, 2, "", SECOND);
    qn_term_progress_step(&p, 6, "ααααααααααααααααααααααααααααααααααααααα", 2 * SECOND);
    char *text = text_of(f);
    assert_contains(text, "\r  60% 6/10  αααα  1.00 s left\033[K");
}

static void test_clock_moves_forward(void **state)
{
    int64_t a = qn_clock_ns();
    usleep(2000);
    int64_t b = qn_clock_ns();
    assert_true(b - a >= 2000000 && b - a < 10 * SECOND);
}
